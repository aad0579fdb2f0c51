"""The papers' graphs as examples, each in a world: every instance a host, in virtual time."""

from collections import Counter
from typing import Any

import pytest

from dsp import Collector
from dsp.cli.live import View
from dsp.cli.running import Outcome, run_pipeline
from dsp.config import Config
from examples.graphs import diamond, maritime, star


def run_in_world(name: str, seed: int) -> Outcome:
    config = Config.model_validate(
        {"transport": {"url": "sim://graphs"}, "scaling": {"period": 0.3}}, strict=False
    )
    outcome = run_pipeline(f"examples.graphs.{name}:pipeline", config, View(), seed)
    assert outcome.faults == []
    assert outcome.summary.lost == 0
    return outcome


def stored(outcome: Outcome, sink: str = "store") -> list[Any]:
    body = outcome.bodies[sink]
    assert isinstance(body, Collector)
    assert body.repeats == 0
    return body.values


@pytest.mark.parametrize("seed", [1, 2])
def test_the_counter_that_cannot_be_partitioned_stays_alone_and_counts_all(seed: int) -> None:
    outcome = run_in_world("maritime", seed)
    ships = list(map(maritime.parse, maritime.signals()))
    boats = [ship for ship in ships if maritime.in_eez(ship) and maritime.is_fishing(ship)]
    found = stored(outcome)
    assert sorted(each["fishing"] for each in found if "fishing" in each) == [
        *range(1, len(boats) + 1)
    ]
    assert outcome.summary.operators["counter"].most_instances == 1
    assert outcome.summary.operators["parse"].most_instances >= 2
    last: dict[str, dict[str, Any]] = {}
    for each in found:
        if "kind" in each and each["count"] > last.get(each["kind"], {"count": 0})["count"]:
            last[each["kind"]] = each
    for kind, each in last.items():
        knots = [ship["knots"] for ship in ships if ship["kind"] == kind]
        assert each["count"] == len(knots)
        assert each["mean"] == pytest.approx(sum(knots) / len(knots))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_diamond_gives_every_reading_both_ways(seed: int) -> None:
    outcome = run_in_world("diamond", seed)
    degrees = list(map(diamond.scale, range(diamond.READINGS)))
    wanted = [
        diamond.label(way(d)) for d in degrees for way in (diamond.celsius, diamond.fahrenheit)
    ]
    assert Counter(stored(outcome)) == Counter(wanted)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_star_brings_everything_of_both_sources_to_both_sinks(seed: int) -> None:
    outcome = run_in_world("star", seed)
    events = [star.enrich(event) for each in ("door", "motion") for event in star._events(each)]

    def key(event: dict[str, Any]) -> tuple[str, int]:
        return event["sensor"], event["number"]

    assert sorted(stored(outcome, "log"), key=key) == sorted(events, key=key)
    night = [event for event in events if star.is_night(event)]
    assert sorted(stored(outcome, "alarms"), key=key) == sorted(night, key=key)
