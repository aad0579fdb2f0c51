"""The end of a stream: whatever order words come in, nobody goes too soon or waits for ever."""

from collections.abc import Sequence
from itertools import permutations

import pytest

from dsp.core.types import NodeId
from dsp.stream.ending import Ending

A, B, X, Y = map(NodeId, ("a", "b", "x", "y"))


class Part:
    """An instance's part of the end, with what it says."""

    def __init__(self, before: Sequence[NodeId] = (A, B), after: Sequence[NodeId] = (X, Y)) -> None:
        self.told: list[NodeId] = []
        self.answered: list[NodeId] = []
        self.over = 0
        self.before, self.after = list(before), list(after)
        self.settled = self.quiet = True
        self.ending = Ending(self.told.append, self.answered.append, self._over)

    def _over(self) -> None:
        self.over += 1

    @property
    def state(self) -> tuple[bool, bool]:
        """Whether the end has begun, and whether this instance has ended."""
        return self.ending.begun, self.ending.ended

    def look(self) -> None:
        self.ending.step(
            settled=self.settled, quiet=self.quiet, before=self.before, after=self.after
        )

    def hear(self, name: NodeId) -> None:
        self.ending.heard(name)
        self.look()

    def acknowledge(self, name: NodeId) -> None:
        self.ending.acknowledged(name)
        self.look()


@pytest.mark.parametrize("before", [*permutations((A, B))])
@pytest.mark.parametrize("after", [*permutations((X, Y))])
def test_all_before_have_ended_then_all_after_have_taken_it(
    before: tuple[NodeId, ...], after: tuple[NodeId, ...]
) -> None:
    part = Part()
    part.look()
    assert part.state == (False, False)
    part.hear(before[0])
    assert part.state == (True, False)
    assert part.told == []
    part.hear(before[1])
    assert part.answered == list(before)
    assert (part.ending.ended, part.told) == (True, [X, Y])
    part.acknowledge(after[0])
    assert part.over == 0
    part.acknowledge(after[1])
    assert part.over == 1
    part.look()
    assert (part.over, part.told) == (1, [X, Y])


def test_what_is_under_way_delays_the_end_but_not_the_answer() -> None:
    part = Part(before=[A])
    part.quiet = False
    part.hear(A)
    assert part.answered == [A]
    assert not part.ending.ended
    part.quiet = True
    part.look()
    assert part.told == [X, Y]


def test_an_operation_delays_the_answer() -> None:
    part = Part(before=[A])
    part.settled = False
    part.hear(A)
    # Whoever waits for the answer stays, and so can tell the newcomers of this operation too.
    assert (part.answered, part.ending.ended, part.ending.begun) == ([], False, True)
    part.settled = True
    part.look()
    assert (part.answered, part.told) == ([A], [X, Y])


@pytest.mark.parametrize("moment", ["before any answer", "between", "in place of the last"])
def test_a_newcomer_after_it_is_told_and_waited_for(moment: str) -> None:
    new = NodeId("new")
    part = Part(before=[])
    part.look()
    if moment != "before any answer":
        part.acknowledge(X)
    if moment == "in place of the last":
        part.after = [X, new]
    else:
        part.after = [X, Y, new]
    part.look()
    assert part.told == [X, Y, new]
    for name in (X, Y):
        part.acknowledge(name)
    assert part.over == 0
    part.acknowledge(new)
    assert part.over == 1


def test_a_newcomer_before_it_has_to_end_too() -> None:
    part = Part(before=[A])
    part.settled = False
    part.hear(A)
    part.before = [A, B]
    part.settled = True
    part.look()
    assert not part.ending.ended
    part.hear(B)
    assert part.ending.ended


def test_those_that_go_are_waited_for_no_longer() -> None:
    part = Part()
    part.hear(A)
    part.before = [A]
    part.look()
    assert part.told == [X, Y]
    part.acknowledge(Y)
    part.after = [Y]
    part.look()
    assert part.over == 1


def test_nobody_goes_in_the_middle_of_an_operation() -> None:
    part = Part(before=[])
    part.look()
    part.settled = False
    part.acknowledge(X)
    part.acknowledge(Y)
    assert part.over == 0
    part.settled = True
    part.look()
    assert part.over == 1


def test_a_sink_is_over_when_it_has_ended() -> None:
    part = Part(before=[A], after=[])
    part.look()
    assert part.over == 0
    part.hear(A)
    assert (part.over, part.answered) == (1, [A])


def test_an_end_that_is_heard_twice_is_answered_twice() -> None:
    part = Part()
    part.hear(A)
    part.hear(A)
    assert part.answered == [A, A]
    assert not part.ending.ended
