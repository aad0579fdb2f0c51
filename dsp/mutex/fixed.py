"""What the algorithms for groups that never change have in common: the events around a visit."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from dsp.core.machine import Cancelled, Received, Reject
from dsp.core.types import NodeId
from dsp.errors import InvariantError, LocalProtocolError
from dsp.mutex.events import Admit, EnterRequested, ExitRequested, MutexEffect, MutexEvent
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status

__all__ = ["FixedGroups"]


class FixedGroups(ABC):
    """A member of groups that never change, in which nobody crashes.

    A withdrawn request cannot be taken back from these algorithms: it stays, and leaves again the
    moment it is let in. A new request of the same member takes its place.

    Args:
        seat: who takes part.
    """

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.me = seat.me
        self.group = seat.group
        self.status = Status.IDLE
        self._token: Hashable = None
        self._withdrawn = False
        self._peers = frozenset(seat.others)

    # -- what an algorithm adds -----------------------------------------------------------

    @abstractmethod
    def _ask(self) -> list[MutexEffect]:
        """Begin a request. May end in ``_get_in``."""

    @abstractmethod
    def _leave(self) -> list[MutexEffect]:
        """Come out; the status is IDLE already."""

    @abstractmethod
    def _receive(self, sender: NodeId, message: Hashable) -> list[MutexEffect] | None:
        """Take a message; None if it is none of this algorithm."""

    @abstractmethod
    def _own_state(self) -> tuple[Hashable, ...]:
        """What the algorithm itself keeps."""

    @abstractmethod
    def _own_restore(self, state: tuple[Any, ...]) -> None:
        """Return to what ``_own_state`` gave."""

    def _faults(self) -> Sequence[tuple[bool, str]]:
        """What must hold, and what it means if it does not."""
        return ()

    # -- the machine contract -------------------------------------------------------------

    def handle(self, event: MutexEvent, now: float) -> Sequence[MutexEffect]:
        """Take one event and return what has to be done."""
        match event:
            case Received(sender, message):
                effects = None if sender not in self._peers else self._receive(sender, message)
                if effects is None:
                    return [Reject(sender, f"no message for {type(self).__name__}: {message!r}")]
                return effects
            case EnterRequested(token):
                return self._on_enter(token)
            case ExitRequested():
                if self.status is not Status.INSIDE:
                    raise LocalProtocolError(f"{self.me} is not inside: {self.status.name}")
                return self._come_out()
            case Cancelled(token) if token == self._token:
                if self.status is Status.INSIDE:
                    return self._come_out()
                self._withdrawn = self.status is Status.WAITING
                return []
            case _:
                return []

    def next_deadline(self) -> float | None:
        """There are no time-outs."""
        return None

    def check_invariants(self) -> None:
        """Raise if this is a state that must never be."""
        for holds, text in self._faults():
            if not holds:
                raise InvariantError(f"{self.me}: {text}: {dict(self.describe())}")

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        return (self.status, self._token, self._withdrawn, *self._own_state())

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        self.status, self._token, self._withdrawn, *own = parts
        self._own_restore(tuple(own))

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        return {"status": self.status.name, "withdrawn": self._withdrawn}

    # -- in and out -----------------------------------------------------------------------

    def _on_enter(self, token: Hashable) -> list[MutexEffect]:
        if self.status is not Status.IDLE and not self._withdrawn:
            raise LocalProtocolError(f"{self.me} is {self.status.name} already")
        self._token = token
        if self._withdrawn:
            self._withdrawn = False
            return []
        self.status = Status.WAITING
        return self._ask()

    def _get_in(self) -> list[MutexEffect]:
        self.status = Status.INSIDE
        return [] if self._withdrawn else [Admit(self._token)]

    def _settle(self, effects: list[MutexEffect]) -> list[MutexEffect]:
        """Come out again at once if nobody wants to be inside any more."""
        if self.status is Status.INSIDE and self._withdrawn:
            return effects + self._come_out()
        return effects

    def _come_out(self) -> list[MutexEffect]:
        self.status = Status.IDLE
        self._token = None
        self._withdrawn = False
        return self._leave()
