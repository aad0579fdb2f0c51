"""Applications in which neighbouring operators exclude each other while they scale."""

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from dsp.config import Config
from dsp.lab.coordination.runs import overlapping
from dsp.scaling.deciders import STAY, Decider, Decision, Duplicate, Observation
from dsp.stream.app import App, run
from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Collector
from dsp.stream.sources.base import IterableSource
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner
from tests.stream.random_graphs import restless

RECORDS = 300


def config_of(url: str | None = None) -> Config:
    session = {"heartbeat_every": 0.1, "suspect_after": 0.5, "dead_after": 1.0}
    return Config.model_validate(
        {
            **({"transport": {"url": url, "session": session}} if url else {}),
            "scaling": {"coordination": "2fgme"},
            "stream": {"report_every": 0.05, "lost_after": 0.5, "batch_records": 8},
        }
    )


def described(instances: int, service_time: float = 0.005) -> tuple[Pipeline, Collector]:
    collector = Collector()
    pipeline = Pipeline("coordinated")
    stream = pipeline.source(IterableSource(range(RECORDS), rate=100.0), name="numbers")
    for name in "abc":
        stream = stream.map(
            lambda number: number, name=name, instances=instances, service_time=service_time
        )
    stream.sink(collector, name="out")
    return pipeline, collector


class Completing:
    """Creates a sibling whenever fewer than three instances are there; after a second, four."""

    def decide(self, observation: Observation) -> Decision:
        present = len(observation.report.siblings) if observation.report else 4
        return Duplicate(1) if present < 3 + (observation.now > 1) else STAY


def completing(operator: str, random: Random) -> tuple[Decider, float]:
    return Completing(), 0.2


@pytest.mark.parametrize(
    ("operator", "instances", "silent"),
    [("a", 1, False), ("b", 1, True), ("b", 2, False), ("c", 2, True)],
)
def test_the_next_keeper_coordinates_when_the_first_one_dies(
    operator: str, instances: int, silent: bool
) -> None:
    """All that belonged to the dead ends, records come out, and the operator goes on scaling."""
    with World(instances) as world:
        pipeline, collector = described(instances)
        graph = pipeline.graph()
        apps: list[App] = []
        spawners: list[WorldSpawner] = []

        async def main(host: Host) -> None:
            config = config_of(host.url)
            spawners.append(WorldSpawner(world, graph, config, completing))
            app = run(pipeline, config, spawner=spawners[0], seed=1, deciders=completing)
            async with app:
                apps.append(app)
                await app.join()

        def siblings() -> Iterator[str]:
            return (name for name in instances_of if name.startswith(f"{operator}."))

        host = world.add_host("app", main)
        world.run_until(lambda: bool(spawners))
        instances_of = spawners[0].instances

        def spreads() -> bool:
            living = [instances_of[name] for name in siblings()]
            return sum(each.settled for each in living) >= 2 and len(collector.values) >= 50

        world.run_until(spreads, limit=60)
        died = world.now
        keeper = next(name for name in siblings() if instances_of[name].machine.keeper)
        world.crash(keeper, silent=silent)
        world.run_until(lambda: host.finished, limit=120)
        assert {*collector.values} == {*range(RECORDS)}
        summary = apps[0].summary
        assert summary.repeats == len(collector.values) - RECORDS
        assert summary.lost == 0
        assert any(step.instance in siblings() and step.begun > died for step in summary.steps)
        # It is noticed after a second; what was asked for since is exclusive again.
        late = [step for step in summary.steps if step.asked > died + 1.0]
        assert overlapping(late, graph) == []


@pytest.mark.asyncio
async def test_instances_of_one_process() -> None:
    pipeline, collector = described(1, service_time=0.0)
    app = run(pipeline, config_of(), seed=3, deciders=restless(0.1))
    async with asyncio.timeout(60), app:
        summary = await app.join()
    assert sorted(collector.values) == list(range(RECORDS))
    assert summary.steps
    assert overlapping(summary.steps, app.graph) == []
    assert summary.messages["coordination"] > 0


@pytest.mark.asyncio
async def test_where_one_operator_scales_nothing_is_asked() -> None:
    collector = Collector()
    pipeline = Pipeline("alone")
    stream = pipeline.source(IterableSource(range(100), rate=100.0), name="numbers")
    stream.map(lambda number: number, name="work").sink(collector, name="out")
    async with run(pipeline, config_of(), seed=1, deciders=restless(0.1)) as app:
        summary = await app.join()
    assert summary.steps
    assert summary.messages["coordination"] == 0
