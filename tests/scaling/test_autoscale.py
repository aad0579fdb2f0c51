"""AUTOSCALE+: regressions, windows, the paper's equations, and siblings that act together."""

from collections.abc import Callable
from math import exp, log
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.scaling.deciders import (
    STAY,
    AutoscalePlus,
    Decision,
    Duplicate,
    Leave,
    Observation,
    Proactive,
    Report,
)
from dsp.scaling.forecast import Forecast, Sample
from dsp.scaling.regression import best_model
from dsp.scaling.usable import CpuUse, capacity, reserved_capacity, usable_cpu

TIMES = [0.5 * n for n in range(20)]
CURVES: dict[str, Callable[[float], float]] = {
    "linear": lambda t: 3 + 2 * t,
    "logarithmic": lambda t: 5 + 3 * log(t + 0.5),
    "exponential": lambda t: 2 * exp(0.3 * t),
    "mean": lambda t: 4.0,
}


# -- regressions ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CURVES)
def test_the_model_that_made_the_points_fits_best(kind: str) -> None:
    curve = CURVES[kind]
    model = best_model(TIMES, [curve(t) for t in TIMES])
    assert model.kind == kind
    assert model.at(12.0) == pytest.approx(curve(12.0))


def test_a_mean_between_two_times_is_that_of_the_points_between_them() -> None:
    model = best_model(TIMES, [3 + 2 * t for t in TIMES])
    assert model.mean(10.0, 20.0) == pytest.approx(33.0)


def test_points_that_say_nothing_give_their_mean_and_none_are_refused() -> None:
    assert best_model([1.0, 2.0], [4.0, 8.0]).at(9.0) == 6.0
    assert best_model([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]).at(9.0) == 2.0
    with pytest.raises(ValueError, match="at least one"):
        best_model([], [])
    with pytest.raises(ValueError, match="2 times and 1 values"):
        best_model([1.0, 2.0], [1.0])


@given(st.lists(st.floats(0.0, 1e6), min_size=3, max_size=30))
def test_no_model_is_worse_than_the_mean(values: list[float]) -> None:
    times = [float(n) for n in range(len(values))]
    mean = sum(values) / len(values)
    residual = sum((value - mean) ** 2 for value in values)
    assert best_model(times, values).residual <= residual * (1 + 1e-9) + 1e-9


# -- windows ----------------------------------------------------------------------------------

ROW = (NodeId("a"), NodeId("b"))


def test_a_window_forgets_and_estimates_the_next_iteration() -> None:
    forecast = Forecast(5.0, 10.0, 2.0)
    assert forecast.input_rate() is None
    for t in range(31):
        forecast.note(Sample(float(t), 10.0 if t < 20 else 2.0 * t, ROW))
    # The line through the last ten seconds alone, between 30 and 35 seconds.
    assert forecast.model == "linear"
    assert forecast.input_rate() == pytest.approx(65.0)


def test_an_estimate_is_bounded_and_never_below_nothing() -> None:
    up, down = Forecast(10.0, 10.0, 0.0), Forecast(10.0, 10.0, 0.0)
    for t in range(11):
        up.note(Sample(float(t), exp(t), ROW))
        down.note(Sample(float(t), max(0.0, 50.0 - 5 * t), ROW))
    assert up.input_rate() == pytest.approx(2 * exp(10))
    assert down.input_rate() == 0.0


def test_nothing_is_monitored_while_the_system_settles_and_the_window_stays_until_then() -> None:
    forecast = Forecast(5.0, 10.0, 2.0)
    for t in range(11):
        forecast.note(Sample(float(t), 10.0, ROW))
    more = (*ROW, NodeId("c"))
    for t in range(11, 16):
        forecast.note(Sample(float(t), 99.0, more))
        assert forecast.paused
        assert forecast.last is not None
        assert (forecast.last.time, forecast.last.row) == (10.0, ROW)
        assert forecast.input_rate() == 10.0
    forecast.note(Sample(16.0, 50.0, more))
    assert not forecast.paused
    assert not forecast.ready
    assert forecast.input_rate() == 50.0


def test_a_later_change_makes_the_pause_longer() -> None:
    forecast = Forecast(5.0, 10.0, 4.0)
    forecast.note(Sample(0.0, 1.0, ROW))
    forecast.note(Sample(1.0, 1.0, ROW[:1]))
    forecast.note(Sample(4.0, 1.0, ROW))
    forecast.note(Sample(7.0, 1.0, ROW))
    assert forecast.paused
    forecast.note(Sample(8.0, 1.0, ROW))
    assert not forecast.paused


@pytest.mark.parametrize(
    ("bad", "named"), [((0.0, 1.0, 1.0), "iteration"), ((1.0, 0.0, 1.0), "window")]
)
def test_times_that_make_no_sense_are_refused(bad: tuple[float, ...], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        Forecast(*bad)


# -- equations --------------------------------------------------------------------------------


def test_usable_cpu_is_equation_7_and_at_most_a_core() -> None:
    # lambda x max(own, reserved) + (1 - others) / n
    assert usable_cpu(CpuUse(0.5, 0.4, 3), 0.3, 0.2) == pytest.approx(0.3 * 0.5 + 0.2)
    assert usable_cpu(CpuUse(0.1, 0.4, 3), 0.3, 0.5) == pytest.approx(0.3 * 0.5 + 0.2)
    assert usable_cpu(CpuUse(0.9, 0.0, 1), 0.3, 1.0) == 1.0


def test_capacity_is_equation_9_where_the_body_computes_and_13_counts_on_less() -> None:
    assert capacity(0.1, 0.6) == pytest.approx(6.0)
    assert capacity(0.1, 1.0) == pytest.approx(10.0)
    # A body that waits most of the time is not slowed down by a CPU that is half taken.
    assert capacity(0.1, 0.5, need=0.1) == pytest.approx(10.0)
    assert reserved_capacity(0.1, 0.5, 0.3) == pytest.approx(1.5)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 8), st.floats(0, 0.99), st.floats(0.01, 1))
def test_more_load_of_others_never_makes_more_usable(
    own: float, others: float, sharing: int, weight: float, reserved: float
) -> None:
    less = usable_cpu(CpuUse(own, others, sharing), weight, reserved)
    assert 0 <= less <= usable_cpu(CpuUse(own, others / 2, sharing), weight, reserved) <= 1


def test_shares_of_a_core_outside_of_it_are_refused() -> None:
    with pytest.raises(ConfigError, match="own"):
        CpuUse(own=1.5)
    with pytest.raises(ConfigError, match="sharing"):
        CpuUse(sharing=0)


def test_estimates_are_combined_as_asked_and_what_waits_is_added() -> None:
    assert Proactive(iteration=5.0).total(10.0, 12.0, 20.0) == 16.0
    assert Proactive(iteration=5.0, combine="min").total(10.0, 12.0, 20.0) == 14.0
    assert Proactive(iteration=5.0).total(10.0, None, 0.0) == 10.0


@pytest.mark.parametrize(
    "bad", [{"beta": 0.0}, {"margin": 1.1}, {"weight": 1.0}, {"reserved": 0.0}, {"combine": "mean"}]
)
def test_parameters_out_of_range_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(bad))):
        Proactive(**bad)  # type: ignore[arg-type]


# -- siblings ---------------------------------------------------------------------------------


class Operator:
    """Siblings that all hear the same, and whose newcomers are heard of after a while."""

    def __init__(self, count: int, **parameters: object) -> None:
        self.row = [NodeId(f"op-{n:03}") for n in range(count)]
        self.made = count
        self.parameters = Proactive(iteration=10.0, window=10.0, settle=5.0, **parameters)  # type: ignore[arg-type]
        self.deciders = {name: self.decider() for name in self.row}
        self.load = 0.0
        self.pending = 0.0
        self.expected: float | None = None
        self.now = 0.0

    def decider(self) -> AutoscalePlus:
        return AutoscalePlus(Random(1), self.parameters)

    def seen(self, name: NodeId) -> Observation:
        report = Report(tuple(self.row), self.load, self.pending, self.expected, keeper=self.row[0])
        return Observation(self.now, name, 0.0, 10.0, keeper=name == self.row[0], report=report)

    def watch(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            for name in self.row:
                self.deciders[name].watch(self.seen(name))

    def round(self, order: Random) -> int:
        """Every sibling has a turn within one period; what they do is seen at once."""
        acted, present = 0, list(self.row)
        order.shuffle(present)
        for place, name in enumerate(present):
            if place % max(1, len(present) // 8) == 0 and place // max(1, len(present) // 8) < 9:
                self.watch(1)
            decision = self.deciders[name].decide(self.seen(name))
            acted += decision is not STAY
            self.apply(name, decision)
        return acted

    def apply(self, name: NodeId, decision: Decision) -> None:
        match decision:
            case Duplicate(count):
                for _ in range(count):
                    self.row.append(NodeId(f"op-{self.made:03}"))
                    self.deciders[self.row[-1]] = self.decider()
                    self.made += 1
            case Leave():
                self.row.remove(name)


@settings(max_examples=40)
@given(st.integers(1, 12), st.floats(1.0, 400.0), st.integers(0, 10**6))
def test_siblings_together_make_one_step_to_the_degree_of_equation_12(
    count: int, load: float, seed: int
) -> None:
    operator = Operator(count, margin=0.5, beta=0.5)
    operator.load = load
    operator.watch(25)
    operator.round(Random(seed))
    wanted = max(1, -int(-(load / 5.0 - 1e-9) // 1))
    ideal = load / 10.0
    if ideal > count:
        assert len(operator.row) == wanted
    elif ideal < 0.5 * count:
        # As many as leave, or none where the reserve asks for as many as there are.
        assert len(operator.row) == min(count, wanted)
    else:
        assert len(operator.row) == count
    assert operator.row[0] == NodeId("op-000")  # the keeper stays


def test_together_they_do_not_pass_the_maximum() -> None:
    operator = Operator(5, maximum=12)
    operator.load = 1000.0
    operator.watch(25)
    operator.round(Random(3))
    assert len(operator.row) == 12
    operator.watch(30)
    operator.round(Random(4))
    assert len(operator.row) == 12


def test_within_the_working_interval_nobody_acts() -> None:
    operator = Operator(4, beta=0.8, margin=1.0)
    operator.load = 35.0
    operator.watch(25)
    assert operator.round(Random(1)) == 0
    operator = Operator(4, beta=0.1, margin=1.0)
    operator.load = 5.0
    operator.watch(25)
    assert operator.round(Random(1)) == 0


def test_what_parents_expect_counts_before_it_comes() -> None:
    operator = Operator(2, margin=1.0)
    operator.load, operator.expected = 15.0, 50.0
    operator.watch(25)
    operator.round(Random(1))
    assert len(operator.row) == 5
    operator = Operator(2, margin=1.0, combine="min")
    operator.load, operator.expected = 15.0, 50.0
    operator.watch(25)
    assert operator.round(Random(1)) == 0


def test_what_waits_is_worked_off_in_an_iteration() -> None:
    operator = Operator(2, margin=1.0)
    operator.load, operator.pending = 15.0, 150.0
    operator.watch(25)
    operator.round(Random(1))
    assert len(operator.row) == 3


def test_a_newcomer_waits_until_the_system_has_settled() -> None:
    operator = Operator(1)
    operator.load = 500.0
    operator.watch(3)
    assert operator.round(Random(1)) == 0


def test_without_a_row_the_papers_first_rule_stands_in() -> None:
    decider = AutoscalePlus(Random(1))
    seen = Observation(0.0, NodeId("a"), 300.0, 100.0)
    assert isinstance(decider.decide(seen), Duplicate)
