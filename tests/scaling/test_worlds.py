"""Scaling in worlds: random delays, antagonistic neighbours, crashes."""

import asyncio
from itertools import product

import pytest

from dsp.core.randomness import derive_random
from dsp.core.types import NodeId
from dsp.scaling.events import LeaveRequested, ScaleOutRequested
from dsp.scaling.status import Status
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


def conditions(seed: int, *, lossy: bool = False) -> LinkConditions:
    random = derive_random(seed, "links")
    calm = LinkConditions(latency=0.001, jitter=random.choice([0.0, 0.01, 0.1, 0.5]))
    if not lossy:
        return calm
    loss, twice, late = (random.choice([0.0, 0.05, 0.2]) for _ in range(3))
    return calm.but(loss=loss, duplicate=twice, reorder=late, reorder_delay=0.3)


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


def live_through(seed: int, *, lossy: bool = False) -> None:
    """A calm world: nobody dies. Where links lose, double and reorder, sessions make them good."""
    graph, sizes = GRAPHS[seed % len(GRAPHS)]
    with World(seed, conditions(seed, lossy=lossy)) as world:
        fleet = Fleet(world, graph, sizes, sessions=lossy)
        world.run(antagonists(fleet, 6))
        world.run_until(lambda: fleet.settled() and len(fleet.out) == fleet.entered, limit=120)
        world.run_for(2)
        assert sorted(fleet.out) == list(range(fleet.entered))
        fleet.check_views()


def live_through_crashes(seed: int, *, lossy: bool = False) -> None:
    graph, sizes = LINE, (2, 3, 2)
    with World(seed, conditions(seed, lossy=lossy)) as world:
        fleet = Fleet(world, graph, sizes, sessions=lossy)

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
        live_through(seed, lossy=seed % 4 == 3)


@pytest.mark.timeout(300)
def test_forty_worlds_with_crashes() -> None:
    for seed in range(40):
        live_through_crashes(seed, lossy=seed % 4 == 3)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("block", "kind"), list(product(range(10), ["calm", "lossy", "crashes", "lossy crashes"]))
)
def test_ten_thousand_worlds(block: int, kind: str) -> None:
    seeds = range(1000 + block * 1000, 2000 + block * 1000)
    lossy = kind.startswith("lossy")
    # Three of four worlds have good links, one of four sessions over bad ones.
    for seed in (one for one in seeds if (one % 4 == 3) is lossy):
        if not kind.endswith("crashes"):
            live_through(seed, lossy=lossy)
        elif seed % 5 == 0:
            live_through_crashes(seed, lossy=lossy)


@pytest.mark.parametrize("sessions", [False, True])
def test_newcomers_stop_when_their_initiator_dies_before_their_start(sessions: bool) -> None:
    initiator, newcomers = NodeId("b1"), {NodeId("b2"), NodeId("b3")}
    with World(3, LinkConditions(latency=0.2)) as world:
        fleet = Fleet(world, LINE, (1, 2, 1), sessions=sessions)

        async def story() -> None:
            assert fleet.scale(initiator, ScaleOutRequested(2))
            # A neighbour knows the newcomers already, and may send them records.
            neighbour = fleet.running[NodeId("a0")].scaler.neighbours
            await world.until(lambda: newcomers <= neighbour.members.keys())
            assert {fleet.running[name].scaler.status for name in newcomers} == {Status.IDLE}
            fleet.crash(initiator)

        world.run(story())
        world.run_until(lambda: sorted(fleet.running) == ["a0", "b0", "c0"], limit=30)
        assert {*fleet.dead} == {initiator, *newcomers}
        world.run_for(5)
        fleet.check_views()

        async def one_more() -> None:
            fleet.enter()
            await world.until(lambda: fleet.out == [0])

        world.run(one_more())


def test_the_same_seed_gives_the_same_trace() -> None:
    digests = []
    for _ in range(2):
        with World(7, conditions(7)) as world:
            fleet = Fleet(world, LINE, (2, 2, 2))
            world.run(antagonists(fleet, 4))
            digests.append((world.trace.digest, sorted(fleet.running)))
    assert digests[0] == digests[1]
    assert NodeId("a0") in digests[0][1]
