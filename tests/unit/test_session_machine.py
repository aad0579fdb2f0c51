"""The session machine: meeting, sending and receiving. Events in, effects out."""

import pytest

from dsp.core.machine import Reject, Send, Tick
from dsp.core.session.segments import (
    Consumed,
    Deliver,
    Ended,
    Established,
    LinkRefused,
    LinkUp,
    Phase,
    Segment,
    Submit,
    Window,
)
from dsp.core.types import Lane
from dsp.errors import LocalProtocolError
from tests.unit.session_end import DATA, HELLO, LIMITS, PEER, ROOM, STATUS, C, D, End

# -- meeting ----------------------------------------------------------------------------------


def test_greets_until_it_is_named() -> None:
    end = End(is_open=False)
    end.feed(LinkUp())
    assert end.said() == [Segment(HELLO, 10, 0)]
    assert end.machine.phase is Phase.GREETING
    end.wait()
    assert (end.now, end.kinds()) == (2.0, [HELLO])
    end.wait()
    assert (end.now, end.kinds()) == (6.0, [HELLO])
    end.hears(HELLO, peer_epoch=9)
    assert end.said() == [Segment(HELLO, 10, 20)]
    assert end.machine.phase is Phase.GREETING
    end.hears(HELLO)
    assert end.seen == [
        Established(),
        Send(PEER, Segment(STATUS, 10, 20, windows=ROOM), C),
    ]


def test_a_greeting_that_is_not_answered_is_given_up() -> None:
    end = End(is_open=False)
    end.feed(LinkUp())
    while end.machine.phase is Phase.GREETING:
        end.wait()
    assert end.now == LIMITS.dead_after
    assert end.seen == [Ended("no answer for 30 s", ((), ()))]
    assert (end.machine.phase, end.machine.epoch) == (Phase.IDLE, 11)
    assert end.machine.next_deadline() is None


def test_a_refused_link_ends_what_there_is() -> None:
    end = End(is_open=False)
    end.feed(LinkUp())
    assert end.feed(LinkRefused("wrong key")) == [Ended("wrong key", ((), ()), refused=True)]
    assert end.feed(LinkRefused("again")) == []
    opened = End()
    opened.feed(Submit(D, (b"1",)))
    assert opened.feed(LinkRefused("late")) == [Ended("late", ((), (b"1",)), refused=True)]


def test_a_greeting_to_an_open_end_is_answered_by_a_status() -> None:
    end = End()
    end.hears(HELLO)
    assert end.kinds() == [STATUS]


def test_a_fresh_link_repeats_what_may_be_lost() -> None:
    end = End()
    end.feed(Submit(D, (b"1",)))
    end.feed(LinkUp())
    assert end.kinds() == [STATUS, DATA]
    greeting = End(is_open=False)
    greeting.feed(LinkUp())
    greeting.feed(LinkUp())
    assert greeting.kinds() == [HELLO]


# -- sending ----------------------------------------------------------------------------------


def test_submits_are_numbered_for_each_lane() -> None:
    end = End()
    end.feed(Submit(D, (b"1", b"2")))
    assert end.seen == [Send(PEER, Segment(DATA, 10, 20, 1, (b"1", b"2")), D)]
    end.feed(Submit(C, (b"3",)))
    assert end.said()[0].sequence == 1
    end.feed(Submit(D, (b"4",)))
    assert end.said()[0].sequence == 2


@pytest.mark.parametrize("payloads", [(b"",) * 9, (b"x" * 1001,)])
def test_a_submit_without_room_is_refused_and_changes_nothing(payloads: tuple[bytes, ...]) -> None:
    end = End()
    before = end.machine.state()
    assert not end.machine.may_submit(D, len(payloads), sum(map(len, payloads)))
    with pytest.raises(LocalProtocolError, match="ask may_submit first"):
        end.feed(Submit(D, payloads))
    assert end.machine.state() == before


def test_there_is_no_room_before_the_peer_tells_of_any() -> None:
    end = End(is_open=False)
    end.hears(HELLO)
    assert end.machine.phase is Phase.OPEN
    assert not end.machine.may_submit(D, 1, 0)
    end.hears(STATUS)
    assert end.machine.may_submit(D, 8, 1000)
    assert not end.machine.may_submit(D, 9, 0)


def test_an_old_status_takes_no_room_back() -> None:
    end = End()
    end.hears(STATUS, windows=(Window(0, 4, 4), Window(0, 4, 4)))
    assert end.machine.may_submit(D, 8, 1000)


def test_what_is_not_acknowledged_is_sent_again_a_few_at_a_time() -> None:
    end = End()
    for number in range(5):
        end.feed(Submit(D, (bytes([number]),)))
    end.wait()
    assert [segment.sequence for segment in end.said()] == [1, 2]
    assert end.now == 2.0
    end.hears(STATUS, windows=(ROOM[0], Window(2, 8, 1000)))
    assert [segment.sequence for segment in end.said()] == [3, 4]
    end.hears(STATUS, windows=(ROOM[0], Window(3, 8, 1000)))
    assert end.said() == []
    end.hears(STATUS, windows=(ROOM[0], Window(5, 8, 1000)))
    assert end.machine.settled()


def test_time_outs_grow_and_progress_makes_them_short_again() -> None:
    end = End()
    end.feed(Submit(D, (b"1",)))
    end.feed(Submit(D, (b"2",)))
    times = []
    for _ in range(3):
        end.wait()
        times.append((end.now, end.kinds()))
    assert times == [(2.0, [DATA, DATA]), (6.0, [DATA, DATA]), (8.0, [STATUS])]
    end.hears(STATUS, windows=(ROOM[0], Window(1, 8, 1000)))
    assert end.machine.next_deadline() == 10.0


@pytest.mark.parametrize("lane", [0, 1])
def test_an_acknowledgement_of_what_was_never_sent_is_rejected(lane: int) -> None:
    end = End()
    windows = tuple(Window(int(place == lane), 8, 1000) for place in range(2))
    end.hears(STATUS, windows=windows)
    assert end.only(Reject) == [Reject(PEER, f"acknowledges 1 of {list(Lane)[lane].value}")]


# -- receiving --------------------------------------------------------------------------------


def test_data_is_delivered_in_order_and_once() -> None:
    end = End()
    assert end.data(2, b"2") == []
    assert end.data(2, b"2") == []
    assert end.data(3, b"3", b"4") == []
    end.data(1, b"1")
    assert end.only(Deliver) == [
        Deliver(D, (b"1",)),
        Deliver(D, (b"2",)),
        Deliver(D, (b"3", b"4")),
    ]
    assert end.data(1, b"1") == []


def test_what_is_delivered_comes_before_anything_that_is_said() -> None:
    # An adapter may bring an answer while the effects are carried out.
    end = End(is_open=False)
    end.data(1, b"1")
    assert [type(effect) for effect in end.seen] == [Established, Deliver, Send]
    for number in range(2, 9):
        end.data(number)
        kinds = [type(effect) for effect in end.seen]
        assert kinds in ([Deliver], [Deliver, Send])


def test_acknowledgements_wait_for_company_but_not_for_long() -> None:
    end = End()
    end.data(1)
    assert end.kinds() == []
    end.wait()
    assert (end.now, end.kinds()) == (1.0, [STATUS])
    assert end.said()[0].windows[1] == Window(1, 8, 1000)
    end.data(2)
    end.data(3)
    assert end.kinds() == []
    end.data(4)
    assert end.kinds() == [STATUS]


def test_a_repeated_segment_is_acknowledged_again() -> None:
    end = End()
    end.data(1)
    end.wait()
    end.data(1)
    end.wait()
    assert (end.now, end.kinds()) == (2.0, [STATUS])


def test_room_is_told_when_half_of_the_window_was_taken() -> None:
    end = End()
    for number in range(1, 5):
        end.data(number)
    end.feed(Consumed(D, 3, 3))
    assert end.kinds() == []
    end.feed(Consumed(D, 1, 1))
    assert end.said()[0].windows[1] == Window(4, 12, 1004)


def test_more_cannot_be_consumed_than_was_received() -> None:
    end = End()
    end.data(1)
    with pytest.raises(LocalProtocolError, match="more consumed"):
        end.feed(Consumed(D, 2, 2))


@pytest.mark.parametrize(
    ("number", "payloads"),
    [
        (9, (b"",)),
        (1, (b"",) * 9),
        (2, (b"",) * 9),
        (1, (b"x" * 1001,)),
        (2, (b"x" * 1001,)),
    ],
)
def test_a_segment_over_its_window_is_rejected(number: int, payloads: tuple[bytes, ...]) -> None:
    end = End()
    end.data(number, *payloads)
    assert end.only(Reject) == [Reject(PEER, f"segment {number} of data is over its window")]


def test_what_waits_ahead_counts_too() -> None:
    end = End()
    end.data(2, *[b""] * 5)
    end.data(3, *[b""] * 4)
    assert len(end.only(Reject)) == 1
    end.data(1, *[b""] * 4)
    assert len(end.only(Reject)) == 1
    end.data(1, *[b""] * 3)
    assert len(end.only(Deliver)) == 2


def test_a_lost_promise_of_room_is_repeated_whatever_else_is_said() -> None:
    # The peer has used up its window and waits; the status that makes room is lost, and this end
    # goes on sending data, which carries no windows.
    end = End()
    for number in range(1, 9):
        end.data(number)
    end.feed(Consumed(D, 8, 8))
    assert end.kinds() == [STATUS]
    told = []
    for number in range(1, 11):
        end.now += 1.0
        end.feed(Submit(D, (b"",)))
        end.hears(STATUS, windows=(ROOM[0], Window(number, 100, 1000)))
        end.feed(Tick())
        told += end.said()
    assert [segment.windows[1] for segment in told] == [Window(8, 16, 1008)]
