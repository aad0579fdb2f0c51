"""Verdicts on mutual exclusion: every interleaving of small groups.

In every state: members of two groups are never inside together. In every quiet state: everybody
has been inside as often as it wanted. Members of one group are interchangeable, so an order of
names is given by which of them are in group 0.
"""

from collections.abc import Callable
from itertools import combinations, permutations
from typing import Any

import pytest

from dsp.core.types import NodeId
from dsp.mutex.arbiter_token import ArbiterToken
from dsp.mutex.member import Member
from dsp.mutex.ra1 import RA1
from dsp.mutex.ra2 import RA2
from dsp.mutex.seat import Groups, Seat
from dsp.mutex.status import Status
from dsp.mutex.two_fgme import TwoFGME
from dsp.testing.explorer import View, explore, explore_orders, find_starvation, random_walks
from tests.mutex.models import Algorithm, EndlessGroups, GroupsModel, groups_of, names


def orders(count: int, first: int) -> list[Groups]:
    """Every choice of names for group 0."""
    everybody = names(count)
    return [
        (chosen, tuple(name for name in everybody if name not in chosen))
        for chosen in combinations(everybody, first)
    ]


def founder(seat: Seat) -> Algorithm:
    return Member(seat, founder=True)


@pytest.mark.parametrize(("count", "first"), [(2, 1), (3, 1), (3, 2)])
def test_two_entries_each_in_every_order(count: int, first: int) -> None:
    results = explore_orders(
        lambda order: GroupsModel(groups_of(order, first), entries=2), names(count), workers=1
    )
    for result in results.values():
        result.assert_holds()


@pytest.mark.parametrize("groups", orders(4, 2))
def test_two_and_two(groups: Groups) -> None:
    result = explore(GroupsModel(groups))
    result.assert_holds()
    assert 15_000 < result.states < 17_000


@pytest.mark.verify
def test_two_and_two_in_every_order_literally() -> None:
    for order in permutations(names(4)):
        explore(GroupsModel(groups_of(order, 2))).assert_holds()


@pytest.mark.verify
def test_two_and_two_with_two_entries() -> None:
    result = explore(GroupsModel(groups_of(names(4), 2), entries=2))
    result.assert_holds()
    assert (result.states, result.transitions) == (1_906_742, 6_224_530)


@pytest.mark.verify
@pytest.mark.parametrize("groups", [*orders(5, 2), *orders(5, 3)][::4])
def test_two_and_three(groups: Groups) -> None:
    explore(GroupsModel(groups)).assert_holds()


def waiting(name: NodeId) -> Callable[[View[Any]], bool]:
    return lambda view: view.machine(name).status is Status.WAITING


def starving(model: EndlessGroups) -> None:
    waits = {str(name): waiting(name) for group in model.groups for name in group}
    find_starvation(model, waits).assert_holds()


@pytest.mark.parametrize("groups", orders(2, 1))
@pytest.mark.parametrize("gap", [2, 3, 6])
def test_nobody_starves_one_and_one(groups: Groups, gap: int) -> None:
    starving(EndlessGroups(groups, gap=gap))


@pytest.mark.parametrize("groups", [orders(3, 1)[2], orders(3, 2)[0]])
def test_nobody_starves_one_and_two(groups: Groups) -> None:
    starving(EndlessGroups(groups, gap=2))


@pytest.mark.verify
@pytest.mark.parametrize("groups", [*orders(3, 1), *orders(3, 2)])
@pytest.mark.parametrize("gap", [3, 4])
def test_nobody_starves_one_and_two_in_every_order(groups: Groups, gap: int) -> None:
    starving(EndlessGroups(groups, gap=gap))


@pytest.mark.parametrize(("count", "first"), [(2, 1), (3, 1), (3, 2)])
def test_requests_may_be_withdrawn(count: int, first: int) -> None:
    for groups in orders(count, first):
        explore(GroupsModel(groups, cancels=names(count)[:2])).assert_holds()


@pytest.mark.verify
def test_requests_may_be_withdrawn_by_all_at_two_and_two() -> None:
    explore(GroupsModel(groups_of(names(4), 2), cancels=names(4)[:3])).assert_holds()


@pytest.mark.parametrize("make", [RA1, RA2, ArbiterToken, founder])
@pytest.mark.parametrize(("count", "first", "entries"), [(2, 1, 2), (3, 1, 1), (3, 2, 1)])
def test_the_other_algorithms_hold(
    make: type[Algorithm], count: int, first: int, entries: int
) -> None:
    for groups in orders(count, first):
        explore(GroupsModel(groups, make=make, entries=entries)).assert_holds()


@pytest.mark.parametrize("make", [ArbiterToken, founder])
def test_the_token_and_members_hold_at_two_and_two(make: type[Algorithm]) -> None:
    explore(GroupsModel(groups_of(names(4), 2), make=make)).assert_holds()


@pytest.mark.parametrize("make", [RA1, RA2, ArbiterToken])
def test_withdrawn_requests_of_the_other_algorithms(make: type[Algorithm]) -> None:
    groups = groups_of(names(3), 1)
    explore(GroupsModel(groups, make=make, cancels=[NodeId("a")])).assert_holds()


@pytest.mark.verify
@pytest.mark.parametrize("make", [RA1, RA2])
def test_ra1_and_ra2_with_two_entries(make: type[Algorithm]) -> None:
    for first in (1, 2):
        for groups in orders(3, first):
            explore(GroupsModel(groups, make=make, entries=2)).assert_holds()


@pytest.mark.parametrize("make", [TwoFGME, RA1, RA2, ArbiterToken])
def test_walks_through_six_and_six(make: type[Algorithm]) -> None:
    model = GroupsModel(groups_of(names(12), 6), make=make, entries=2)
    result = random_walks(model, seed=1, walks=3, steps=5000)
    result.assert_holds(complete=False)
    assert result.quiet == 3


@pytest.mark.verify
@pytest.mark.parametrize("first", [1, 3, 6])
def test_many_walks(first: int) -> None:
    model = GroupsModel(groups_of(names(12), first), entries=4)
    result = random_walks(model, seed=first, walks=200, steps=20_000)
    result.assert_holds(complete=False)
    assert result.quiet == 200
