"""What the accepting and the dialling half of an endpoint share."""

import logging
from collections import Counter
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from dsp.errors import ClosedError
from dsp.transport.adapter import AdapterTransport
from dsp.transport.base import Guarantees, NodeId, Peer
from dsp.transport.grpc.link import GrpcLink

if TYPE_CHECKING:
    import asyncio

    from dsp.config import TransportConfig
    from dsp.transport.grpc.identity import NameRules

__all__ = ["GrpcEndpoint"]

logger = logging.getLogger(__name__)


class GrpcEndpoint(AdapterTransport[GrpcLink]):
    """Tasks, and which peers have how many streams with us."""

    def __init__(self, config: "TransportConfig", node: NodeId) -> None:
        super().__init__(config, node)
        self.guarantees = Guarantees(
            ordered=True,
            reliable=True,
            durable=False,
            duplicates=False,
            max_frame_bytes=config.max_frame_bytes,
        )
        self._contact: Peer | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._streams: Counter[NodeId] = Counter()
        self._names: NameRules | None = None  # None without TLS

    @property
    def contact(self) -> Peer:
        if self._contact is None:
            raise ClosedError(f"{self._name} is not started")
        return self._contact

    def _joined(self, peer: Peer) -> None:
        self._streams[peer.id] += 1
        self._peer_up(peer)

    def _left(self, peer: Peer, reason: str) -> None:
        self._streams[peer.id] -= 1
        if self._streams[peer.id] == 0:
            del self._streams[peer.id]
            self._peer_down(peer, reason)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Start a task that must not fail: if it does, the endpoint fails."""
        task = self._start_task(work, name)
        task.add_done_callback(self._task_done)
        return task

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        """Start a task whose outcome its starter looks at; closing waits for its end."""
        task = self._loop.create_task(work, name=f"{self._name}: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _task_done(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.critical("%s fails and closes", self._name, exc_info=error)
            self._fail(error)
