"""The published 2-FGME fails: each fault found anew, on a shortest trace."""

from collections.abc import Hashable, Sequence
from enum import Enum, auto
from typing import cast

import pytest

from dsp.core.types import NodeId
from dsp.mutex.events import EnterRequested
from dsp.mutex.published import PublishedTwoFGME
from dsp.mutex.seat import Groups
from dsp.mutex.status import Status
from dsp.testing.explorer import Kind, Run, Script, Stimulus, View, call, explore, random_walks
from tests.mutex.models import Algorithm, GroupsModel, exit_of, groups_of, names


class Fault(Enum):
    """What to look for; the other faults are passed over."""

    BOTH_INSIDE = auto()
    UNASKED = auto()
    DEADLOCK = auto()


class PublishedGroups(GroupsModel):
    """The published algorithm. The ghost counts the entries that each may still ask for."""

    def __init__(self, groups: Groups, *, entries: int, look_for: Fault) -> None:
        super().__init__(groups, entries=entries, make=PublishedTwoFGME)
        self.look_for = look_for

    def ghost(self) -> Hashable:
        return tuple((name, self.entries) for group in self.groups for name in group)

    def scripts(self) -> Sequence[Script]:
        if self.look_for is Fault.DEADLOCK:
            return super().scripts()
        # Endless scripts are never unfinished, so getting stuck is no fault here.
        return [
            Script(name, (self.ask(name), exit_of(name)), endless=True)
            for group in self.groups
            for name in group
        ]

    def ask(self, name: NodeId) -> Stimulus:
        def act(run: Run) -> None:
            left = dict(cast("tuple[tuple[NodeId, int], ...]", run.ghost))
            left[name] -= 1
            run.ghost = tuple(left.items())
            run.feed(name, EnterRequested())

        def when(view: View[Algorithm]) -> bool:
            left = dict(cast("tuple[tuple[NodeId, int], ...]", view.ghost))
            return left[name] > 0 and view.machine(name).status is Status.IDLE

        return call(f"{name} asks", act, node=name, when=when)

    def invariant(self, view: View[Algorithm]) -> None:
        if self.look_for is Fault.BOTH_INSIDE:
            super().invariant(view)
        elif self.look_for is Fault.UNASKED:
            for group in self.groups:
                for name in group:
                    machine = cast("PublishedTwoFGME", view.machine(name))
                    assert not machine.intruded, f"{name} gets in and did not ask"


def steps_to(groups: Groups, entries: int, fault: Fault) -> int | None:
    """The length of a shortest trace to a fault, None if there is none."""
    result = explore(PublishedGroups(groups, entries=entries, look_for=fault))
    if result.violation is None:
        result.assert_holds()
        return None
    expected = Kind.DEADLOCK if fault is Fault.DEADLOCK else Kind.INVARIANT
    assert result.violation.kind is expected, str(result)
    return len(result.violation.trace)


A, B, C, D = names(4)


@pytest.mark.parametrize("entries", [1, 2, 3, 4])
def test_one_and_one_holds(entries: int) -> None:
    for fault in Fault:
        for groups in (((A,), (B,)), ((B,), (A,))):
            assert steps_to(groups, entries, fault) is None


def test_one_and_two_deadlocks_when_the_single_one_has_the_highest_name() -> None:
    assert steps_to(((C,), (A, B)), 1, Fault.DEADLOCK) == 16
    for single, pair in ((A, (B, C)), (B, (A, C))):
        assert steps_to(((single,), pair), 1, Fault.DEADLOCK) is None


@pytest.mark.parametrize(
    ("single", "pair", "lengths"),
    [(A, (B, C), (32, 27, 26)), (B, (A, C), (25, 22, 22)), (C, (A, B), (25, 22, 18))],
)
def test_one_and_two_with_two_entries_fails_in_every_way(
    single: NodeId, pair: tuple[NodeId, NodeId], lengths: tuple[int, int, int]
) -> None:
    assert tuple(steps_to(((single,), pair), 2, fault) for fault in Fault) == lengths


def test_two_and_two_lets_both_groups_in() -> None:
    assert steps_to(((A, C), (B, D)), 1, Fault.BOTH_INSIDE) == 22


@pytest.mark.verify
@pytest.mark.parametrize(
    ("groups", "lengths"),
    [
        (((A, B), (C, D)), (26, 29, 28)),
        (((A, C), (B, D)), (22, 24, 27)),
        (((A, D), (B, C)), (22, 24, 27)),
    ],
)
def test_two_and_two_fails_in_every_way(groups: Groups, lengths: tuple[int, int, int]) -> None:
    assert tuple(steps_to(groups, 1, fault) for fault in Fault) == lengths


def test_no_walk_through_six_and_six_comes_to_its_end() -> None:
    model = PublishedGroups(groups_of(names(12), 6), entries=1, look_for=Fault.DEADLOCK)
    for seed in range(5):
        assert not random_walks(model, seed=seed, walks=1, steps=5000, shortest=False).holds
