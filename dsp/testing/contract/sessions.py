"""Checks of sessions with real processes: what an end accepted arrives, or is named."""

import asyncio
from typing import TYPE_CHECKING, Any

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import EndOfStream
from dsp.testing.contract.child import report
from dsp.testing.contract.child_process import ChildProcess
from dsp.testing.contract.harness import check, numbers
from dsp.testing.contract.processes import ProcessHarness
from dsp.testing.contract.streams import FINAL, Stream
from dsp.transport.base import PeerDown, PeerUp, Transport, Undelivered
from dsp.transport.session import Session

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["SessionProcessContract", "ReportingSession", "create_reporting_session"]

REPORTING = "dsp.testing.contract.sessions:create_reporting_session"


class ReportingSession(Session):
    """A session in a child process that reports frames before it acknowledges them.

    A killed process has then reported all that it may have acknowledged, whether or not its
    application came to receive it.
    """

    def _arrived_together(
        self, sender: Peer, lane: Lane, payloads: tuple[bytes, ...], receipt: object
    ) -> None:
        report("arrived", lane=lane.value, numbers=numbers(payloads))
        super()._arrived_together(sender, lane, payloads, receipt)


def create_reporting_session(config: "TransportConfig", node: NodeId) -> ReportingSession:
    """Make the endpoint of a child process; a factory for ``ProcessHarness``."""
    return ReportingSession.from_config(config, node)


class Observer:
    """Reads what an endpoint is told on CONTROL.

    Attributes:
        named: numbers of the frames that came back, one list for each time.
        up: whether the peer was announced, or taken back, last.
        refusals: those of them that were refusals.
    """

    def __init__(self) -> None:
        self.named: list[list[int]] = []
        self.up = False
        self.refusals: list[PeerDown] = []
        self._news = asyncio.Event()

    async def run(self, endpoint: Transport) -> None:
        """Read to the end of the stream."""
        while True:
            try:
                inbound = await endpoint.receive(Lane.CONTROL)
            except EndOfStream:
                return
            match inbound:
                case Undelivered(lane=Lane.DATA, payloads=payloads):
                    self.named.append(numbers(payloads))
                case PeerUp():
                    self.up = True
                case PeerDown():
                    self.up = False
                    self.refusals += [inbound] * inbound.refused
                case _:
                    raise AssertionError(f"not expected on CONTROL: {inbound}")
            self._news.set()

    async def told_down(self) -> None:
        """Wait until what was told last is that the peer is gone."""
        await self._told(up=False)

    async def told_up(self) -> None:
        """Wait until what was told last is that the peer is there."""
        await self._told(up=True)

    async def _told(self, *, up: bool) -> None:
        # Not how often: on a busy machine a peer may be suspected before it is made to stop.
        while self.up is not up:
            self._news.clear()
            await self._news.wait()


class SessionProcessContract(ProcessHarness):
    """What is asked of a session whose peer is in a process of its own.

    Over a durable transport nothing is ever named when a receiver dies: the log has it, and hands
    it to whoever comes next under that id.

    Put it beside a harness whose ``make`` gives sessions. ``kills`` and ``stops`` say how often.

    Attributes:
        session_times: quick to suspect, slow to give up.
    """

    factory = REPORTING
    session_times: "dict[str, Any]" = {  # noqa: RUF012 - read only
        "heartbeat_every": 0.05,
        "suspect_after": 0.3,
        "dead_after": 60.0,
    }

    def _settings(self, **times: float) -> dict[str, Any]:
        return {**self.small_queues, "session": {**self.session_times, **times}}

    @check
    async def test_every_frame_arrives_or_is_named_when_a_receiver_is_killed(self) -> None:
        """A receiver dies in mid-stream and returns, again and again.

        What was accepted has arrived at some incarnation, or it is named, or both where the
        acknowledgement was not back in time. Nothing arrives twice, and nothing is named twice.
        Out of a log all of it arrives, and again what the dead one had not done.
        """
        arrived: list[list[int]] = []
        stream, observer = Stream(), Observer()
        async with (
            self.endpoints("sender", **self._settings()) as (sender,),
            asyncio.TaskGroup() as group,
        ):
            observing = group.create_task(observer.run(sender))
            for round_ in range(self.kills + 1):
                async with self.child("receiver", **self._settings()) as child:
                    if round_ == 0:
                        group.create_task(stream.run(sender, child.peer))
                    arrived.append(child.arrived[Lane.DATA])
                    await child.received(self.frames_before(round_))
                    if round_ == self.kills:
                        await self._to_the_end(stream, child)
            observing.cancel()
        await observer.run(sender)
        _check_account(sender, stream.accepted, arrived, observer, self.small_queues)
        assert len(observer.named) <= self.kills

    async def _to_the_end(self, stream: Stream, child: ChildProcess) -> None:
        """End the stream, and let its last frames arrive."""
        await self.soon(stream.end(), "the last frames to be accepted")
        last = set(range(stream.accepted - FINAL, stream.accepted))
        await child.until(lambda: last <= child.seen[Lane.DATA], "the final frames")
        await child.close()

    @check
    async def test_frames_are_named_when_a_receiver_dies_for_good(self) -> None:
        """Nobody returns: after ``dead_after`` the frames come back, without being asked for.

        A log keeps them instead, for whoever comes much later.
        """
        stream, observer = Stream(), Observer()
        settings = self._settings(dead_after=1.0)
        async with (
            self.endpoints("sender", **settings) as (sender,),
            asyncio.TaskGroup() as group,
        ):
            observing = group.create_task(observer.run(sender))
            async with self.child("receiver", **settings) as child:
                streaming = group.create_task(stream.run(sender, child.peer))
                await child.received(self.burst)
                await self.soon(observer.told_up(), "a PeerUp")
            arrived = [child.arrived[Lane.DATA]]
            await self.soon(observer.told_down(), "a PeerDown")
            if sender.guarantees.durable:
                async with self.child("receiver", **settings) as heir:
                    await self._to_the_end(stream, heir)
                    arrived.append(heir.arrived[Lane.DATA])
            else:
                await self.eventually(lambda: bool(observer.named), "frames that come back")
            for task in (streaming, observing):
                task.cancel()
        await observer.run(sender)
        if sender.guarantees.durable:
            _check_account(sender, stream.accepted, arrived, observer, self.small_queues)
            return
        # The send that was cancelled may have been accepted in its last moment.
        accepted = max(stream.accepted, 1 + max(observer.named[-1]))
        assert accepted <= stream.accepted + 1
        _check_account(sender, accepted, arrived, observer, self.small_queues)

    @check
    async def test_nothing_is_lost_when_a_receiver_is_stopped(self) -> None:
        """A receiver stands still for longer than the time of suspicion, and goes on."""
        stream, observer = Stream(), Observer()
        async with (
            self.endpoints("sender", **self._settings()) as (sender,),
            self.child("receiver", **self._settings()) as child,
            asyncio.TaskGroup() as group,
        ):
            observing = group.create_task(observer.run(sender))
            group.create_task(stream.run(sender, child.peer))
            for round_ in range(self.stops):
                await child.received(len(child.seen[Lane.DATA]) + self.frames_before(round_))
                await self.soon(observer.told_up(), "a PeerUp")
                await child.stop()
                await self.soon(observer.told_down(), "a PeerDown")
                child.resume()
                await self.soon(observer.told_up(), "a PeerUp, once it goes on")
            await self.soon(stream.end(), "the last frames to be accepted")
            await child.received(stream.accepted)
            await child.close()
            observing.cancel()
        await observer.run(sender)
        assert child.frames[Lane.DATA] == list(range(stream.accepted))
        assert not observer.named
        assert not observer.refusals


def _check_account(
    sender: Transport,
    accepted: int,
    arrived: list[list[int]],
    observer: Observer,
    bounds: dict[str, Any],
) -> None:
    """Compare what was accepted with what arrived at each incarnation and what was named."""
    for number, got in enumerate(arrived):
        assert got == list(range(got[0], got[0] + len(got))), f"incarnation {number}: gaps"
    everything = [number for got in arrived for number in got]
    if sender.guarantees.durable:
        assert not observer.named, "named, though a log keeps it"
        starts = [got[0] for got in arrived]
        assert starts == sorted(starts), f"what was done came again: {starts}"
    else:
        assert len(everything) == len(set(everything)), "a frame arrived at two incarnations"
    named = [number for batch in observer.named for number in batch]
    assert named == sorted(set(named)), "frames named twice, or out of order"
    lost = set(range(accepted)).difference(everything, named)
    assert not lost, f"accepted, and neither arrived nor named: {sorted(lost)[:10]}"
    unknown = {*everything, *named}.difference(range(accepted))
    assert not unknown, f"never accepted: {sorted(unknown)[:10]}"
    for batch in observer.named:
        # Arrived, but the acknowledgement was not back: no more than a window of them.
        both = set(batch).intersection(everything)
        assert len(both) <= bounds["receive_queue_frames"], f"{len(both)} acknowledged and named"
    assert observer.refusals == []
