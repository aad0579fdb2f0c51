"""The endpoint of an application that is one process and needs no network."""

import asyncio
from typing import TYPE_CHECKING, ClassVar, Self

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import EndOfStream, PeerUnreachable
from dsp.transport.base import (
    Frame,
    Guarantees,
    HealthState,
    Inbound,
    LaneStatistics,
    Transport,
    TransportHealth,
    TransportStatistics,
)

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["Alone"]


class Alone(Transport):
    """Reaches nobody, and nobody reaches it."""

    scheme: ClassVar[str] = "alone"

    def __init__(self, node: NodeId) -> None:
        self.guarantees = Guarantees(
            ordered=True, reliable=True, durable=False, duplicates=False, max_frame_bytes=1 << 22
        )
        self._peer = Peer(node, f"alone://{node}")
        self._closed = asyncio.Event()

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        return cls(node)

    async def start(self) -> None:
        pass

    @property
    def contact(self) -> Peer:
        return self._peer

    @property
    def epoch(self) -> int:
        return 1

    async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        self.send_nowait(to, payload, lane=lane)

    def send_nowait(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        raise PeerUnreachable(f"{to}: this application is one process; give it a transport URL")

    async def receive(self, lane: Lane) -> Inbound:
        await self._closed.wait()
        raise EndOfStream("closed")

    def done(self, frame: Frame) -> None:
        pass

    def statistics(self) -> TransportStatistics:
        return TransportStatistics({lane: LaneStatistics() for lane in Lane})

    def health(self) -> TransportHealth:
        state = HealthState.CLOSED if self._closed.is_set() else HealthState.OK
        return TransportHealth(state, (), None, 0, 0, 0, {}, ())

    async def aclose(self) -> None:
        self._closed.set()

    def abort(self) -> None:
        self._closed.set()
