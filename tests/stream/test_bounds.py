"""Bounds on the number of instances, when all of them find that there are too few."""

from collections.abc import Iterator

import pytest

from dsp.config import Config
from dsp.stream.app import run
from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Collector
from dsp.stream.sources.base import IterableSource
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner

MAXIMUM = 6


def config_of(host: Host) -> Config:
    return Config.model_validate(
        {
            "transport": {"url": host.url},
            "scaling": {"period": 0.4, "cool_down": 0.8, "maximum": MAXIMUM},
            "stream": {"report_every": 0.2, "lost_after": 10.0},
        }
    )


def numbers() -> Iterator[int]:
    yield from range(100_000)


def described() -> Pipeline:
    pipeline = Pipeline("bounds")
    stream = pipeline.source(IterableSource(numbers(), rate=400.0), name="numbers")
    # Twice as much as the most instances can take.
    stream = stream.map(lambda number: number, name="work", service_time=0.03)
    stream.map(lambda number: number, name="more", service_time=0.03).sink(Collector(), name="out")
    return pipeline


@pytest.mark.parametrize("seed", range(4))
def test_instances_that_decide_at_once_keep_the_maximum(seed: int) -> None:
    with World(seed) as world:
        pipeline = described()
        spawners: list[WorldSpawner] = []

        async def main(host: Host) -> None:
            config = config_of(host)
            spawner = WorldSpawner(world, pipeline.graph(), config)
            spawners.append(spawner)
            async with run(pipeline, config, spawner=spawner, seed=seed) as app:
                await app.join()

        def count(operator: str) -> int:
            made = (spawners[0].instances if spawners else {}).values()
            return sum(each.operator.name == operator for each in made)

        world.add_host("app", main)
        most = {"work": 0, "more": 0}
        for _ in range(80):
            world.run_for(0.1)
            most = {name: max(before, count(name)) for name, before in most.items()}
        assert most == {"work": MAXIMUM, "more": MAXIMUM}
