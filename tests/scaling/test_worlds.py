"""Scaling in worlds: random delays, antagonistic neighbours, crashes."""

import asyncio
from itertools import product

import pytest

from dsp.core.randomness import derive_random
from dsp.core.types import NodeId
from dsp.scaling.events import LeaveRequested, ScaleOutRequested
from dsp.testing import LinkConditions, World
from tests.scaling.graphs import DIAMOND, LINE, SKIP, Graph
from tests.scaling.worlds import Fleet

GRAPHS: list[tuple[Graph, tuple[int, ...]]] = [
    (LINE, (1, 1, 1)),
    (LINE, (1, 2, 1)),
    (LINE, (2, 2, 2)),
    (LINE, (2, 3, 2)),
    (DIAMOND, (1, 2, 2, 1)),
    (SKIP, (2, 2, 2)),
]
Operation = ScaleOutRequested | LeaveRequested
OUT, IN = ScaleOutRequested(), LeaveRequested()
# Figure 3.3 is the first pair: an instance duplicates while its successor leaves.
PAIRS: list[tuple[Operation, Operation]] = [
    (OUT, IN),
    (IN, OUT),
    (OUT, OUT),
    (IN, IN),
    (ScaleOutRequested(2), IN),
]


def conditions(seed: int) -> LinkConditions:
    random = derive_random(seed, "links")
    return LinkConditions(latency=0.001, jitter=random.choice([0.0, 0.01, 0.1, 0.5]))


async def antagonists(fleet: Fleet, rounds: int) -> None:
    """Neighbours begin opposite operations at the same moment, while records flow."""
    random = fleet.random
    for number in range(rounds):
        if not all(fleet.active(operator) for operator in fleet.graph.operators):
            return  # after a crash, while its last sibling was leaving
        fleet.enter()
        first, second = PAIRS[(fleet.world.seed + number) % len(PAIRS)]
        left, right = random.choice(fleet.graph.edges)
        fleet.scale(random.choice(fleet.active(left)), first)
        if random.random() < 0.5:
            await asyncio.sleep(random.expovariate(20))
        fleet.scale(random.choice(fleet.active(right) or [NodeId("")]), second)
        await asyncio.sleep(random.expovariate(4))


def live_through(seed: int) -> None:
    graph, sizes = GRAPHS[seed % len(GRAPHS)]
    with World(seed, conditions(seed)) as world:
        fleet = Fleet(world, graph, sizes)
        world.run(antagonists(fleet, 6))
        world.run_until(lambda: fleet.settled() and len(fleet.out) == fleet.entered, limit=120)
        world.run_for(2)
        assert sorted(fleet.out) == list(range(fleet.entered))
        fleet.check_views()


def live_through_crashes(seed: int) -> None:
    graph, sizes = LINE, (2, 3, 2)
    with World(seed, conditions(seed)) as world:
        fleet = Fleet(world, graph, sizes)

        async def story() -> None:
            await antagonists(fleet, 3)
            for _ in range(1 + seed % 3):
                # An operator that would be deserted is the engine's to create anew.
                safe = [o for o in graph.operators if len(fleet.active(o)) > 1]
                if safe:
                    fleet.crash(fleet.random.choice(fleet.active(fleet.random.choice(safe))))
                await antagonists(fleet, 2)

        world.run(story())
        world.run_for(5)
        if all(fleet.active(operator) for operator in graph.operators):
            world.run_until(fleet.settled, limit=120)
            world.run_for(2)
            fleet.check_views()
            assert len({*fleet.out}) == len(fleet.out)


@pytest.mark.timeout(300)
def test_two_hundred_worlds() -> None:
    for seed in range(200):
        live_through(seed)


@pytest.mark.timeout(300)
def test_forty_worlds_with_crashes() -> None:
    for seed in range(40):
        live_through_crashes(seed)


@pytest.mark.soak
@pytest.mark.parametrize(("block", "kind"), list(product(range(10), ["calm", "crashes"])))
def test_ten_thousand_worlds(block: int, kind: str) -> None:
    for seed in range(1000 + block * 1000, 2000 + block * 1000):
        if kind == "calm":
            live_through(seed)
        elif seed % 5 == 0:
            live_through_crashes(seed)


def test_the_same_seed_gives_the_same_trace() -> None:
    digests = []
    for _ in range(2):
        with World(7, conditions(7)) as world:
            fleet = Fleet(world, LINE, (2, 2, 2))
            world.run(antagonists(fleet, 4))
            digests.append((world.trace.digest, sorted(fleet.running)))
    assert digests[0] == digests[1]
    assert NodeId("a0") in digests[0][1]
