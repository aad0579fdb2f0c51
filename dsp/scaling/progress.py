"""The operation that an instance is busy with, one at a time (D2)."""

from collections.abc import Hashable, Iterable
from enum import Enum, auto
from typing import Any

from dsp.core.machine import Send
from dsp.core.types import NodeId
from dsp.scaling.events import Member

__all__ = ["Operation", "Progress"]


class Operation(Enum):
    """What an instance is busy with."""

    NONE = auto()
    SPAWNING = auto()
    DUPLICATING = auto()
    LEAVING = auto()


class Progress:
    """How far the operation under way is.

    Attributes:
        operation: which one.
        token: what the decider waits for.
        newcomers: the siblings that are to be started.
        linked: who knows the newcomers (duplicating) or was told of the leaving (leaving).
        waiting: whose acknowledgement is missing.
        emptied: whether a leaver has no record left.
    """

    def __init__(self) -> None:
        self.operation = Operation.NONE
        self.token: Hashable = None
        self.newcomers: tuple[NodeId, ...] = ()
        self.linked: dict[NodeId, Member] = {}
        self.waiting: set[NodeId] = set()
        self.emptied = False

    def begin(self, operation: Operation, token: Hashable) -> None:
        """Take up an operation."""
        self.end()
        self.operation, self.token = operation, token

    def end(self) -> None:
        """Forget the operation."""
        self.operation, self.token, self.newcomers = Operation.NONE, None, ()
        self.linked, self.waiting, self.emptied = {}, set(), False

    def tell(self, members: Iterable[Member], message: Hashable) -> list[Send]:
        """Send a message to members, link them, and wait for their acknowledgements."""
        told = {member.id: member for member in members}
        self.linked.update(told)
        self.waiting = set(told)
        return [Send(name, message) for name in sorted(told)]

    def is_busy_with(self, operation: Operation, peer: NodeId) -> bool:
        """Whether that operation waits for that peer."""
        return self.operation is operation and peer in self.waiting

    def link(self, members: Iterable[Member]) -> None:
        """Count members among those that know the newcomers, if there are any."""
        if self.operation is Operation.DUPLICATING:
            self.linked.update((member.id, member) for member in members)

    def lose(self, peer: NodeId) -> bool:
        """Wait for a peer no longer. True if it was the last one that was waited for."""
        self.linked.pop(peer, None)
        self.newcomers = tuple(name for name in self.newcomers if name != peer)
        if peer not in self.waiting:
            return False
        self.waiting.discard(peer)
        return not self.waiting

    def state(self) -> tuple[Any, ...]:
        """Everything that changes, as an immutable value."""
        return (
            self.operation,
            self.token,
            self.newcomers,
            tuple(sorted(self.linked.values())),
            tuple(sorted(self.waiting)),
            self.emptied,
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to a state."""
        self.operation, self.token, self.newcomers, linked, waiting, self.emptied = state
        self.linked = {member.id: member for member in linked}
        self.waiting = set(waiting)
