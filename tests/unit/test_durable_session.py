"""The session machine over a log: events in, effects out."""

import pytest

from dsp.core.machine import Received, Reject, Send, Tick
from dsp.core.session.durable import DurableMachine
from dsp.core.session.segments import (
    CloseRequested,
    Deliver,
    Ended,
    Established,
    LinkRefused,
    LinkUp,
    Phase,
    Segment,
    SegmentKind,
    SessionLimits,
    Submit,
    Suspected,
)
from dsp.core.types import Lane, NodeId
from dsp.errors import LocalProtocolError

PEER = NodeId("b")
LIMITS = SessionLimits(heartbeat_every=1.0, suspect_after=5.0)


def machine(epoch: int = 10) -> DurableMachine:
    return DurableMachine(PEER, epoch, LIMITS)


def data(epoch: int, sequence: int, *payloads: bytes, lane: Lane = Lane.DATA) -> Received:
    return Received(PEER, Segment(SegmentKind.DATA, epoch, 0, sequence, payloads), lane)


def word(kind: SegmentKind, epoch: int = 20) -> Received:
    return Received(PEER, Segment(kind, epoch, 0), Lane.CONTROL)


def delivered(effects: object) -> list[tuple[bytes, ...]]:
    assert isinstance(effects, list)
    return [effect.payloads for effect in effects if isinstance(effect, Deliver)]


def kinds(effects: object) -> list[SegmentKind]:
    assert isinstance(effects, list)
    sent = [effect.message for effect in effects if isinstance(effect, Send)]
    return [message.kind for message in sent if isinstance(message, Segment)]


def test_segments_are_numbered_per_lane_and_nothing_is_waited_for() -> None:
    sender = machine()
    assert kinds(sender.handle(LinkUp(), 0.0)) == [SegmentKind.HELLO]
    for lane in Lane:
        for number in (1, 2, 3):
            (effect,) = sender.handle(Submit(lane, (b"x",)), 0.0)
            assert isinstance(effect, Send)
            assert isinstance(effect.message, Segment)
            assert (effect.lane, effect.message.sequence) == (lane, number)
    assert sender.next_deadline() is None, "a peer that was never heard is not waited for"


def test_submit_needs_a_conversation() -> None:
    with pytest.raises(LocalProtocolError):
        machine().handle(Submit(Lane.DATA, (b"x",)), 0.0)


def test_what_comes_twice_is_delivered_once() -> None:
    receiver = machine()
    assert delivered(receiver.handle(data(20, 1, b"a", b"b"), 0.0)) == [(b"a", b"b")]
    assert delivered(receiver.handle(data(20, 1, b"a", b"b"), 0.0)) == []
    assert delivered(receiver.handle(data(20, 2, b"c"), 0.0)) == [(b"c",)]


def test_a_receiver_that_returns_begins_with_what_comes_first() -> None:
    returned = machine(epoch=11)
    assert delivered(returned.handle(data(20, 7, b"g"), 0.0)) == [(b"g",)]
    assert delivered(returned.handle(data(20, 8, b"h"), 0.0)) == [(b"h",)]


def test_a_dead_incarnation_counts_until_its_successor_speaks_on_that_lane() -> None:
    receiver = machine()
    receiver.handle(data(20, 1, b"a"), 0.0)
    receiver.handle(word(SegmentKind.HELLO, epoch=30), 0.0)
    assert delivered(receiver.handle(data(20, 2, b"b"), 0.0)) == [(b"b",)], "logged before"
    assert delivered(receiver.handle(data(30, 1, b"c"), 0.0)) == [(b"c",)]
    effects = receiver.handle(data(20, 3, b"zombie"), 0.0)
    assert delivered(effects) == []
    assert any(isinstance(effect, Reject) for effect in effects)


def test_a_gap_in_the_log_is_told_and_passed() -> None:
    receiver = machine()
    receiver.handle(data(20, 1, b"a"), 0.0)
    effects = receiver.handle(data(20, 4, b"d"), 0.0)
    assert delivered(effects) == [(b"d",)]
    (reject,) = [effect for effect in effects if isinstance(effect, Reject)]
    assert "2 to 3" in reject.reason


def test_silence_is_a_suspicion_and_ends_the_heartbeats() -> None:
    end = machine()
    assert Established() in end.handle(word(SegmentKind.STATUS), 0.0)
    assert end.next_deadline() == 1.0
    assert kinds(end.handle(Tick(), 1.0)) == [SegmentKind.STATUS]
    effects = end.handle(Tick(), 5.0)
    assert [type(effect) for effect in effects] == [Suspected]
    assert end.next_deadline() is None, "an inbox must not fill while its owner is away"
    effects = end.handle(word(SegmentKind.STATUS), 60.0)
    assert Established() in effects
    assert kinds(effects) == [SegmentKind.STATUS]


def test_a_good_bye_is_a_suspicion_and_what_was_logged_still_counts() -> None:
    end = machine()
    end.handle(data(20, 1, b"a"), 0.0)
    assert Suspected("closed by the peer") in end.handle(word(SegmentKind.BYE), 0.0)
    assert delivered(end.handle(data(20, 2, b"b"), 0.0)) == [(b"b",)]


def test_closing_says_good_bye_once_and_hears_nothing_more() -> None:
    end = machine()
    end.handle(word(SegmentKind.STATUS), 0.0)
    assert kinds(end.handle(CloseRequested(), 0.0)) == [SegmentKind.BYE]
    assert end.handle(CloseRequested(), 0.0) == []
    assert end.handle(data(20, 1, b"a"), 0.0) == []


def test_a_refusal_ends_it_until_it_is_asked_for_again() -> None:
    end = machine()
    end.handle(LinkUp(), 0.0)
    assert end.handle(LinkRefused("another cluster"), 0.0) == [
        Ended("another cluster", ((), ()), refused=True)
    ]
    assert end.phase is Phase.IDLE
    assert kinds(end.handle(LinkUp(), 0.0)) == [SegmentKind.HELLO]


def test_state_returns() -> None:
    end = machine()
    end.handle(LinkUp(), 0.0)
    end.handle(Submit(Lane.DATA, (b"x",)), 0.5)
    end.handle(data(20, 3, b"y"), 0.7)
    state = end.state()
    other = machine()
    other.restore(state)
    assert other.state() == state
    assert other.handle(data(20, 3, b"y"), 1.0) == end.handle(data(20, 3, b"y"), 1.0)
    other.check_invariants()
