"""A token between two arbiters, one in each group: the fewest messages, two distinguished nodes.

The first member of each group by name is its arbiter. Who wants to get in asks the arbiter of its
own group (``Want``), is let in (``Grant``) and says when it has left (``Done``). An arbiter lets
its group in while it has the token. The other one asks for it (``TokenWanted``); then nobody else
is let in, and when the last one has come out the token goes over, with a note if it is wanted
back. Three messages for each entry of a member that is no arbiter, none for an arbiter, and two
for each change of group.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsp.core.machine import Send
from dsp.core.types import NodeId
from dsp.mutex.events import MutexEffect
from dsp.mutex.fixed import FixedGroups
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status

__all__ = ["ArbiterToken", "Want", "Grant", "Done", "TokenWanted", "Token"]


@dataclass(frozen=True, slots=True)
class Want:
    """To the own arbiter: let me in."""


@dataclass(frozen=True, slots=True)
class Grant:
    """From the own arbiter: get in."""


@dataclass(frozen=True, slots=True)
class Done:
    """To the own arbiter: I have left."""


@dataclass(frozen=True, slots=True)
class TokenWanted:
    """To the other arbiter: my group waits."""


@dataclass(frozen=True, slots=True)
class Token:
    """To the other arbiter: your turn. ``wanted``: my group waits again."""

    wanted: bool


class ArbiterToken(FixedGroups):
    """One member's part, arbiter or not.

    Args:
        seat: who takes part.
    """

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.arbiter = min(seat.groups[seat.group])
        self._rival = min(seat.groups[1 - seat.group], default=None)
        # Of an arbiter alone:
        self._token_here = self.me == self.arbiter and (seat.group == 0 or self._rival is None)
        self._asked = False
        self._rival_waits = False
        self._queue: tuple[NodeId, ...] = ()
        self._inside: set[NodeId] = set()

    def _ask(self) -> list[MutexEffect]:
        if self.me == self.arbiter:
            return self._on_want(self.me)
        return [Send(self.arbiter, Want())]

    def _leave(self) -> list[MutexEffect]:
        if self.me == self.arbiter:
            return self._on_done(self.me)
        return [Send(self.arbiter, Done())]

    def _receive(self, sender: NodeId, message: Hashable) -> list[MutexEffect] | None:
        match message:
            case Grant() if sender == self.arbiter and self.status is Status.WAITING:
                return self._settle(self._get_in())
            case Want() if self._judges(sender) and sender not in (*self._queue, *self._inside):
                return self._on_want(sender)
            case Done() if sender in self._inside:
                return self._on_done(sender)
            case TokenWanted() if sender == self._rival and self._arbitrates:
                self._rival_waits = True
                return self._go_on()
            case Token(wanted) if sender == self._rival and self._arbitrates:
                self._token_here, self._asked, self._rival_waits = True, False, wanted
                return self._admit_all() + self._go_on()
            case _:
                return None

    @property
    def _arbitrates(self) -> bool:
        return self.me == self.arbiter

    def _judges(self, sender: NodeId) -> bool:
        return self._arbitrates and sender in self.seat.groups[self.group]

    def _on_want(self, sender: NodeId) -> list[MutexEffect]:
        self._queue += (sender,)
        return self._go_on()

    def _on_done(self, sender: NodeId) -> list[MutexEffect]:
        self._inside.discard(sender)
        return self._go_on()

    def _go_on(self) -> list[MutexEffect]:
        if not self._token_here:
            if self._asked or not self._queue:
                return []
            self._asked = True
            assert self._rival is not None
            return [Send(self._rival, TokenWanted())]
        if not self._rival_waits:
            return self._admit_all()
        if self._inside:
            return []
        # A token that is not needed any more comes back at once, so it may go without a look.
        self._token_here = self._rival_waits = False
        self._asked = bool(self._queue)
        assert self._rival is not None
        return [Send(self._rival, Token(self._asked))]

    def _admit_all(self) -> list[MutexEffect]:
        admitted, self._queue = self._queue, ()
        self._inside.update(admitted)
        effects: list[MutexEffect] = []
        for name in admitted:
            effects += self._settle(self._get_in()) if name == self.me else [Send(name, Grant())]
        return effects

    def _faults(self) -> Sequence[tuple[bool, str]]:
        return (
            (not self._inside or self._token_here, "lets members in without the token"),
            (not self._queue or self._asked or self._token_here, "does not ask for the token"),
        )

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        return {**super().describe(), "arbiter": self.arbiter, "token": self._token_here}

    def _own_state(self) -> tuple[Hashable, ...]:
        return (
            self._token_here,
            self._asked,
            self._rival_waits,
            self._queue,
            frozenset(self._inside),
        )

    def _own_restore(self, state: tuple[Any, ...]) -> None:
        self._token_here, self._asked, self._rival_waits, self._queue, inside = state
        self._inside = {*inside}
