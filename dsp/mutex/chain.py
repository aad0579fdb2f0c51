"""Several pairs of groups, taken one after the other: a node between predecessors and successors.

The machine holds one ``Member`` for each edge and looks like one member. A request asks for the
first edge; each that is granted leads to the next; the last one admits. Leaving gives all back. If
an edge is lost on the way, what was taken is given back and the request begins again; if it is
lost inside, the entry is revoked. ``dsp.mutex.edges`` gives the order that cannot deadlock.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dsp.core.machine import (
    Cancelled,
    PeerAppeared,
    PeerLost,
    Received,
    Reject,
    SendFailed,
    Tick,
)
from dsp.errors import InvariantError, LocalProtocolError
from dsp.mutex.events import (
    Admit,
    Carried,
    EnterRequested,
    ExitRequested,
    JoinRequested,
    LeaveRequested,
    Left,
    MemberRemoved,
    MutexEffect,
    MutexEvent,
    Revoke,
    Settled,
    Superseded,
)
from dsp.mutex.member import Member
from dsp.mutex.status import Phase, Status

__all__ = ["Chain"]


class Chain:
    """A member of several pairs of groups at once.

    Args:
        members: one for each edge, with the edge's name, in the order in which to take them.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        self.members = {member.edge: member for member in members}
        self._order = tuple(self.members)
        self.status = Status.IDLE
        self._token: Hashable = None
        # How many edges are taken, and the number of each.
        self._numbers: tuple[tuple[str, int], ...] = ()

    @property
    def contended(self) -> bool:
        """Whether a competitor waits for what this node has."""
        return any(member.lock.contended for member in self.members.values())

    # -- the machine contract -------------------------------------------------------------

    def handle(self, event: MutexEvent, now: float) -> Sequence[MutexEffect]:
        """Take one event and return what has to be done."""
        match event:
            case Received(sender, message):
                if not isinstance(message, Carried) or message.edge not in self.members:
                    return [Reject(sender, f"about no edge of this node: {message!r}")]
                return self._pass_on(message.edge, event, now)
            case EnterRequested(token):
                if self.status is not Status.IDLE:
                    raise LocalProtocolError(f"already {self.status.name}")
                self.status, self._token = Status.WAITING, token
                return self._take_next()
            case ExitRequested():
                if self.status is not Status.INSIDE:
                    raise LocalProtocolError(f"not inside: {self.status.name}")
                return self._give_back()
            case Cancelled(token) if token == self._token:
                return [] if self.status is Status.IDLE else self._give_back()
            case Superseded(_, edge):
                return self._pass_on(edge, event)
            case LeaveRequested() if self.status is not Status.IDLE:
                raise LocalProtocolError(f"cannot leave now: {self.status.name}")
            case (
                LeaveRequested()
                | JoinRequested()
                | MemberRemoved()
                | PeerLost()
                | PeerAppeared()
                | SendFailed()
                | Tick()
            ):
                effects: list[MutexEffect] = []
                for edge in self._order:
                    effects += self._pass_on(edge, event, now)
                return effects
            case _:
                return []

    def next_deadline(self) -> float | None:
        """When the first of its members wants to be woken."""
        wanted = [member.next_deadline() for member in self.members.values()]
        return min((time for time in wanted if time is not None), default=None)

    def check_invariants(self) -> None:
        """Raise if this is a state that must never be."""
        for member in self.members.values():
            member.check_invariants()
        taken = len(self._numbers)
        for place, edge in enumerate(self._order):
            status = self.members[edge].status
            busy = self.status is not Status.IDLE
            expected = (
                Status.INSIDE
                if place < taken
                else (Status.WAITING if busy and place == taken else Status.IDLE)
            )
            if status is not expected:
                raise InvariantError(f"{edge} is {status.name}: {dict(self.describe())}")

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        inner = tuple(member.state() for member in self.members.values())
        return (self.status, self._token, self._numbers, inner)

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        self.status, self._token, self._numbers, inner = parts
        for member, own in zip(self.members.values(), inner, strict=True):
            member.restore(own)

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        statuses = {edge: member.status.name for edge, member in self.members.items()}
        return {"status": self.status.name, "edges": statuses, "numbers": self._numbers}

    # -- inside ---------------------------------------------------------------------------

    def _take_next(self) -> list[MutexEffect]:
        if len(self._numbers) == len(self._order):
            self.status = Status.INSIDE
            highest = max((number for _, number in self._numbers), default=0)
            return [Admit(self._token, highest, self._numbers)]
        edge = self._order[len(self._numbers)]
        return self._pass_on(edge, EnterRequested(self._token))

    def _pass_on(self, edge: str, event: MutexEvent, now: float = 0.0) -> list[MutexEffect]:
        if edge not in self.members:
            raise LocalProtocolError(f"no edge {edge!r}; there are {', '.join(self._order)}")
        effects: list[MutexEffect] = []
        for effect in self.members[edge].handle(event, now):
            match effect:
                case Admit(_, number):
                    self._numbers += ((edge, number),)
                    effects += self._take_next()
                case Revoke(_, reason):
                    effects += self._lose(edge, reason)
                case Settled():
                    if all(one.phase is Phase.MEMBER for one in self.members.values()):
                        effects.append(effect)
                case Left():
                    if all(one.phase is Phase.LEFT for one in self.members.values()):
                        effects.append(effect)
                case _:
                    effects.append(effect)
        return effects

    def _give_back(self) -> list[MutexEffect]:
        effects: list[MutexEffect] = []
        token = self._token
        self.status, self._token = Status.IDLE, None
        self._numbers = ()
        for edge in reversed(self._order):
            member = self.members[edge]
            if member.status is Status.INSIDE:
                effects += self._pass_on(edge, ExitRequested())
            elif member.status is Status.WAITING:
                effects += self._pass_on(edge, Cancelled(token))
        return effects

    def _lose(self, edge: str, reason: str) -> list[MutexEffect]:
        """An edge that was taken is lost; the member has left it already."""
        token, inside = self._token, self.status is Status.INSIDE
        effects = self._give_back()
        if inside:
            return [Revoke(token, reason), *effects]
        self.status, self._token = Status.WAITING, token
        return effects + self._take_next()
