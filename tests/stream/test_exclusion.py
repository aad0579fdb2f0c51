"""Who may scale: instances of neighbouring operators never at once, and everybody in the end."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from dsp.core.types import NodeId
from dsp.mutex.edges import Edge
from dsp.scaling.events import Member
from tests.stream.office import Office

LINE = tuple(Edge(a, b) for a, b in ("ab", "bc"))
DIAMOND = tuple(Edge(a, b) for a, b in ("ab", "ac", "bd", "cd"))
ONE_MORE = (*LINE, Edge("a", "c"))


def walk(office: Office, *, limit: int = 20_000, until: Callable[[], bool] | None = None) -> None:
    """Let things happen until nothing can any more."""
    for _ in range(limit):
        if until is not None and until():
            return
        if not office.step():
            return
    waiting = [d.name for d in office.living() if d.exclusion and d.exclusion.waiting]
    raise AssertionError(f"no end: {waiting} wait")


def everybody_got_in(office: Office, asks: int) -> bool:
    return all(d.entries == asks for d in office.living() if d.exclusion is not None)


async def _quiet_walk(graph: tuple[Edge, ...], seed: int, core: int, later: int) -> None:
    office = Office(graph, Random(seed), core=core, later=later, asks=3)
    walk(office)
    assert everybody_got_in(office, 3)
    for desk in office.living():
        if desk.exclusion is not None and desk.exclusion.core is not None:
            desk.exclusion.core.chain.check_invariants()


@pytest.mark.parametrize("graph", [LINE, DIAMOND, ONE_MORE], ids=["line", "diamond", "triangle"])
@pytest.mark.parametrize(("core", "later"), [(1, 0), (1, 2), (2, 1)])
def test_neighbours_never_at_once_and_everybody_in_the_end(
    graph: tuple[Edge, ...], core: int, later: int
) -> None:
    async def main() -> None:
        for seed in range(8):
            await _quiet_walk(graph, seed, core, later)

    asyncio.run(main())


@pytest.mark.soak
def test_neighbours_never_at_once_in_many_walks() -> None:
    async def main() -> None:
        for seed in range(100, 1100):
            await _quiet_walk((LINE, DIAMOND, ONE_MORE)[seed % 3], seed, 1 + seed % 2, 2)

    asyncio.run(main())


def test_those_who_change_their_mind_are_in_nobodys_way() -> None:
    async def main() -> None:
        dropped = 0
        for seed in range(16):
            office = Office(LINE, Random(seed), core=1 + seed % 2, later=2, asks=4)
            office.withdrawals = 0.3
            walk(office)
            entered = sum(desk.entries for desk in office.desks.values())
            dropped += 4 * 3 * (3 + seed % 2) - entered
        assert dropped > 25

    asyncio.run(main())


@pytest.mark.parametrize("core", [1, 2])
def test_a_core_member_that_dies_is_followed(core: int) -> None:
    """Its permissions vanish, its entry too, and whoever waited for it asks the next keeper."""

    async def main() -> None:
        joined = 0
        for seed in range(24):
            chance = Random(seed)
            office = Office((LINE, DIAMOND)[seed % 2], chance, core=core, later=2, asks=4)
            # Who was let in by the dead may still be inside when others go in.
            office.strict = False
            enough = chance.randint(1, 25)

            def busy(office: Office = office, enough: int = enough) -> bool:
                return sum(desk.entries for desk in office.desks.values()) >= enough

            walk(office, until=busy)
            office.kill(NodeId(f"{chance.choice('abc')}.0"))
            walk(office)
            assert everybody_got_in(office, 4), seed
            joined += sum(
                desk.exclusion is not None and desk.exclusion.core is not None
                for desk in office.living()
                if ".new" in desk.name
            )
        # With one core member the eldest latecomer takes its place; with two the other one is left.
        assert (joined > 12) == (core == 1)

    asyncio.run(main())


def test_a_grant_that_comes_too_late_is_given_back() -> None:
    async def main() -> None:
        office = Office(LINE, Random(1), core=1, later=1, asks=1)
        while office.letters:  # the core groups are told
            office.deliver(next(iter(office.letters)))
        late = office.desks[NodeId("a.new0")]
        assert late.exclusion is not None
        late.exclusion.keeper_is(Member("a", 0, NodeId("a.0")))
        late.ask()
        office.deliver((late.name, NodeId("a.0")))
        late.exclusion.withdraw()
        office.deliver((NodeId("a.0"), late.name))
        assert not late.inside
        office.deliver((late.name, NodeId("a.0")))
        other = office.desks[NodeId("b.0")]
        other.ask()
        walk(office, until=lambda: other.inside)

    asyncio.run(main())


def test_a_keeper_that_is_senior_to_the_present_one_is_old_news() -> None:
    async def main() -> None:
        office = Office(LINE, Random(1), core=1, later=2, asks=1)
        one = office.desks[NodeId("a.new1")]
        assert one.exclusion is not None
        one.exclusion.keeper_is(Member("a", 1, NodeId("a.new0")))
        one.exclusion.keeper_is(Member("a", 0, NodeId("a.0")))
        one.ask()
        assert [to for source, to in office.letters if source == one.name] == ["a.new0"]

    asyncio.run(main())
