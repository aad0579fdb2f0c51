"""Random applications in worlds: whatever scales, and whenever, nothing is lost or doubled."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from dsp.config import Config
from dsp.core.machine import Machine
from dsp.core.randomness import derive_random
from dsp.lab.coordination.runs import overlapping
from dsp.stream.app import run
from dsp.stream.groupings.balanced import Balanced
from dsp.stream.instance import Instance
from dsp.stream.summary import Summary
from dsp.testing import Host, LinkConditions, World
from dsp.testing.pipelines import WorldSpawner
from tests.stream.random_graphs import RandomApplication, restless

WORLDS = 100
PERIOD = 0.2


def live(seed: int, coordination: str = "ack", *, together: bool = False) -> Summary:
    """Run one world to its end and check what came out.

    Args:
        coordination: of scaling steps.
        together: all instances in one process, where quick bodies are called without queues.
    """
    chance = derive_random(seed, "conditions")
    conditions = LinkConditions(latency=0.0005, jitter=chance.choice([0.001, 0.02]))
    if seed % 3 == 0:
        conditions = conditions.but(loss=0.02, duplicate=0.02, reorder=0.05)
    with World(seed, conditions) as world:
        application = RandomApplication(world.random("application"), quick=together)
        graph = application.pipeline.graph()
        stops = seed % 4 == 1
        more = (
            {"inline_time": 0.002, "window_records": chance.choice([8, 8192])} if together else {}
        )
        results: dict[str, Any] = {}

        async def main(host: Host) -> None:
            config = Config.model_validate(
                {
                    "transport": {"url": host.url},
                    "stream": {"report_every": 0.1, "lost_after": 3600.0, **more},
                    "scaling": {"coordination": coordination},
                    # So soon that 60 records see every state of OSG.
                    "balance": {"osg_window": 4, "osg_tolerance": 1.0, "report_records": 4},
                }
            )
            spawner = WorldSpawner(world, graph, config, restless(PERIOD))
            app = run(
                application.pipeline,
                config,
                spawner=None if together else spawner,
                seed=seed,
                deciders=restless(PERIOD),
            )
            async with app:
                if stops:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(chance.uniform(0.1, 2.0)):
                            await app.join()
                    results["summary"] = await app.stop()
                else:
                    results["summary"] = await app.join()
            check_stages(spawner)

        def check_stages(spawner: WorldSpawner) -> None:
            for instance in spawner.instances.values():
                instance.machine.check_invariants()
                for machine in balancers(instance):
                    machine.check_invariants()

        host = world.add_host("app", main)
        world.run_until(lambda: host.finished, limit=600)
        summary: Summary = results["summary"]
        accepted = {
            name: operator.records_out
            for name, operator in summary.operators.items()
            if name.startswith("source")
        }
        if not stops:
            assert all(count == application.records for count in accepted.values()), accepted
        assert application.missing(accepted) == {}
        assert summary.repeats == 0
        if coordination == "2fgme":
            assert overlapping(summary.steps, graph) == []
        return summary


def balancers(instance: Instance) -> Iterator[Machine[Any, Any]]:
    """The schedulers and meters of an instance."""
    for distribution in instance.outlet._distributions.values():
        if isinstance(distribution, Balanced):
            yield distribution.scheduler
    if instance.metering is not None:
        yield from instance.metering._meters.values()


@pytest.mark.parametrize("tenth", range(10))
def test_a_hundred_worlds(tenth: int) -> None:
    actions = 0
    for seed in range(tenth * WORLDS // 10, (tenth + 1) * WORLDS // 10):
        try:
            actions += len(live(seed).actions)
        except BaseException as error:
            error.add_note(f"replay: tests.stream.test_worlds.live({seed})")
            raise
    assert actions > 20


@pytest.mark.parametrize("tenth", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2))])
def test_thirty_worlds_where_neighbours_never_scale_at_once(tenth: int) -> None:
    actions = 0
    for seed in range(tenth * 10, tenth * 10 + 10):
        try:
            actions += len(live(seed, "2fgme").actions)
        except BaseException as error:
            error.add_note(f'replay: tests.stream.test_worlds.live({seed}, "2fgme")')
            raise
    assert actions > 20


def test_worlds_of_one_process() -> None:
    actions = 0
    for seed in range(40):
        try:
            actions += len(live(seed, together=True).actions)
        except BaseException as error:
            error.add_note(f"replay: tests.stream.test_worlds.live({seed}, together=True)")
            raise
    assert actions > 20


def test_without_coordination_neighbours_do_scale_at_once() -> None:
    summaries = map(live, range(10))
    assert any(overlapping(summary.steps, summary.graph) for summary in summaries)


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(10))
def test_a_thousand_worlds_where_neighbours_never_scale_at_once(hundred: int) -> None:
    for seed in range(1000 + hundred * 100, 1100 + hundred * 100):
        try:
            live(seed, "2fgme")
        except BaseException as error:
            error.add_note(f'replay: tests.stream.test_worlds.live({seed}, "2fgme")')
            raise


@pytest.mark.soak
@pytest.mark.parametrize("hundred", range(50))
def test_five_thousand_worlds(hundred: int) -> None:
    for seed in range(1000 + hundred * 100, 1100 + hundred * 100):
        try:
            live(seed)
        except BaseException as error:
            error.add_note(f"replay: tests.stream.test_worlds.live({seed})")
            raise
