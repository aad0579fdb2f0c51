"""The session machine: how a session ends, and what follows. Events in, effects out."""

import pytest

from dsp.core.machine import Send, Tick
from dsp.core.session.segments import (
    CloseRequested,
    Deliver,
    Ended,
    Established,
    LinkRefused,
    LinkUp,
    Phase,
    Segment,
    SessionLimits,
    Submit,
    Superseded,
    Suspected,
    Window,
)
from tests.unit.session_end import BYE, DATA, HELLO, LIMITS, PEER, ROOM, STATUS, C, D, End

# -- silence ----------------------------------------------------------------------------------


def test_silence_makes_suspicion_and_then_an_end() -> None:
    end = End()
    end.feed(Submit(D, (b"1", b"2")))
    end.feed(Submit(C, (b"3",)))
    found: list[tuple[float, object]] = []
    while end.machine.phase is Phase.OPEN:
        end.wait()
        found += [(end.now, effect) for effect in end.seen if not isinstance(effect, Send)]
    assert found == [
        (20.0, Suspected("silent for 20 s")),
        (30.0, Ended("silent for 30 s", ((b"3",), (b"1", b"2")))),
    ]
    assert end.machine.epoch == 11


def test_a_word_ends_a_suspicion() -> None:
    end = End()
    while not end.machine.suspected:
        end.wait()
    end.hears(STATUS)
    assert end.seen == [Established()]
    assert end.machine.next_deadline() == min(24.0, 20.0 + LIMITS.suspect_after)


@pytest.mark.parametrize("start", [0.1, 0.3, 1.1, 2.2999999999, 1e6 / 3])
def test_a_deadline_that_is_reached_is_due(start: float) -> None:
    # (start + limit) - start may be less than the limit.
    end = End(is_open=False)
    end.machine.limits = SessionLimits(suspect_after=1.1, dead_after=3.3, heartbeat_every=0.7)
    end.now = start
    end.hears(STATUS)
    for _ in range(200):
        if end.machine.phase is not Phase.OPEN:
            break
        end.wait()
    assert end.machine.phase is Phase.IDLE


# -- epochs -----------------------------------------------------------------------------------


def test_a_newer_epoch_of_the_peer_ends_the_session() -> None:
    end = End()
    end.feed(Submit(D, (b"1",)))
    end.hears(HELLO, epoch=21, peer_epoch=0)
    assert end.seen == [
        Ended("the peer began anew", ((), (b"1",))),
        Send(PEER, Segment(HELLO, 11, 21), C),
    ]
    end.hears(STATUS, epoch=21, peer_epoch=11)
    assert end.machine.phase is Phase.OPEN
    end.hears(DATA, epoch=20, peer_epoch=10, sequence=1, payloads=(b"late",), lane=D)
    assert end.said() == [Segment(HELLO, 11, 21)]
    assert end.only(Deliver) == []


def test_data_of_an_earlier_session_of_ours_is_not_believed() -> None:
    end = End()
    end.hears(DATA, peer_epoch=9, sequence=1, payloads=(b"late",), lane=D)
    assert end.seen == [Send(PEER, Segment(HELLO, 10, 20), C)]


@pytest.mark.parametrize("is_open", [True, False])
def test_the_stale_one_stops(is_open: bool) -> None:
    end = End(is_open=is_open)
    if is_open:
        end.feed(Submit(D, (b"1",)))
    end.hears(HELLO, peer_epoch=99)
    lost = (b"1",) if is_open else ()
    reason = "a newer incarnation of this end is known there"
    assert end.seen == [Ended(reason, ((), lost)), Superseded()]
    for event in (LinkUp(), CloseRequested(), Tick(), LinkRefused("no")):
        assert end.feed(event) == []
    assert end.hears(HELLO, peer_epoch=10) == []
    assert end.machine.phase is Phase.REFUSED
    assert end.machine.next_deadline() is None


# -- parting ----------------------------------------------------------------------------------


def test_a_good_bye_acknowledges_and_is_answered() -> None:
    end = End()
    end.feed(Submit(D, (b"1",)))
    end.feed(Submit(D, (b"2",)))
    end.hears(BYE, windows=(ROOM[0], Window(1, 8, 1000)))
    assert end.seen == [
        Ended("closed by the peer", ((), (b"2",))),
        Send(PEER, Segment(HELLO, 11, 20), C),
    ]
    assert end.machine.phase is Phase.IDLE
    end.hears(BYE)
    assert end.said() == [Segment(HELLO, 11, 20)]
    assert end.machine.phase is Phase.IDLE


def test_a_good_bye_is_repeated_until_the_peers_end_is_over() -> None:
    end = End()
    end.data(1)
    end.feed(Submit(D, (b"1",)))
    end.feed(CloseRequested())
    bye = Segment(BYE, 10, 20, windows=(ROOM[0], Window(1, 8, 1000)))
    assert end.seen == [Send(PEER, bye, C), Ended("closed here", ((), (b"1",)))]
    end.wait()
    assert end.said() == [bye]
    assert end.data(2) == []
    assert end.hears(STATUS) == []
    assert end.feed(LinkUp()) == [Send(PEER, bye, C)]
    assert end.hears(HELLO, epoch=21) == []
    assert end.machine.phase is Phase.CLOSED
    assert end.machine.next_deadline() is None
    assert end.hears(HELLO, epoch=22, peer_epoch=0) == []


def test_a_good_bye_is_not_repeated_for_ever() -> None:
    end = End()
    end.feed(CloseRequested())
    said = []
    while end.machine.phase is Phase.PARTING:
        end.wait()
        said.append((end.now, end.kinds()))
    assert said == [(2.0, [BYE]), (5.0, [])]


def test_both_close_at_once() -> None:
    end = End()
    end.feed(CloseRequested())
    assert end.hears(BYE, epoch=19) == []
    assert end.machine.next_deadline() is not None
    end.hears(BYE)
    assert end.kinds() == [BYE]
    assert end.machine.phase is Phase.CLOSED


def test_nobody_waits_for_the_answer_of_a_suspect() -> None:
    end = End()
    while not end.machine.suspected:
        end.wait()
    end.feed(CloseRequested())
    assert end.kinds() == [BYE]
    assert end.machine.phase is Phase.CLOSED


@pytest.mark.parametrize("greets", [True, False])
def test_closing_without_a_session_says_nothing(greets: bool) -> None:
    end = End(is_open=False)
    if greets:
        end.feed(LinkUp())
    assert end.feed(CloseRequested()) == []
    assert end.machine.phase is Phase.CLOSED
    assert end.feed(LinkUp()) == []
    assert end.feed(CloseRequested()) == []


def test_a_good_bye_to_a_stranger_starts_nothing() -> None:
    end = End(is_open=False)
    end.hears(BYE, peer_epoch=9)
    assert end.kinds() == [HELLO]
    assert end.machine.phase is Phase.IDLE
    end.hears(BYE)
    assert end.seen == []


# -- the contract of machines -----------------------------------------------------------------


def test_state_is_a_value_and_can_be_returned_to() -> None:
    end = End()
    end.feed(Submit(D, (b"1",)))
    end.data(2, b"2")
    before = end.machine.state()
    hash(before)
    end.data(1, b"1")
    end.feed(CloseRequested())
    assert end.machine.state() != before
    end.machine.restore(before)
    assert end.machine.state() == before
    end.data(1, b"1")
    assert len(end.only(Deliver)) == 2
    end.machine.restore(before)
    assert end.machine.describe() == {
        "peer": PEER,
        "phase": "OPEN",
        "epochs": (10, 20),
        "suspected": False,
        "unacknowledged": {"control": 0, "data": 1},
    }
