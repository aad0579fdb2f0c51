"""Groupings in pipelines: who may be asked for, what reaches whom, and what it is good for."""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

import dsp
from dsp.config import Config
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.stream.app import run
from dsp.stream.batch import Batch
from dsp.stream.codecs import JsonCodec
from dsp.stream.graph import Edge, Grouping
from dsp.stream.groupings.making import checked
from dsp.stream.groupings.partial_key import TwoOwners
from dsp.stream.parcels import Made
from dsp.stream.sources.base import IterableSource
from dsp.stream.tokens import Token
from dsp.testing import Host, World
from dsp.testing.pipelines import WorldSpawner
from tests.stream.test_outlet import ONE, THREE, TWO, Around

RECORDS = 400


def same(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("grouping", "key", "fault"),
    [
        ("osq", same, "no grouping 'osq'; there are shuffle, round-robin"),
        ("osg", None, "grouping 'osg' goes by a key: grouped('osg', key=...)"),
        ("partial-key", None, "grouping 'partial-key' goes by a key"),
        ("round-robin", same, "grouping 'round-robin' has no use for a key"),
    ],
)
def test_a_grouping_that_cannot_be_had_is_refused_at_once(
    grouping: str, key: Callable[[int], int] | None, fault: str
) -> None:
    stream = dsp.Pipeline("p").source([1])
    with pytest.raises(ConfigError) as caught:
        stream.grouped(grouping, key)
    assert fault in str(caught.value)


def test_all_others_can() -> None:
    for grouping in Grouping:
        needs = grouping in (Grouping.KEY, Grouping.PARTIAL_KEY, Grouping.OSG)
        assert checked(grouping.value, same if needs else None) is grouping


# -- partial keys -----------------------------------------------------------------------------


def test_a_key_has_two_owners_and_keeps_them() -> None:
    names = tuple(NodeId(f"b.{n}") for n in range(6))
    owners, fewer = TwoOwners(names), TwoOwners(names[:-1])
    for key in range(300):
        pair = owners.pair(key)
        assert len({*pair}) == 2
        assert pair[0] == owners.of(key)
        # Only who had the one that went gets another.
        assert len({*pair} - {*fewer.pair(key)}) == int(names[-1] in pair)
    assert TwoOwners(names[:1]).pair(1) == (names[0], names[0])


async def emitted(around: Around, values: list[int]) -> None:
    token = Token(lambda: None)
    await around.outlet.emit(Made(around.edge, Batch(values, range(len(values)))), token)
    token.release()


def grouped(grouping: Grouping, names: tuple[NodeId, ...], *, window: int = 10_000) -> Around:
    around = Around(Grouping.ROUND_ROBIN, window=window)
    around.names = names
    edge = Edge("a", "b", grouping, JsonCodec(), key=same)
    limits = around.outlet._limits["b"]
    around.edge = edge
    around.outlet = type(around.outlet)(around, [(edge, limits)], keep=True)
    return around


def test_records_of_one_key_go_to_both_owners_in_turns() -> None:
    async def main() -> None:
        around = grouped(Grouping.PARTIAL_KEY, (ONE, TWO, THREE), window=10_000)
        await emitted(around, [7] * 100)
        for each in around.outlet._distributions.values():
            each.flush()
        got: Counter[NodeId] = Counter()
        for to, _, ids in around.sent:
            got[to] += len(ids)
        assert sorted(got.values()) == [50, 50]
        around.outlet.close()

    asyncio.run(main())


@pytest.mark.parametrize("grouping", [Grouping.OSG, Grouping.ADAPTIVE, Grouping.PARTIAL_KEY])
def test_what_waits_for_one_that_is_lost_goes_to_others(grouping: Grouping) -> None:
    async def main() -> None:
        around = grouped(grouping, (ONE, TWO), window=10_000)
        await emitted(around, list(range(30)))
        around.lose(ONE)
        for each in around.outlet._distributions.values():
            each.flush()
        kept = [each for to, _, ids in around.sent for each in ids if to == TWO]
        assert sorted({*kept}) == list(range(30))
        around.progress(TWO, *(number for to, number, _ in around.sent if to == TWO))
        assert around.outlet.idle
        around.outlet.close()

    asyncio.run(main())


def test_adaptive_waits_where_nobody_has_room_and_chooses_when_somebody_has() -> None:
    async def main() -> None:
        around = grouped(Grouping.ADAPTIVE, (ONE, TWO), window=10)
        emitting = asyncio.ensure_future(emitted(around, list(range(40))))
        await asyncio.sleep(0)
        assert sum(len(ids) for _, _, ids in around.sent) == 20
        around.progress(TWO, records=10)
        await asyncio.sleep(0)
        assert sum(len(ids) for to, _, ids in around.sent if to == TWO) == 20
        around.progress(TWO, records=10)
        await asyncio.wait_for(emitting, 30)
        around.outlet.close()

    asyncio.run(main())


# -- whole pipelines --------------------------------------------------------------------------


def cost(value: int) -> float:
    """One value in eight is twenty times as dear."""
    return 0.02 if value % 8 == 0 else 0.001


def fixed(operator: str, random: Random) -> None:
    """Nobody scales."""


def seconds_for(grouping: str, *, keyed: bool = False) -> float:
    """Run 4 instances at their limit in a world; give the virtual time until all is done."""
    result = dsp.Collector()
    pipeline = dsp.Pipeline("p")
    # Dear ones come at the same place of every round: the worst that can happen to round-robin.
    stream = pipeline.source(IterableSource(range(RECORDS), rate=900.0))
    stream = stream.grouped(grouping, key=(lambda value: value % 8) if keyed else None)
    stream.map(same, name="work", instances=4, service_time=cost).sink(result)
    graph = pipeline.graph()
    found: dict[str, float] = {}
    with World(5) as world:

        async def main(host: Host) -> None:
            config = Config.model_validate(
                {
                    "transport": {"url": host.url},
                    "balance": {"osg_window": 8, "osg_tolerance": 1.0, "report_records": 8},
                }
            )
            started = asyncio.get_running_loop().time()
            spawner = WorldSpawner(world, graph, config, fixed)
            async with run(pipeline, config, spawner=spawner, seed=5, deciders=fixed) as app:
                summary = await app.join()
            found["seconds"] = asyncio.get_running_loop().time() - started
            assert summary.repeats == 0

        host = world.add_host("app", main)
        world.run_until(lambda: host.finished, limit=600)
    assert sorted(result.values) == list(range(RECORDS))
    return found["seconds"]


@pytest.mark.parametrize(
    ("grouping", "keyed"),
    [("osg", True), ("adaptive", True), ("adaptive", False), ("partial-key", True)],
)
def test_nothing_is_lost_whatever_the_grouping(grouping: str, keyed: bool) -> None:
    assert seconds_for(grouping, keyed=keyed) > 0
