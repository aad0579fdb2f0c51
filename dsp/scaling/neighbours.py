"""What an instance knows of its neighbours: who they are, and which of them are keepers.

The keeper of an operator is its most senior member: of the lowest generation, then of the lowest
name. A newcomer is of a later generation than the one that created it, so a keeper is never
displaced by birth, and members that agree on who is there agree on the keeper. While the first
keeper lives nothing is said about it. When it is lost, every neighbour tells the next one.
"""

from collections.abc import Iterable
from typing import Any

from dsp.core.machine import Send
from dsp.core.types import NodeId
from dsp.scaling.events import Deserted, Keep, Member

__all__ = ["Neighbours"]


class Neighbours:
    """The members of the neighbouring operators.

    A newcomer has no members until it is started: what it hears before is kept for that moment.

    Args:
        operators: the neighbouring operators.
        members: the first members; None for a newcomer.
    """

    def __init__(self, operators: Iterable[str], members: Iterable[Member] | None) -> None:
        self.members: dict[NodeId, Member] = {}
        self.bereaved: set[str] = set()
        self.started = members is not None
        self._by_operator: dict[str, dict[NodeId, Member]] = {name: {} for name in operators}
        self._eldest: dict[str, Member] = {}
        self._added: dict[NodeId, Member] = {}
        self._removed: set[NodeId] = set()
        for member in members or ():
            self._insert(member)

    def of(self, operator: str) -> tuple[NodeId, ...]:
        """The members of one operator, by name."""
        return tuple(sorted(self._by_operator[operator]))

    def count(self, operator: str) -> int:
        """How many members an operator has."""
        return len(self._by_operator[operator])

    def eldest(self, operator: str) -> Member | None:
        """The keeper of an operator, as far as is known here; None if nobody is left."""
        return self._eldest.get(operator)

    def side(self, operators: Iterable[str]) -> list[Member]:
        """The members of some operators."""
        return [member for name in operators for member in self._by_operator[name].values()]

    def start(
        self, members: Iterable[Member], bereaved: Iterable[str], lost: Iterable[NodeId]
    ) -> list[Send]:
        """Take the members that a newcomer is started with, and what it has heard since."""
        self.started = True
        for member in (*members, *self._added.values()):
            self._insert(member)
        self.bereaved.update(bereaved)
        for peer in sorted({*self._removed, *lost}):
            self.remove(peer)
        self._added, self._removed = {}, set()
        return [vote for operator in sorted(self.bereaved) for vote in self._vote(operator)]

    def add(self, members: Iterable[Member]) -> list[Send]:
        """Take members, and tell whom it concerns that another one is senior."""
        if not self.started:
            self._added.update((member.id, member) for member in members)
            return []
        effects: list[Send] = []
        for member in members:
            before = self._eldest.get(member.operator)
            self._insert(member)
            if member.operator in self.bereaved and self._eldest[member.operator] != before:
                if before is not None:
                    effects.append(Send(before.id, Keep(False)))
                effects.append(Send(member.id, Keep(True)))
        return effects

    def remove(self, peer: NodeId) -> list[Send | Deserted]:
        """Forget a member, and tell the next keeper if it was one."""
        if not self.started:
            self._removed.add(peer)
            return []
        member = self.members.pop(peer, None)
        if member is None:
            return []
        operator = member.operator
        rest = self._by_operator[operator]
        del rest[peer]
        if self._eldest[operator] != member:
            return []
        self.bereaved.add(operator)
        if not rest:
            del self._eldest[operator]
            return [Deserted(operator)]
        self._eldest[operator] = min(rest.values())
        return [*self._vote(operator)]

    def _vote(self, operator: str) -> list[Send]:
        eldest = self._eldest.get(operator)
        return [] if eldest is None else [Send(eldest.id, Keep(True))]

    def _insert(self, member: Member) -> None:
        self.members[member.id] = member
        self._by_operator[member.operator][member.id] = member
        eldest = self._eldest.get(member.operator)
        if eldest is None or member < eldest:
            self._eldest[member.operator] = member

    def state(self) -> tuple[Any, ...]:
        """Everything that changes, as an immutable value."""
        return (
            self.started,
            tuple(sorted(self.members.values())),
            tuple(sorted(self.bereaved)),
            tuple(sorted(self._added.values())),
            tuple(sorted(self._removed)),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to a state."""
        self.started, members, bereaved, added, removed = state
        self.members = {}
        self._by_operator = {name: {} for name in self._by_operator}
        self._eldest = {}
        for member in members:
            self._insert(member)
        self.bereaved = set(bereaved)
        self._added = {member.id: member for member in added}
        self._removed = set(removed)
