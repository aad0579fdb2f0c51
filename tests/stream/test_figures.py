"""What instances measure, and what becomes of it: demand, and the history of a run."""

from typing import Any

import pytest

import dsp
from dsp.stream.history import History
from dsp.stream.metrics import DEMAND_PERIODS, Demand, MetricCollector, uncensored

# -- demand -----------------------------------------------------------------------------------


def test_demand_is_a_mean_over_some_periods() -> None:
    demand = Demand()
    demand.add(100, 0.0, 1.0)
    assert demand.rate == 100
    demand.add(0, 0.0, 3.0)
    # By time, not by periods: a late report covers more of it.
    assert demand.rate == 25
    for _ in range(DEMAND_PERIODS):
        demand.add(10, 0.0, 1.0)
    assert demand.rate == 10


def test_what_is_held_back_counts_up_to_a_bound() -> None:
    demand = Demand()
    demand.add(80, 0.2, 1.0)
    assert demand.rate == pytest.approx(100)
    demand.add(80, 0.6, 1.0)
    assert demand.rate == pytest.approx(80 / 0.6)
    assert uncensored(10, 1.0) == uncensored(10, 0.5) == 20


def test_a_wait_that_spans_periods_counts_in_each() -> None:
    metrics = MetricCollector(1, None, 0.0)
    metrics.blocked(0.5)
    assert metrics.period(1.0, 0).blocked == pytest.approx(0.5)
    assert metrics.period(2.0, 0).blocked == pytest.approx(1.0)
    metrics.unblocked(2.25)
    metrics.unblocked(2.75)
    assert metrics.period(3.0, 0).blocked == pytest.approx(0.25)
    assert metrics.period(4.0, 0).blocked == 0


def test_figures_of_a_period() -> None:
    metrics = MetricCollector(2, None, 0.0)
    assert metrics.period(1.0, 0).capacity is None
    metrics.arrived(40)
    metrics.worked(20, 1.0)
    figures = metrics.period(3.0, 20)
    assert (figures.arrivals, figures.processed, figures.growth) == (20, 10, 10)
    assert figures.capacity == pytest.approx(2 / 0.05)
    assert figures.load == 20
    assert MetricCollector(2, 60.0, 0.0).capacity == 60


# -- history ----------------------------------------------------------------------------------


def make_history(began: float | None = None) -> History:
    pipeline = dsp.Pipeline("history")
    pipeline.source([1], name="numbers").map(abs, name="work").sink(print, name="out")
    return History(pipeline.graph(), began)


def figures(name: str, processed: float = 0.0, *, status: str = "ACTIVE") -> dict[str, Any]:
    return {
        "name": name,
        "operator": name.partition(".")[0],
        "status": status,
        "processed": processed,
        "arrivals": 0.0,
        "queue": 3,
        "load": 30.0,
        "capacity": 60.0 if processed else None,
    }


def report(
    time: float,
    *instances: dict[str, Any],
    over: tuple[str, ...] = (),
    events: tuple[tuple[float, str, str, int], ...] = (),
) -> dict[str, Any]:
    finals = [figures(name) for name in over]
    return {"time": time, "instances": [*instances], "over": finals, "events": [*events]}


def test_instances_count_from_their_activation_to_their_end() -> None:
    history = make_history()
    history.add(report(100.0, figures("work.1", 10.0)))
    history.add(report(101.0, figures("work.2", status="IDLE")))
    history.add(report(104.0, figures("work.1", 10.0), figures("work.2", 20.0)))
    history.add(report(110.0, over=("work.2", "work.3")))
    assert history.instances("work") == [(0.0, 1.0), (4.0, 2.0), (10.0, 1.0)]
    assert history.rates("work")["work.2"] == [(4.0, 20.0), (10.0, 0.0)]
    assert history.loads("work")["work.2"] == [(4.0, 0.5)]
    assert history.queues("work")["work.1"] == [(0.0, 3.0), (4.0, 3.0)]
    assert history.last == 10.0
    assert history.extremes("work", 0.0, 3.0) == (1, 1)
    assert history.extremes("work", 1.0, 20.0) == (1, 2)
    assert history.settled("work", 0.0, 10.0) == 2
    assert history.settled("work", 0.0, 7.0) == 1
    assert history.settled("out", 0.0, 7.0) == 0


def test_input_is_what_all_sources_gave_and_actions_have_their_time() -> None:
    history = make_history(began=50.0)
    history.add(report(51.0, figures("numbers.1", 5.0), figures("numbers.2", 7.0)))
    history.add(report(52.0, figures("numbers.1", 6.0), figures("work.1", 9.0)))
    history.add(report(53.0, events=((52.5, "work.1", "duplicated", 2),)))
    assert history.input_rate() == [(1.0, 12.0), (2.0, 6.0)]
    assert history.actions == [(2.5, "work.1", "duplicated", 2)]
