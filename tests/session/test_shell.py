"""The shell around session machines: closing, refusal, and ends that are special."""

import asyncio
import struct
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from dsp.config import SessionConfig, TransportConfig
from dsp.core.session.segments import Segment, SegmentKind, Window
from dsp.core.session.wire import SegmentCodec
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, EndOfStream
from dsp.testing import DROP, PASS, LinkConditions, Packet, Verdict, World
from dsp.transport.base import Frame, Inbound, PeerDown, Undelivered
from dsp.transport.session import Session
from dsp.transport.sim.endpoint import SimTransport

CODEC = SegmentCodec()
Trial = Callable[[World], Coroutine[Any, Any, None]]


def make(name: str, **settings: Any) -> Session:  # noqa: ANN401
    session = SessionConfig(heartbeat_every=0.5, suspect_after=2.0, dead_after=5.0)
    config = TransportConfig(url=f"sim://world/{name}", session=session, **settings)
    return Session.from_config(config, NodeId(name))


async def frames(session: Session, count: int, lane: Lane = Lane.DATA) -> list[bytes]:
    """Receive frames, whatever comes between them."""
    found: list[bytes] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            inbound = await session.receive(lane)
            if isinstance(inbound, Frame):
                found.append(inbound.payload)
    return found


async def rest(session: Session) -> list[Inbound]:
    """Receive events up to the end, or until none comes."""
    found: list[Inbound] = []
    try:
        while True:
            async with asyncio.timeout(0.01):
                found.append(await session.receive(Lane.CONTROL))
    except (TimeoutError, EndOfStream):
        return found


def undelivered(events: list[Inbound]) -> list[bytes]:
    return [each for event in events if isinstance(event, Undelivered) for each in event.payloads]


def kind_of(packet: Packet) -> SegmentKind:
    return CODEC.decode(packet.payload).kind


async def test_a_node_can_send_to_itself(world: World) -> None:
    async with make("a") as a:
        for number in range(100):
            await a.send(a.contact, bytes([number]), lane=Lane.DATA)
        assert await frames(a, 100) == [bytes([number]) for number in range(100)]
    assert undelivered(await rest(a)) == []


async def test_a_lost_good_bye_is_said_again(world: World) -> None:
    lost: list[SegmentKind] = []

    def lose(packet: Packet) -> Verdict:
        # The last acknowledgement, and with it the first good-bye.
        if packet.source == "b" and kind_of(packet) in (SegmentKind.STATUS, SegmentKind.BYE):
            lost.append(kind_of(packet))
            return DROP if SegmentKind.BYE not in lost[:-1] else PASS
        return PASS

    async with make("a") as a, make("b") as b:
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(1)
        with world.rule(lose):
            await a.send(b.contact, b"2", lane=Lane.DATA)
            await frames(b, 1)
            began = world.now
            await b.aclose()
        assert SegmentKind.BYE in lost
        assert world.now - began < 0.5
        await asyncio.sleep(0.1)
        events = await rest(a)
        assert [event.reason for event in events if isinstance(event, PeerDown)] == [
            "closed by the peer"
        ]
        assert undelivered(events) == []


async def test_closing_does_not_wait_long_for_a_peer_that_is_gone(world: World) -> None:
    async with make("a", drain_timeout=1.0) as a:
        b = make("b")
        await b.start()
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(0.1)
        b.abort()
        world.partition("a", "b")
        began = world.now
        await a.aclose()
        assert world.now - began <= 1.0 + 1.0, "linger, and then the adapter's time to drain"


async def test_both_close_at_once(world: World) -> None:
    for loss in (0.0, 0.3):
        world.network.conditions = LinkConditions(loss=loss)
        async with make(f"a{loss}") as a, make(f"b{loss}") as b:
            for number in range(50):
                await a.send(b.contact, bytes([number]), lane=Lane.DATA)
                await b.send(a.contact, bytes([number]), lane=Lane.CONTROL)
            await asyncio.gather(a.aclose(), b.aclose())
            for sender, receiver, lane in ((a, b, Lane.DATA), (b, a, Lane.CONTROL)):
                arrived = receiver.statistics().lanes[lane].received_frames
                named = sender.statistics().lanes[lane].undelivered_frames
                assert arrived + named >= 50
                assert loss or named == 0


async def test_a_peer_that_only_receives(world: World) -> None:
    world.network.conditions = LinkConditions(loss=0.3)
    async with make("a", receive_queue_frames=4) as a, make("b", receive_queue_frames=4) as b:
        sending = asyncio.create_task(_send_all(a, b, 200))
        assert await frames(b, 200) == [bytes([number]) for number in range(200)]
        await sending


async def _send_all(a: Session, b: Session, count: int) -> None:
    for number in range(count):
        await a.send(b.contact, bytes([number]), lane=Lane.DATA)


async def test_what_was_taken_is_told_with_the_acknowledgement(world: World) -> None:
    said: list[SegmentKind] = []

    def listen(packet: Packet) -> Verdict:
        if packet.source == "b":
            said.append(kind_of(packet))
        return PASS

    async with make("a") as a, make("b") as b:
        await a.send(b.contact, b"first", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(0.1)
        with world.rule(listen):
            for number in range(4):
                await a.send(b.contact, bytes([number]), lane=Lane.DATA)
                await frames(b, 1)
                await asyncio.sleep(0.1)
        # A word for each frame; a second one would tell of room that the first knew of.
        assert said == 4 * [SegmentKind.STATUS]


async def test_a_reader_that_pauses_is_waited_for(world: World) -> None:
    world.network.conditions = LinkConditions(loss=0.5)
    async with make("a", receive_queue_frames=4) as a, make("b", receive_queue_frames=4) as b:
        sending = asyncio.create_task(_send_all(a, b, 60))
        for _ in range(15):
            await asyncio.sleep(3)
            await frames(b, 4)
        await sending


async def test_abort_and_again_under_the_same_name(world: World) -> None:
    async with make("a") as a:
        for number in range(5):
            b = make("b")
            await b.start()
            await asyncio.sleep(1)  # a heartbeat of a meets the new incarnation
            assert undelivered(await rest(a)) == ([b"lost"] if number else [])
            await a.send(b.contact, bytes([number]), lane=Lane.DATA)
            assert await frames(b, 1) == [bytes([number])]
            await asyncio.sleep(0.1)
            b.abort()
            await a.send(b.contact, b"lost", lane=Lane.DATA)
        await asyncio.sleep(10)
        assert undelivered(await rest(a)) == [b"lost"]


def claim(world: World, sender: str, to: Session, segment: Segment) -> None:
    """Say something in the name of another endpoint."""
    name = sender.encode()
    wire = struct.pack("!2sBH", b"ds", 0, len(name)) + name + CODEC.encode(segment)
    world.network.inject(to.contact.id, wire)


async def test_the_stale_one_is_told_and_nothing_waits_for_ever(world: World) -> None:
    async with make("a", send_queue_frames=2) as a, make("b", receive_queue_frames=8) as b:
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(0.1)
        world.partition("a", "b")
        waiting = asyncio.create_task(_send_all(a, b, 250))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        claim(world, "b", a, Segment(SegmentKind.HELLO, 99 << 32, a.epoch + 1))
        async with asyncio.timeout(5):
            await waiting
            await a.send(b.contact, b"late", lane=Lane.CONTROL)
        events = await rest(a)
        assert any(isinstance(event, PeerDown) and event.refused for event in events)
        named = undelivered(events)
        assert named == [*(bytes([number]) for number in range(250)), b"late"]
        assert "stale" in a.health().problems[0]
        began = world.now
        await a.aclose()
        assert world.now - began < 1.1


@pytest.mark.parametrize("refused", [False, True])
async def test_a_session_that_ends_while_frames_are_put_together(
    world: World, refused: bool
) -> None:
    async with make("a") as a, make("b") as b:
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(0.1)
        a.send_nowait(b.contact, b"2", lane=Lane.DATA)
        if refused:
            claim(world, "b", a, Segment(SegmentKind.HELLO, 99 << 32, a.epoch + 1))
        else:
            windows = (Window(0, 9, 9), Window(0, 9, 9))
            claim(world, "b", a, Segment(SegmentKind.BYE, b.epoch, a.epoch, windows=windows))
        # In the same step: it goes with the others, into a session that is over.
        a.send_nowait(b.contact, b"3", lane=Lane.DATA)
        await asyncio.sleep(0.1)
        named = undelivered(await rest(a))
        if refused:
            assert named == [b"2", b"3"]
        else:
            assert named == [b"2"]
            assert await frames(b, 1) == [b"3"]


async def test_an_adapter_that_breaks_takes_the_session_with_it(world: World) -> None:
    async with make("a") as a, make("b") as b:
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        world.network.crash(NodeId("a"))
        await asyncio.sleep(1)
        with pytest.raises(ClosedError, match="broke"):
            await a.send(b.contact, b"2", lane=Lane.DATA)
        with pytest.raises(ClosedError, match="broke"):
            await a.receive(Lane.DATA)


async def test_an_abort_while_it_closes_ends_it(world: World) -> None:
    async with make("a") as a, make("b") as b:
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(0.1)
        world.partition("a", "b")
        closing = asyncio.create_task(a.aclose())
        await asyncio.sleep(0.1)
        a.abort()
        async with asyncio.timeout(0.01):
            await asyncio.wait([closing])
            await a.aclose()


async def test_a_newcomer_cannot_hold_up_closing(world: World) -> None:
    async with make("a") as a, make("b") as b, make("c") as c:
        await a.send(b.contact, b"1", lane=Lane.DATA)
        await frames(b, 1)
        await asyncio.sleep(0.1)
        world.partition("a", "b")
        closing = asyncio.create_task(a.aclose())
        await asyncio.sleep(0.1)
        await c.send(a.contact, b"hello", lane=Lane.DATA)
        async with asyncio.timeout(6):
            await closing
        await asyncio.sleep(10)
        assert undelivered(await rest(c)) == [b"hello"]


class Logging(SimTransport):
    """Says that it is durable, notes what is done, and has one more record as it closes."""

    late: Segment | None = None

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments)
        self.done_with: list[object] = []

    async def _open(self) -> None:
        await super()._open()
        self.guarantees = replace(self.guarantees, durable=True)

    def done(self, frame: Frame) -> None:
        self.done_with.append(frame.receipt)

    async def aclose(self) -> None:
        if self.late is not None:
            sender = Peer(NodeId("a"), "sim://world/a")
            self._arrived(sender, Lane.DATA, CODEC.encode(self.late), "late")
        await super().aclose()


async def test_what_a_log_brings_while_a_session_closes_is_not_done(world: World) -> None:
    """Nobody hears it any more, so the next incarnation must get it."""
    config = TransportConfig(url="sim://world/b")
    below = Logging.from_config(config, NodeId("b"))
    session = Session(below, config, NodeId("b"))
    async with session:
        early = Segment(SegmentKind.DATA, 7, 0, 1, (b"early",))
        below._arrived(Peer(NodeId("a"), "sim://world/a"), Lane.DATA, CODEC.encode(early), "early")
        frame = await session.receive(Lane.DATA)
        assert isinstance(frame, Frame)
        session.done(frame)
        below.late = early._replace(sequence=2, payloads=(b"late",))
    assert below.done_with == ["early"]


class Lingering(SimTransport):
    """An adapter whose start never ends by itself, and that lets go a while after its abort."""

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments)
        self.let_go = False

    async def _open(self) -> None:
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        await super().aclose()
        await asyncio.sleep(1.0)
        self.let_go = True


async def test_closing_after_a_cancelled_start_waits_for_what_is_below(world: World) -> None:
    config = TransportConfig(url="sim://world/b")
    below = Lingering.from_config(config, NodeId("b"))
    session = Session(below, config, NodeId("b"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await session.start()
    await session.aclose()
    assert below.let_go
