"""An application that is ended at once: it says so, and nothing of it is left."""

import asyncio

import pytest

from dsp.config import Config
from dsp.errors import ClosedError, DspError
from dsp.stream.app import App, run
from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Collector
from dsp.stream.sources.base import IterableSource
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner

PATIENCE = 30.0


@pytest.mark.asyncio
async def test_join_raises_after_an_abort() -> None:
    tasks = asyncio.all_tasks()
    collector = Collector()
    pipeline = Pipeline("aborted")
    pipeline.source(iter(int, 1)).map(abs, name="same").sink(collector)
    app = run(pipeline)
    with pytest.raises(ClosedError):
        app.abort()

    async def abort() -> None:
        async with app:
            while not collector.values:
                await asyncio.sleep(0.001)
            assert app.running
            app.abort()
            app.abort()
            await app.join()

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(DspError, match="the application was stopped"):
            await abort()
    assert not app.running
    assert asyncio.all_tasks() == tasks


def test_instances_elsewhere_end_after_an_abort() -> None:
    with World(5) as world:
        collector = Collector()
        pipeline = Pipeline("aborted")
        numbers = pipeline.source(IterableSource(range(1000), rate=100.0), name="numbers")
        first = numbers.map(abs, name="first", instances=2, service_time=0.005)
        first.map(abs, name="second", instances=2, service_time=0.005).sink(collector)
        apps: list[App] = []

        async def main(host: Host) -> None:
            config = Config.model_validate(
                {"transport": {"url": host.url}, "stream": {"report_every": 0.1}}
            )
            spawner = WorldSpawner(world, pipeline.graph(), config)

            async def live() -> None:
                async with run(pipeline, config, spawner=spawner, seed=5) as app:
                    apps.append(app)
                    await app.join()

            with pytest.raises(DspError, match="the application was stopped"):
                await live()

        world.add_host("app", main)
        world.run_until(lambda: len(collector.values) > 50)
        apps[0].abort()
        # Well before anybody could be taken for dead: those that end say so.
        world.run_until(lambda: all(host.finished for host in world.hosts.values()), limit=4)
