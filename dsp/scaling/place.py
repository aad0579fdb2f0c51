"""Where an instance stands in the graph of operators."""

from dataclasses import dataclass

from dsp.core.types import NodeId
from dsp.scaling.events import Member

__all__ = ["Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """An instance's place in the graph, which never changes.

    Attributes:
        member: its name, operator and generation.
        upstream: the operators that send to it.
        downstream: the operators that it sends to.
        keeper: whether it is the first keeper of its operator: the most senior of those that the
            application starts with.
        parent: who created it; None for those that the application starts with.
    """

    member: Member
    upstream: tuple[str, ...] = ()
    downstream: tuple[str, ...] = ()
    keeper: bool = False
    parent: NodeId | None = None

    def newcomer(self, name: NodeId) -> "Place":
        """The place of a sibling that the instance at this one creates."""
        member = Member(self.member.operator, self.member.generation + 1, name)
        return Place(member, self.upstream, self.downstream, False, self.member.id)

    def adjoins(self, operator: str) -> bool:
        """Whether an operator is next to this one in the graph."""
        return operator in self.upstream or operator in self.downstream
