"""Schedulers and meters step by step: the states of the paper, what costs are learnt, who comes."""

from collections.abc import Sequence
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsp.balance.believed import REMEMBERED, RENEWED, Believed
from dsp.balance.estimates import Costs
from dsp.balance.events import (
    Assign,
    Departing,
    Executed,
    Matrices,
    Offered,
    Piggyback,
    Reply,
    Request,
    Worked,
)
from dsp.balance.hashing import HashFamily
from dsp.balance.machine_adaptive import AdaptiveScheduler
from dsp.balance.machine_adaptive_meter import AdaptiveMeter
from dsp.balance.machine_osg import OsgScheduler, SchedulerState
from dsp.balance.machine_osg_meter import MeterState, OsgMeter
from dsp.balance.settings import BalanceSettings
from dsp.balance.shares import Shares
from dsp.balance.wire import from_frame, from_request, to_frame, to_request
from dsp.core.envelope import Envelope, decode_envelope, encode_envelope
from dsp.core.machine import PeerAppeared, PeerLost, Received, Reject, Send
from dsp.core.types import NodeId
from dsp.errors import CodecError, LocalProtocolError

A, B, C, S = map(NodeId, "abcs")
SETTINGS = BalanceSettings(window=4, tolerance=0.05, report_records=4, report_pause=1.0)
FAMILY = HashFamily(SETTINGS.rows, SETTINGS.columns, SETTINGS.seed)
CHEAP, DEAR = b"cheap", b"dear"


def matrices(costs: dict[bytes, float], times: int = 4) -> Matrices:
    made = Costs(FAMILY)
    for key, seconds in costs.items():
        made.add([key] * times, [seconds] * times)
    return made.matrices()


def offered(
    scheduler: OsgScheduler | AdaptiveScheduler, *keys: bytes, now: float = 0.0, **more: object
) -> Sequence[NodeId]:
    (given,) = scheduler.handle(Offered(keys, **more), now)  # type: ignore[arg-type]
    scheduler.check_invariants()
    return cast("Assign", given).targets


def running(*names: NodeId) -> OsgScheduler:
    """A scheduler in RUN whose instances have nothing to do."""
    scheduler = OsgScheduler(SETTINGS, names)
    for name in names:
        scheduler.handle(Received(name, matrices({CHEAP: 1.0, DEAR: 8.0})), 0.0)
    for name in offered(scheduler, *[CHEAP] * len(names)):
        (along,) = scheduler.handle(Departing(name), 0.0)
        request = cast("Piggyback", along).request
        scheduler.handle(Received(name, Reply(request.epoch, -request.estimate)), 0.0)
    assert state(scheduler) is SchedulerState.RUN
    return scheduler


def state(machine: OsgMeter | OsgScheduler) -> object:
    """Asked anew: types narrow what an attribute was before."""
    return machine.status


# -- the meter of OSG -------------------------------------------------------------------------


def test_a_stable_meter_tells_after_two_windows_and_begins_anew() -> None:
    meter = OsgMeter(SETTINGS)
    keys = [CHEAP, DEAR, CHEAP, DEAR]
    assert meter.handle(Executed(S, keys, [1.0, 8.0, 1.0, 8.0]), 0.0) == []
    assert state(meter) is MeterState.STABILIZING
    (sent,) = meter.handle(Executed(S, keys, [1.0, 8.0, 1.0, 8.0]), 0.0)
    assert state(meter) is MeterState.START
    told = Costs.of(cast("Matrices", cast("Send", sent).message), FAMILY)
    assert told.estimate([CHEAP, DEAR]).tolist() == [1.0, 8.0]
    assert meter.handle(Executed(S, keys, [1.0] * 4), 0.0) == []


def test_costs_that_move_are_not_told() -> None:
    meter = OsgMeter(SETTINGS)
    for seconds in (1.0, 2.0, 4.0, 8.0):
        assert meter.handle(Executed(S, [CHEAP] * 4, [seconds] * 4), 0.0) == []
    assert state(meter) is MeterState.STABILIZING


def test_a_look_is_after_every_window_however_records_come() -> None:
    one, other = OsgMeter(SETTINGS), OsgMeter(SETTINGS)
    keys, seconds = [CHEAP, DEAR, DEAR] * 5, [1.0, 8.0, 8.0] * 5
    whole = one.handle(Executed(S, keys, seconds), 0.0)
    single = [
        effect
        for key, each in zip(keys, seconds, strict=True)
        for effect in other.handle(Executed(S, [key], [each]), 0.0)
    ]
    assert list(whole) == single
    assert one.state() == other.state()


def test_a_reply_has_what_the_schedulers_own_records_took() -> None:
    meter = OsgMeter(SETTINGS)
    meter.handle(Executed(A, [DEAR], [8.0]), 0.0)
    (sent,) = meter.handle(Executed(B, [CHEAP], [1.0], Request(3, 1.5)), 0.0)
    assert sent == Send(B, Reply(3, -0.5))


def test_a_scheduler_that_appears_gets_the_last_matrices() -> None:
    meter = OsgMeter(SETTINGS)
    meter.handle(Executed(A, [CHEAP] * 8, [1.0] * 8), 0.0)
    (greeting,) = meter.handle(PeerAppeared(B), 0.0)
    assert isinstance(cast("Send", greeting).message, Matrices)
    assert meter.handle(PeerAppeared(B), 0.0) == []
    meter.handle(PeerLost(A), 0.0)
    sent = meter.handle(Executed(B, [CHEAP] * 8, [1.0] * 8), 0.0)
    assert [cast("Send", each).to for each in sent] == [B]


@pytest.mark.parametrize("make", [OsgMeter, AdaptiveMeter])
def test_a_meter_refuses_what_makes_no_sense(make: type[OsgMeter | AdaptiveMeter]) -> None:
    with pytest.raises(LocalProtocolError):
        make(SETTINGS).handle(Executed(S, [CHEAP], []), 0.0)
    (reject,) = make(SETTINGS).handle(Received(S, Reply(1, 0.0)), 0.0)
    assert isinstance(reject, Reject)


# -- the scheduler of OSG ---------------------------------------------------------------------


def test_the_way_through_the_states_of_the_paper() -> None:
    scheduler = OsgScheduler(SETTINGS, (A, B))
    assert offered(scheduler, CHEAP, CHEAP, CHEAP) == [A, B, A]
    scheduler.handle(Received(A, matrices({CHEAP: 1.0})), 0.0)
    assert state(scheduler) is SchedulerState.ROUND_ROBIN
    scheduler.handle(Received(B, matrices({CHEAP: 3.0})), 0.0)
    assert state(scheduler) is SchedulerState.SEND_ALL
    # Nothing departs for an instance with a request before it has got a record of the epoch.
    assert scheduler.handle(Departing(A), 0.0) == []
    assert offered(scheduler, CHEAP, CHEAP) == [A, B]
    assert scheduler.handle(Departing(A), 0.0) == [Piggyback(Request(1, 1.0))]
    assert scheduler.handle(Departing(B), 0.0) == [Piggyback(Request(1, 3.0))]
    assert state(scheduler) is SchedulerState.WAIT_ALL
    scheduler.handle(Received(A, Reply(1, 2.0)), 0.0)
    scheduler.handle(Received(B, Reply(0, 99.0)), 0.0)  # out of date
    assert state(scheduler) is SchedulerState.WAIT_ALL
    scheduler.handle(Received(B, Reply(1, 3.0)), 0.0)
    assert state(scheduler) is SchedulerState.RUN
    assert scheduler.describe()["loads"] == {A: 3.0, B: 6.0}
    # Each costs 1 at A and 3 at B.
    assert offered(scheduler, *[CHEAP] * 5) == [A, A, A, A, B]
    scheduler.handle(Received(B, matrices({CHEAP: 1.0})), 0.0)
    assert (scheduler.status, scheduler.describe()["epoch"]) == (SchedulerState.SEND_ALL, 2)


def test_what_stays_behind_is_not_in_a_request() -> None:
    scheduler = OsgScheduler(SETTINGS, (A,))
    scheduler.handle(Received(A, matrices({DEAR: 8.0})), 0.0)
    offered(scheduler, DEAR, DEAR)
    assert scheduler.handle(Departing(A, behind=8.0), 0.0) == [Piggyback(Request(1, 8.0))]


def test_a_newcomer_is_no_flood_gate() -> None:
    scheduler = running(A, B)
    offered(scheduler, *[CHEAP] * 100)
    scheduler.handle(PeerAppeared(C), 0.0)
    assert sorted(offered(scheduler, *[CHEAP] * 30)) == [A] * 10 + [B] * 10 + [C] * 10


def test_keys_that_were_never_seen_cost_the_mean() -> None:
    costs = Costs(FAMILY)
    assert costs.estimate([CHEAP]).tolist() == [0.0]
    costs.add([CHEAP, DEAR], [1.0, 8.0])
    assert costs.estimate([b"new", CHEAP]).tolist() == [4.5, 1.0]
    assert costs.ratios().min() == 0.0


KEYS = st.lists(st.integers(0, 9).map(lambda number: b"%d" % number), max_size=40)


@given(KEYS, st.integers(0, 40))
def test_a_batch_is_shared_out_as_its_records_one_by_one(keys: list[bytes], place: int) -> None:
    one, other = (OsgScheduler(SETTINGS, (A, B, C)) for _ in range(2))
    for number, name in enumerate((A, B, C), 1):
        seen = matrices({b"%d" % key: number * (key + 1.0) for key in range(8)})
        for scheduler in (one, other):
            scheduler.handle(Received(name, seen), 0.0)
    pieces = [*offered(one, *keys[:place]), *offered(one, *keys[place:])]
    assert pieces == [target for key in keys for target in offered(other, key)]


@given(KEYS, st.lists(st.integers(0, 15), min_size=3, max_size=3), st.integers(0, 9))
def test_adaptive_gives_to_whoever_is_through_first(
    keys: list[bytes], room: list[int], before: int
) -> None:
    names, speeds = (A, B, C), {A: 0.5, B: 1.0, C: 2.0}
    costs = {b"%d" % key: key + 1.0 for key in range(10)}
    scheduler = AdaptiveScheduler(SETTINGS, names)
    for _ in range(2):
        for name in names:
            its = {key: speeds[name] * seconds for key, seconds in costs.items()}
            scheduler.handle(Received(name, matrices(its)), 0.0)
    offered(scheduler, *[b"0"] * before)
    (twin,) = (AdaptiveScheduler(SETTINGS),)
    twin.restore(scheduler.state())
    ends = {name: twin._left(way, 0.0) + way.speed * twin._costs.mean
            for name, way in twin._ways.items()}  # fmt: skip
    left = dict(zip(names, room, strict=True))
    turns = [names[(before + place) % 3] for place in range(3)]
    expected = []
    for seconds in twin._believed.of(keys):
        able = [name for name in turns if left[name]]
        if not able:
            break
        target = min(able, key=lambda name: ends[name])
        left[target] -= 1
        ends[target] += seconds * twin._ways[target].speed
        expected.append(target)
    assert offered(scheduler, *keys, room=room) == expected


@pytest.mark.parametrize("make", [OsgScheduler, AdaptiveScheduler])
def test_what_is_assigned_comes_with_the_work_of_each(
    make: type[OsgScheduler | AdaptiveScheduler],
) -> None:
    scheduler = make(SETTINGS, (A, B, C))
    for name in (A, B, C):
        scheduler.handle(Received(name, matrices({CHEAP: 1.0, DEAR: 8.0})), 0.0)
    keys = [DEAR, CHEAP, DEAR, CHEAP, CHEAP]
    (given,) = cast("Sequence[Assign]", scheduler.handle(Offered(keys), 0.0))
    costs = {CHEAP: 1.0, DEAR: 8.0}
    expected: dict[NodeId, float] = {}
    for key, target in zip(keys, given.targets, strict=True):
        expected[target] = expected.get(target, 0.0) + costs[key]
    assert given.work == pytest.approx(expected)


def test_what_is_believed_is_read_once_until_it_changes() -> None:
    asked: list[list[bytes]] = []

    def read(keys: list[bytes]) -> list[int]:
        asked.append(keys)
        return [len(asked)] * len(keys)

    believed = Believed(read)
    assert believed.of([CHEAP, DEAR, CHEAP]) == [1, 1, 1]
    assert believed.of([DEAR, b"new", b"new"]) == [1, 2, 2]
    believed.change()
    assert believed.of([CHEAP]) == [3]
    assert asked == [[CHEAP, DEAR], [b"new"], [CHEAP, DEAR, b"new"]]


def test_what_is_believed_of_many_keys_is_forgotten_and_read_again() -> None:
    keys = [b"%d" % number for number in range(REMEMBERED + 1)]
    believed = Believed(lambda some: [int(key) for key in some])
    assert believed.of(keys[:-1]) == [int(key) for key in keys[:-1]]
    assert believed.of([keys[5], keys[-1]]) == [5, REMEMBERED]
    believed.of(keys[: RENEWED + 1])
    believed.change()
    assert believed.of(keys[:2]) == [0, 1]
    assert len(believed._known) == 2


def test_matrices_of_another_size_are_refused() -> None:
    scheduler = OsgScheduler(SETTINGS, (A,))
    small = Matrices(1, 1, 0, (1.0,), (1.0,))
    (reject,) = scheduler.handle(Received(A, small), 0.0)
    assert "give all processes the same [balance]" in cast("Reject", reject).reason
    assert scheduler.handle(Received(B, small), 0.0) == []  # left already
    assert offered(OsgScheduler(SETTINGS), CHEAP) == []


# -- adaptive ---------------------------------------------------------------------------------


def test_what_was_executed_makes_room() -> None:
    scheduler = AdaptiveScheduler(SETTINGS, (A, B))
    assert sorted(offered(scheduler, *[CHEAP] * 4)) == [A, A, B, B]
    scheduler.handle(Worked(B, 2), 0.0)
    assert offered(scheduler, CHEAP, CHEAP) == [B, B]
    scheduler.handle(Worked(B, 99), 0.0)
    scheduler.check_invariants()


def test_it_knows_dear_records_from_cheap_ones() -> None:
    scheduler = AdaptiveScheduler(SETTINGS, (A, B))
    scheduler.handle(Received(A, matrices({CHEAP: 1.0, DEAR: 8.0})), 0.0)
    first, *others = offered(scheduler, DEAR, *[CHEAP] * 8)
    assert others[:7] == [A if first == B else B] * 7


def test_a_slow_instance_gets_less() -> None:
    scheduler = AdaptiveScheduler(SETTINGS, (A, B))
    for _ in range(3):
        scheduler.handle(Received(A, matrices({CHEAP: 1.0})), 0.0)
        scheduler.handle(Received(B, matrices({CHEAP: 10.0})), 0.0)
    targets = offered(scheduler, *[CHEAP] * 110)
    assert 8 <= list(targets).count(B) <= 12


def test_only_who_has_room_is_chosen() -> None:
    scheduler = AdaptiveScheduler(SETTINGS, (A, B))
    assert list(offered(scheduler, *[CHEAP] * 9, room=[1, 3])).count(A) == 1
    assert len(offered(scheduler, *[CHEAP] * 9, room=[0, 2])) == 2
    assert offered(scheduler, CHEAP, room=[0, 0]) == []
    assert offered(AdaptiveScheduler(SETTINGS), CHEAP) == []


def test_who_comes_and_who_goes() -> None:
    scheduler = AdaptiveScheduler(SETTINGS, (A,))
    offered(scheduler, *[CHEAP] * 5)
    scheduler.handle(PeerAppeared(B), 0.0)
    assert offered(scheduler, *[CHEAP] * 3) == [B, B, B]
    scheduler.handle(PeerLost(B), 0.0)
    assert offered(scheduler, CHEAP) == [A]


def test_reports_come_after_enough_records_and_some_time() -> None:
    meter = AdaptiveMeter(SETTINGS)
    assert meter.handle(Executed(S, [CHEAP] * 3, [1.0] * 3), 0.0) == []
    assert len(meter.handle(Executed(S, [CHEAP], [1.0]), 0.1)) == 1
    assert meter.handle(Executed(S, [CHEAP] * 50, [1.0] * 50), 0.5) == []
    (sent,) = meter.handle(Executed(S, [CHEAP], [1.0]), 1.2)
    assert Costs.of(cast("Matrices", cast("Send", sent).message), FAMILY).counts.total == 51


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3]), st.integers(1, 9)), max_size=30))
def test_states_are_restored(steps: list[tuple[int, int]]) -> None:
    """After any steps, a machine that is given the state of another one goes on like it."""
    for make in (OsgScheduler, AdaptiveScheduler):
        scheduler = make(SETTINGS, (A, B))
        for what, count in steps:
            match what:
                case 0:
                    offered(scheduler, *[CHEAP] * count)
                case 1:
                    scheduler.handle(Received(A, matrices({CHEAP: float(count)})), 0.0)
                case 2:
                    scheduler.handle(Received(B, matrices({DEAR: float(count)})), 0.0)
                case _:
                    scheduler.handle(Departing(A), 0.0)
                    scheduler.handle(Worked(A, count), 1.0)
            scheduler.check_invariants()
        twin = make(SETTINGS)
        twin.restore(scheduler.state())
        assert twin.state() == scheduler.state()
        assert offered(twin, CHEAP, DEAR, CHEAP) == offered(scheduler, CHEAP, DEAR, CHEAP)


# -- batches whose records are not timed one by one -------------------------------------------


def test_times_of_batches_are_divided_by_what_is_believed_of_keys() -> None:
    shares = Shares(BalanceSettings())
    for turn in range(400):
        dear = turn % 5
        keys = [DEAR] * dear + [CHEAP] * (8 - dear)
        parts = shares.of(keys, 8.0 * dear + 1.0 * (8 - dear))
    assert sum(parts) == pytest.approx(8.0 * 4 + 4.0)
    assert parts[0] == pytest.approx(8.0, rel=0.25)
    assert shares.of([], 1.0) == []


# -- on the wire ------------------------------------------------------------------------------


@pytest.mark.parametrize("message", [matrices({CHEAP: 1.0, DEAR: 8.0}), Reply(7, -0.25)])
def test_messages_travel(message: Matrices | Reply) -> None:
    data = encode_envelope(Envelope(source="a", balance=to_frame(message, "op")))
    frame = decode_envelope(data).balance
    assert (frame.operator, from_frame(frame)) == ("op", message)
    assert from_request(to_request(Request(3, 0.5))) == Request(3, 0.5)


def test_frames_that_make_no_sense_are_refused() -> None:
    frame = to_frame(matrices({CHEAP: 1.0}), "op")
    frame.matrices.rows = 99
    with pytest.raises(CodecError, match="99 x 54 cells"):
        from_frame(frame)
    frame.ClearField("matrices")
    with pytest.raises(CodecError, match="without a body"):
        from_frame(frame)


def test_bytes_of_balancing_are_kept_for_ever() -> None:
    golden = "0801 e203 11 0a026f70 5a0b 0807 11 000000000000d0bf"
    made = encode_envelope(Envelope(balance=to_frame(Reply(7, -0.25), "op")))
    assert made.hex() == golden.replace(" ", "")
