"""Processes that die, in worlds: records go elsewhere, and nobody waits for the dead."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from dsp.config import Config
from dsp.core.types import NodeId, Peer
from dsp.errors import DspError
from dsp.scaling.deciders import STAY, Decider, Decision, Duplicate, Observation
from dsp.stream.app import App, run
from dsp.stream.host import Host as StreamHost
from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Collector
from dsp.stream.sources.base import IterableSource
from dsp.stream.spawners import SpawnRequest
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner

RECORDS = 300


def config_of(host: Host) -> Config:
    session = {"heartbeat_every": 0.1, "suspect_after": 0.5, "dead_after": 1.0}
    return Config.model_validate(
        {
            "transport": {"url": host.url, "session": session},
            "stream": {"report_every": 0.1, "lost_after": 0.5, "batch_records": 8},
        }
    )


def described(*, instances: int, by_key: bool = False) -> tuple[Pipeline, Collector]:
    collector = Collector()
    pipeline = Pipeline("lost")
    stream = pipeline.source(IterableSource(range(RECORDS), rate=100.0), name="numbers")
    if by_key:
        stream = stream.key_by(lambda number: number % 17)
    options = {"name": "work", "instances": instances, "service_time": 0.005}
    stream.map(lambda number: number, **options).sink(collector, name="out")
    return pipeline, collector


def never(operator: str, random: Random) -> None:
    """No decider."""


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_records_of_an_instance_that_dies_go_to_others(
    seed: int, silent: bool, by_key: bool
) -> None:
    with World(seed) as world:
        pipeline, collector = described(instances=3, by_key=by_key)
        apps: list[App] = []
        spawners: list[WorldSpawner] = []

        async def main(host: Host) -> None:
            config = config_of(host)
            spawner = WorldSpawner(world, pipeline.graph(), config, never)
            spawners.append(spawner)
            app = run(pipeline, config, spawner=spawner, seed=seed, deciders=never)
            async with app:
                apps.append(app)
                await app.join()

        host = world.add_host("app", main)
        world.run_until(lambda: len(collector.values) >= 20)
        mortal = [i for i in spawners[0].instances.values() if not i.machine.keeper]
        assert len(mortal) == 2
        world.crash(mortal[seed % 2].name, silent=silent)
        world.run_until(lambda: host.finished, limit=120)
        assert {*collector.values} == {*range(RECORDS)}
        # What was done and could not be told comes again, under the same identity.
        summary = apps[0].summary
        assert summary.repeats == collector.repeats == len(collector.values) - RECORDS
        assert summary.lost == 0
        assert summary.operators["numbers"].sent_again > 0 or not silent


@pytest.mark.parametrize("by_key", [False, True])
def test_nobody_waits_for_an_operator_that_is_lost_as_a_whole(by_key: bool) -> None:
    with World(3) as world:
        pipeline, collector = described(instances=1, by_key=by_key)
        told: list[str] = []

        async def main(host: Host) -> None:
            config = config_of(host)
            spawner = WorldSpawner(world, pipeline.graph(), config, never)
            with pytest.raises(DspError) as caught:
                async with run(pipeline, config, spawner=spawner, seed=3, deciders=never) as app:
                    await app.join()
            told.append(str(caught.value))

        host = world.add_host("app", main)
        world.run_until(lambda: len(collector.values) >= 20)
        world.crash(next(name for name in world.hosts if name != "app"))
        world.run_until(lambda: host.finished, limit=120)
        assert "no instance of work is left" in told[0]


# -- creators that die ------------------------------------------------------------------------


class Stuck(WorldSpawner):
    """Creates an instance, and never tells the one who asked."""

    stuck = 0

    async def spawn(self, host: StreamHost, request: SpawnRequest) -> Peer:
        peer = await super().spawn(host, request)
        if self.wanted(request):
            self.stuck += 1
            await asyncio.Event().wait()
        return peer

    wanted: Callable[[SpawnRequest], bool] = staticmethod(lambda request: True)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("later", [0.0, 2.0])
def test_first_instances_end_when_the_application_dies_before_their_start(
    later: float, silent: bool
) -> None:
    with World(1) as world:
        pipeline, _ = described(instances=2)
        spawners: list[Stuck] = []

        async def main(host: Host) -> None:
            config = config_of(host)
            spawners.append(Stuck(world, pipeline.graph(), config, never))
            async with run(pipeline, config, spawner=spawners[0], seed=1, deciders=never):
                pass

        world.add_host("app", main)
        world.run_until(lambda: bool(spawners) and spawners[0].stuck == 2)
        world.run_for(later)
        created = [host for name, host in world.hosts.items() if name != "app"]
        assert all(host.running for host in created)
        world.crash("app", silent=silent)
        world.run_until(lambda: all(host.finished for host in created), limit=60)


class Once:
    """Creates one sibling."""

    asked = False

    def decide(self, observation: Observation) -> Decision:
        first, self.asked = not self.asked, True
        return Duplicate(1) if first else STAY


def once(operator: str, random: Random) -> tuple[Decider, float]:
    return Once(), 0.5


@pytest.mark.parametrize("later", [0.0, 2.0])
def test_a_newcomer_ends_when_its_creator_dies_before_its_start(later: float) -> None:
    with World(2) as world:
        pipeline, collector = described(instances=2)
        spawners: list[Stuck] = []
        creators: list[NodeId] = []

        async def main(host: Host) -> None:
            config = config_of(host)
            spawner = Stuck(world, pipeline.graph(), config, once)

            def wanted(request: SpawnRequest) -> bool:
                if request.place.parent is None or creators:
                    return False
                creators.append(request.place.parent)
                return True

            spawner.wanted = wanted
            spawners.append(spawner)
            async with run(pipeline, config, spawner=spawner, seed=2, deciders=once) as app:
                await app.join()

        app = world.add_host("app", main)
        world.run_until(lambda: bool(spawners) and spawners[0].stuck == 1)
        world.run_for(later)
        world.crash(creators[0])
        living = [host for name, host in world.hosts.items() if name != creators[0]]
        world.run_until(lambda: app.finished, limit=120)
        world.run_until(lambda: all(host.finished for host in living), limit=60)
        assert {*collector.values} == {*range(RECORDS)}
