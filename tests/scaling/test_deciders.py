"""The rules by which instances decide."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.scaling.deciders import (
    DECIDERS,
    STAY,
    Bounded,
    Bounds,
    Centralised,
    Decider,
    Decision,
    Duplicate,
    Leave,
    Observation,
    Probabilistic,
    Ranked,
    Report,
    Retire,
    Threshold,
    Thresholds,
    make_decider,
)
from dsp.scaling.deciders.probabilistic import Literal
from dsp.scaling.deciders.ranked import IN_GAIN, OUT_GAIN, RESERVE


def names(count: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(f"b{number:02}") for number in range(count))


def seen(
    ratio: float, count: int = 10, place: int = 5, now: float = 0.0, *, held_back: bool = False
) -> Observation:
    row = names(count)
    return Observation(
        now=now,
        me=row[place],
        load=ratio * 100,
        capacity=100.0,
        keeper=place == 0,
        held_back=held_back,
        report=Report(row),
    )


class Fixed:
    """Always says the same."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def decide(self, observation: Observation) -> Decision:
        return self.decision


def share(decider: Decider, observation: Observation, what: Decision) -> float:
    return sum(decider.decide(observation) == what for _ in range(4000)) / 4000


def test_the_papers_rule_has_the_right_expectation() -> None:
    rule = Probabilistic(Random(1))
    assert share(rule, seen(0.875), Duplicate(1)) == pytest.approx(0.25, abs=0.03)
    assert share(rule, seen(0.35), Leave()) == pytest.approx(0.5, abs=0.03)
    twice = Counter(str(rule.decide(seen(1.925))) for _ in range(4000))
    assert set(twice) == {str(Duplicate(1)), str(Duplicate(2))}
    assert twice[str(Duplicate(2))] / 4000 == pytest.approx(0.75, abs=0.03)
    assert {rule.decide(seen(ratio)) for ratio in (0.61, 0.7, 0.79)} == {STAY}


def test_the_secure_target_leaves_nothing_to_the_dice_when_overloaded() -> None:
    rule = Probabilistic(Random(1), secure=True)
    assert {rule.decide(seen(1.2)) for _ in range(100)} == {Duplicate(1)}
    assert share(rule, seen(0.35), Leave()) == pytest.approx(0.5, abs=0.03)


def test_the_literal_reading_hardly_acts() -> None:
    rule = Literal(Random(1))
    for ratio in (0.0, 0.3, 0.6, 0.9, 1.3):
        assert {rule.decide(seen(ratio)) for _ in range(100)} == {STAY}
    assert rule.decide(seen(3.0)) == Duplicate(4)


@given(st.integers(1, 60), st.floats(0, 4, allow_nan=False))
def test_ranked_siblings_agree_on_the_number(count: int, ratio: float) -> None:
    """All at once they act as one decider would, but for one that may stand in for another."""
    decisions = []
    for place in range(count):
        rule = Ranked(Random(1))
        rule.decide(seen(0.7, count, place))
        rule.decide(seen(0.7, count, place))
        rule.decide(seen(0.7, count, place))
        decisions.append(rule.decide(seen(ratio, count, place)))
    created = sum(d.count for d in decisions if isinstance(d, Duplicate))
    left = sum(isinstance(d, Leave) for d in decisions)
    after = count + created - left
    assert after >= 1
    assert not (created and left)
    missing = count * ratio / 0.7 - count
    if created:
        assert abs(created - max(1.0, OUT_GAIN * missing)) <= 1.0 + 1e-9
    if left:
        assert left <= -IN_GAIN * missing + 2
        assert after + 1 >= count * ratio + RESERVE, "the others take the load, one stood in"


def test_ranked_is_reluctant_to_undo() -> None:
    rule = Ranked(Random(1))
    assert rule.decide(seen(0.6, 10, 9)) == STAY, "a newcomer saw the row grow"
    for _ in range(2):
        rule.decide(seen(0.7, 10, 9))
    assert rule.decide(seen(0.6, 10, 9)) == Leave()


def test_ranked_without_a_report_is_the_papers_rule() -> None:
    rule, paper = Ranked(Random(3)), Probabilistic(Random(3))
    alone = Observation(0.0, NodeId("x"), 90.0, 100.0)
    assert [rule.decide(alone) for _ in range(50)] == [paper.decide(alone) for _ in range(50)]


def test_leaders() -> None:
    for leader in (Centralised(), Threshold()):
        assert leader.decide(seen(1.4, place=3)) == STAY
        assert leader.decide(seen(0.7, place=0)) == STAY
    assert Centralised().decide(seen(1.4, place=0)) == Duplicate(10)
    assert Centralised().decide(seen(0.35, place=0)) == Retire(names(10)[5:])
    assert Centralised().decide(seen(0.1, count=1, place=0)) == STAY
    assert Threshold().decide(seen(1.4, place=0)) == Duplicate(1)
    assert Threshold().decide(seen(0.3, place=0)) == Retire(names(10)[9:])
    total = Observation(0.0, names(4)[0], 0.0, 100.0, True, report=Report(names(4), 560.0))
    assert Centralised().decide(total) == Duplicate(4)


def test_bounds_on_the_number() -> None:
    bounded = Bounded(Fixed(Duplicate(5)), Bounds(maximum=12))
    # Ten siblings share what there is room for.
    assert [bounded.decide(seen(2.0, place=place)) for place in (0, 1, 2, 9)] == [
        Duplicate(1),
        Duplicate(1),
        STAY,
        STAY,
    ]
    wide = Bounded(Fixed(Duplicate(5)), Bounds(maximum=31))
    assert [wide.decide(seen(2.0, place=place)) for place in (0, 9)] == [Duplicate(3), Duplicate(2)]
    alone = Bounded(Centralised(), Bounds(maximum=12))
    assert alone.decide(seen(1.4, place=0)) == Duplicate(2)
    stranger = Observation(0.0, NodeId("x"), 200.0, 100.0, report=Report(names(10)))
    assert bounded.decide(stranger) == STAY
    assert Bounded(Fixed(Duplicate(5)), Bounds(maximum=10)).decide(seen(2.0)) == STAY
    assert Bounded(Fixed(Leave()), Bounds(minimum=10)).decide(seen(0.1)) == STAY
    assert Bounded(Fixed(Leave()), Bounds(minimum=9)).decide(seen(0.1)) == Leave()
    retire = Bounded(Fixed(Retire(names(6))), Bounds(minimum=8))
    assert retire.decide(seen(0.1)) == Retire(names(2))
    unknown = Observation(0.0, NodeId("x"), 200.0, 100.0)
    assert bounded.decide(unknown) == Duplicate(5)


def test_no_scale_out_that_cannot_help() -> None:
    assert Bounded(Fixed(Duplicate(1)), Bounds()).decide(seen(2.0, held_back=True)) == STAY
    assert Bounded(Fixed(Leave()), Bounds()).decide(seen(0.1, held_back=True)) == Leave()


def test_cool_down_and_budget() -> None:
    cool = Bounded(Fixed(Duplicate(1)), Bounds(cool_down=10))
    acted = [cool.decide(seen(2.0, now=float(now))) != STAY for now in range(25)]
    assert [now for now, did in enumerate(acted) if did] == [0, 10, 20]
    budget = Bounded(Fixed(Duplicate(2)), Bounds(per_minute=3))
    decisions = [budget.decide(seen(2.0, now=now)) for now in (0.0, 1.0, 2.0, 59.0, 60.0, 61.0)]
    assert decisions == [Duplicate(2), Duplicate(1), STAY, STAY, Duplicate(2), Duplicate(1)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Thresholds(low=0.8, target=0.7, high=0.9),
        lambda: Bounds(minimum=0),
        lambda: Bounds(minimum=3, maximum=2),
        lambda: Bounds(cool_down=-1),
        lambda: Bounds(per_minute=0),
        lambda: make_decider("best", Random(1)),
    ],
)
def test_wrong_settings_are_refused(make: object) -> None:
    with pytest.raises(ConfigError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("name", DECIDERS)
def test_keepers_never_leave_and_the_same_seed_decides_the_same(name: str) -> None:
    first, second = (make_decider(name, Random(5)) for _ in range(2))
    for number in range(200):
        observation = seen((number % 23) / 10, place=0, now=float(number))
        decision = first.decide(observation)
        assert decision == second.decide(observation)
        assert decision != Leave()
        assert not isinstance(decision, Retire) or observation.me not in decision.siblings
