"""Graphs of operators for tests: who is upstream of whom, and the first instances."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from dsp.core.types import NodeId
from dsp.scaling.events import Member
from dsp.scaling.place import Place

__all__ = ["Graph", "LINE", "DIAMOND", "SKIP", "line"]


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators in order of their flow, and the edges between them."""

    operators: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def upstream(self, operator: str) -> tuple[str, ...]:
        return tuple(source for source, target in self.edges if target == operator)

    def downstream(self, operator: str) -> tuple[str, ...]:
        return tuple(target for source, target in self.edges if source == operator)

    def members(self, sizes: Sequence[int]) -> list[Member]:
        """The first instances: a0, a1, ... for operator a, with 0 as its keeper."""
        pairs = zip(self.operators, sizes, strict=True)
        return [Member(o, 0, NodeId(f"{o}{n}")) for o, size in pairs for n in range(size)]

    def place(self, member: Member) -> Place:
        operator = member.operator
        keeper = member.id == f"{operator}0"
        return Place(member, self.upstream(operator), self.downstream(operator), keeper)

    def around(self, member: Member, members: Sequence[Member]) -> list[Member]:
        """The members of neighbouring operators."""
        near = (*self.upstream(member.operator), *self.downstream(member.operator))
        return [other for other in members if other.operator in near]


def line(length: int) -> Graph:
    names = tuple("abcdefgh"[:length])
    return Graph(names, tuple(pairwise(names)))


LINE = line(3)
DIAMOND = Graph(("a", "b", "c", "d"), (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")))
SKIP = Graph(("a", "b", "c"), (("a", "b"), ("b", "c"), ("a", "c")))
