"""Sending for a driver: never waits, keeps the order per peer and lane, and is bounded."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Protocol

from dsp.core.machine import Send
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import OverloadError, PeerUnreachable, WouldBlock
from dsp.transport.base import Transport

__all__ = ["MessageCodec", "Outgoing"]

logger = logging.getLogger(__name__)


class MessageCodec(Protocol):
    """Maps a protocol's messages to bytes and back; a protocol's ``wire`` module has one."""

    def encode(self, message: Any) -> bytes:  # noqa: ANN401 - each codec knows its own messages
        """Give the bytes of a message."""
        ...

    def decode(self, data: bytes) -> Hashable:
        """Read a message, or raise ``CodecError``."""
        ...


class Outgoing:
    """Hands messages to a transport; those that find a full queue wait in a pump of their own.

    Args:
        transport: where messages go.
        codec: how they become bytes.
        peers: addresses, shared with the driver that learns them.
        spawn: starts a pump in the driver's task group.
        failed: told of each message that cannot be sent.
        max_pending: how many messages may wait before ``OverloadError``.
    """

    def __init__(
        self,
        transport: Transport,
        codec: MessageCodec,
        peers: dict[NodeId, Peer],
        *,
        spawn: Callable[[Coroutine[Any, Any, None], str], object],
        failed: Callable[[Send], None],
        max_pending: int,
    ) -> None:
        self._transport = transport
        self._codec = codec
        self._peers = peers
        self._spawn = spawn
        self._failed = failed
        self._max_pending = max_pending
        self._backlogs: dict[tuple[NodeId, Lane], deque[Send]] = {}
        self.data_flows = asyncio.Event()
        """Set while no DATA message waits."""
        self.data_flows.set()
        self.progress: Callable[[], None] = lambda: None
        """Called when a pump is done."""

    @property
    def idle(self) -> bool:
        """Whether nothing waits for room."""
        return not self._backlogs

    @property
    def pending(self) -> int:
        """How many messages wait for room."""
        return sum(map(len, self._backlogs.values()))

    def waiting(self, to: NodeId, lane: Lane) -> bool:
        """Tell whether messages for a peer wait for room on a lane."""
        return (to, lane) in self._backlogs

    def send(self, effect: Send) -> None:
        """Send a message now if there is room, else as soon as there is, in order."""
        peer = self._peers.get(effect.to)
        if peer is None:
            logger.warning("no address for %s: message not sent", effect.to)
            self._failed(effect)
            return
        key = (effect.to, effect.lane)
        if key in self._backlogs:
            self._wait(self._backlogs[key], effect)
            return
        try:
            data = self._codec.encode(effect.message)
            self._transport.send_nowait(peer, data, lane=effect.lane)
        except WouldBlock:
            backlog = self._backlogs[key] = deque([effect])
            if effect.lane is Lane.DATA:
                self.data_flows.clear()
            self._spawn(self._pump(key, backlog), f"pump to {effect.to}")
        except PeerUnreachable as error:
            self._unreachable(effect, error)

    def _wait(self, backlog: deque[Send], effect: Send) -> None:
        if self.pending >= self._max_pending:
            raise OverloadError(
                f"{self._max_pending} messages wait for peers that do not read, {len(backlog)} of "
                f"them for {effect.to}: suspect dead peers sooner, or raise max_pending"
            )
        backlog.append(effect)

    async def _pump(self, key: tuple[NodeId, Lane], backlog: deque[Send]) -> None:
        while backlog:
            effect = backlog[0]
            try:
                data = self._codec.encode(effect.message)
                await self._transport.send(self._peers[effect.to], data, lane=effect.lane)
            except PeerUnreachable as error:
                self._unreachable(effect, error)
            backlog.popleft()
        del self._backlogs[key]
        if not any(lane is Lane.DATA for _, lane in self._backlogs):
            self.data_flows.set()
        self.progress()

    def _unreachable(self, effect: Send, error: PeerUnreachable) -> None:
        logger.warning("message to %s not sent: %s", effect.to, error)
        self._failed(effect)
