"""Records on their way, and the acknowledgements that wait for them (D7).

Data and control go on lanes of their own, so "that was my last record" on one says nothing about
the other. A predecessor therefore acknowledges a deletion only when the leaver has confirmed every
record that was assigned to it, and a leaver goes on only when all of its own are confirmed.
"""

from typing import Any

from dsp.core.types import NodeId
from dsp.errors import LocalProtocolError

__all__ = ["Flush"]


class Flush:
    """Counts unconfirmed records for each receiver, departed ones included."""

    def __init__(self) -> None:
        self._unconfirmed: dict[NodeId, int] = {}
        self._owed: set[NodeId] = set()

    @property
    def clear(self) -> bool:
        """Whether every record that was assigned is confirmed."""
        return not self._unconfirmed

    @property
    def owes(self) -> bool:
        """Whether an acknowledgement waits."""
        return bool(self._owed)

    def assign(self, to: NodeId, count: int) -> None:
        """Count records that will be sent."""
        self._unconfirmed[to] = self._unconfirmed.get(to, 0) + count

    def confirm(self, by: NodeId, count: int) -> bool:
        """Count records that arrived. True if an acknowledgement that was owed is due now.

        Raises:
            LocalProtocolError: more than were assigned.
        """
        left = self._unconfirmed.get(by, 0) - count
        if left < 0:
            raise LocalProtocolError(f"{by} confirms {-left} records more than it was assigned")
        if left:
            self._unconfirmed[by] = left
            return False
        self._unconfirmed.pop(by, None)
        due = by in self._owed
        self._owed.discard(by)
        return due

    def owe(self, to: NodeId) -> bool:
        """Put off the acknowledgement to a leaver if records are on their way to it."""
        if to not in self._unconfirmed:
            return False
        self._owed.add(to)
        return True

    def forget(self, peer: NodeId) -> None:
        """A peer is lost, with whatever was on its way to it."""
        self._unconfirmed.pop(peer, None)
        self._owed.discard(peer)

    def state(self) -> tuple[Any, ...]:
        """Everything that changes, as an immutable value."""
        return tuple(sorted(self._unconfirmed.items())), tuple(sorted(self._owed))

    def restore(self, state: tuple[Any, ...]) -> None:
        """Return to a state."""
        unconfirmed, owed = state
        self._unconfirmed = dict(unconfirmed)
        self._owed = set(owed)
