"""What is dealt with is let go of at once: nothing waits for the collector of garbage.

Processes of the engine let it run seldom, so records in reference cycles would fill their memory.
"""

import asyncio
import gc
from collections.abc import Iterator

import pytest

import dsp
from dsp.config import Config
from dsp.stream.inlet import Arrival
from dsp.stream.parcels import Sent
from dsp.stream.tokens import Token
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner
from tests.stream.runs import finished

RECORDS, BATCH = 4000, 16


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive() -> int:
    """How many parts of batches there are, in use or forgotten."""
    return sum(isinstance(each, Arrival | Sent | Token | dsp.Frame) for each in gc.get_objects())


def pipeline(result: dsp.Collector) -> dsp.Pipeline:
    job = dsp.Pipeline("letting-go")
    numbers = job.source(range(RECORDS)).map(abs, name="work", instances=2)
    numbers.filter(lambda number: number % 2).sink(result)
    return job


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once", "effectively_once"])
def test_between_processes(delivery: str) -> None:
    result = dsp.Collector()
    described = pipeline(result)
    before = alive()
    with World(1) as world:

        async def main(host: Host) -> None:
            stream = {"batch_records": BATCH, "delivery": delivery}
            config = Config.model_validate({"transport": {"url": host.url}, "stream": stream})
            spawner = WorldSpawner(world, described.graph(), config)
            async with dsp.run(described, config, spawner=spawner) as app:
                await app.join()

        app = world.add_host("app", main)
        world.run_until(lambda: app.finished, limit=600)
        assert len(result.values) == RECORDS // 2
        assert alive() - before < RECORDS / BATCH / 4


@pytest.mark.parametrize("inline_time", [0.0, 0.01])
def test_within_a_process(inline_time: float) -> None:
    result = dsp.Collector()
    before = alive()
    asyncio.run(finished(pipeline(result), batch_records=BATCH, inline_time=inline_time))
    assert len(result.values) == RECORDS // 2
    assert alive() - before < RECORDS / BATCH / 4
