"""Fencing numbers: a term, a count, and the group, in one integer that grows.

Numbers of different groups are never equal. A number of a later term is above all of earlier ones,
so whoever takes a dead member's permissions back need not know how far that member had counted.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from dsp.core.machine import Send
from dsp.mutex.events import Admit, Carried, MutexEffect

__all__ = ["Numbering", "next_number", "next_term", "explain"]

_COUNT_BITS = 40


def next_number(high: int, group: int) -> int:
    """Give the number of an entry that follows all that is known."""
    return (high >> 1) + 1 << 1 | group


def next_term(high: int) -> int:
    """Give the number below all those of a new term."""
    return (high >> _COUNT_BITS + 1) + 1 << _COUNT_BITS + 1


def explain(number: int) -> str:
    """Give term, count and group in words, for logs."""
    count = (number >> 1) & ((1 << _COUNT_BITS) - 1)
    return f"term {number >> _COUNT_BITS + 1}, count {count}, group {number & 1}"


class Numbering:
    """The numbers of one member: what it knows of, and what goes with its messages.

    Args:
        group: of the member.
        edge: which pair of groups its messages are about.
    """

    def __init__(self, group: int, edge: str = "") -> None:
        self._group = group
        self._edge = edge
        self._high = 0
        self.number = 0
        """Of the latest entry."""

    def learn(self, number: int) -> None:
        """A number was seen."""
        self._high = max(self._high, number)

    def begin_term(self) -> None:
        """Permissions are taken back: be above what their former holder can have reached."""
        self._high = next_term(self._high)

    def stamp(self, effects: Iterable[MutexEffect]) -> list[MutexEffect]:
        """Put the number into what goes out, and a new one into each entry."""
        out: list[MutexEffect] = []
        last: object = None
        carried: Carried | None = None
        for effect in effects:
            if isinstance(effect, Send):
                body: Any = effect.message
                if body is not last or carried is None:  # the same to many is wrapped once
                    last = body
                    carried = Carried(self._edge, self._high, body)
                out.append(Send(effect.to, carried))
            elif isinstance(effect, Admit):
                self._high = self.number = next_number(self._high, self._group)
                last = None
                out.append(Admit(effect.token, self.number))
            else:
                out.append(effect)
        return out

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        return (self._high, self.number)

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        self._high, self.number = parts
