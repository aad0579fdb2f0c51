"""The contract suite finds faults: each faulty transport here fails where it must."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import StalledError, WouldBlock
from dsp.transport.base import Frame, Inbound, Transport
from dsp.transport.sim.endpoint import SimTransport
from tests.contract.sim_contract import SimContract

if TYPE_CHECKING:
    from collections.abc import Callable


class DropsAtItsLimit(SimTransport):
    """Takes a frame for a full queue and forgets it, as a plain ZeroMQ ROUTER does."""

    async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        try:
            self.send_nowait(to, payload, lane=lane)
        except WouldBlock:
            await asyncio.sleep(0)


class LosesOnCancel(SimTransport):
    """Takes a frame out of the inbox, then awaits once more before it returns."""

    async def receive(self, lane: Lane) -> Inbound:
        inbound = await super().receive(lane)
        await asyncio.sleep(0)
        return inbound


class Reorders(SimTransport):
    """Lets every second frame overtake the one before it."""

    _held_back: Inbound | None = None

    async def receive(self, lane: Lane) -> Inbound:
        if lane is Lane.CONTROL:
            return await super().receive(lane)
        if self._held_back is not None:
            held, self._held_back = self._held_back, None
            return held
        first = await super().receive(lane)
        if isinstance(first, Frame) and len(self._inboxes[lane]) > 0:
            self._held_back = first
            return await super().receive(lane)
        return first


class OneQueueForBothLanes(SimTransport):
    """Sends CONTROL only when all DATA for the same peer is on its way."""

    async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        data = self._links.get((to.id, Lane.DATA))
        while lane is Lane.CONTROL and data is not None and len(data.queue) > 0:
            await asyncio.sleep(0.01)
        await super().send(to, payload, lane=lane)


class NeverWaits(SimTransport):
    """Has queues without a bound."""

    async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        link = self._link(to, payload, lane)
        link.queue.force(payload, len(payload))
        self._accepted(link, len(payload))


class ForgetsOnClose(SimTransport):
    """Drops what is still queued when it is closed, and says nothing."""

    async def _flush(self) -> None:
        for link in self._links.values():
            link.queue.drain()


class DeliversTwice(SimTransport):
    """Hands out every hundredth frame twice, and declares no duplicates."""

    def _arrived(self, sender: Peer, lane: Lane, payload: bytes, receipt: object = None) -> None:
        super()._arrived(sender, lane, payload, receipt)
        if self._counters[lane].received % 100 == 50:
            super()._arrived(sender, lane, payload, receipt)


class TakesAnySize(SimTransport):
    """Does not look at max_frame_bytes."""

    def _link(self, to: Peer, payload: bytes, lane: Lane) -> Any:  # noqa: ANN401
        return super()._link(to, b"", lane)


class BelievesStrangers(SimTransport):
    """Takes bytes that are not a frame for a frame."""

    def deliver(self, wire: bytes) -> None:
        before = self._counters[Lane.DATA].rejected
        super().deliver(wire)
        if self._counters[Lane.DATA].rejected > before:
            self._arrived(self._peer(NodeId("stranger")), Lane.CONTROL, wire)


def failures(faulty: type[SimTransport]) -> set[str]:
    """Run every check on a faulty transport and name those that fail."""

    class Contract(SimContract):
        patience = 2.0

        def make(self, node: str, **settings: Any) -> Transport:  # noqa: ANN401
            return faulty.from_config(self.config(node, **settings), NodeId(node))

    failed = set()
    contract = Contract()
    for name in dir(contract):
        if name.startswith("test_"):
            trial: Callable[[], None] = getattr(contract, name)
            try:
                trial()
            except (AssertionError, ExceptionGroup, StalledError):
                failed.add(name)
    return failed


def test_the_sound_transport_has_no_failures() -> None:
    assert failures(SimTransport) == set()


@pytest.mark.parametrize(
    ("faulty", "must_fail"),
    [
        (
            DropsAtItsLimit,
            {"test_full_queue_waits_and_loses_nothing", "test_slow_reader_in_bounded_memory"},
        ),
        (LosesOnCancel, {"test_cancelled_receive_loses_nothing"}),
        (Reorders, {"test_fifo_per_lane"}),
        (OneQueueForBothLanes, {"test_clogged_data_does_not_delay_control"}),
        (NeverWaits, {"test_full_queue_waits_and_loses_nothing"}),
        (ForgetsOnClose, {"test_close_reports_what_it_could_not_hand_over"}),
        (DeliversTwice, {"test_each_frame_once"}),
        (TakesAnySize, {"test_oversized_frame"}),
        (BelievesStrangers, {"test_garbage_from_a_stranger"}),
    ],
)
def test_a_fault_is_found(faulty: type[SimTransport], must_fail: set[str]) -> None:
    failed = failures(faulty)
    assert must_fail <= failed, f"not found: {must_fail - failed}"
    assert "test_echo" not in failed, "the check that fails must be the one about the fault"
