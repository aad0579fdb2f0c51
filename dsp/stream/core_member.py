"""A member of the core group of an operator, and whom it lets scale while it is inside.

The core group takes part in 2-FGME: one pair of groups for each edge between two operators that
scale, taken in the order of ``dsp.mutex.edges``. An entry is shared: while a core member is inside,
everybody of its operator who asked it is inside as well, since siblings may scale together. Who
asks later is let in at once unless a neighbouring operator waits; then the entry ends first, so
nobody starves.

Nothing here waits: it is driven by messages, and tells by a callback who is let in.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable

from dsp.core.machine import Cancelled, Received, Reject, Send
from dsp.core.types import NodeId
from dsp.mutex.chain import Chain
from dsp.mutex.events import (
    Admit,
    Carried,
    EnterRequested,
    ExitRequested,
    JoinRequested,
    LeaveRequested,
    MemberRemoved,
    MutexEvent,
    Revoke,
)
from dsp.mutex.member import Member
from dsp.mutex.status import Status

__all__ = ["CoreMember", "Ticket"]

logger = logging.getLogger(__name__)

Ticket = tuple[NodeId, int]
"""Who wants to get in, and its number for that."""


class CoreMember:
    """One core member of an operator.

    Args:
        name: of the instance that it is in.
        members: one for each edge, in the order in which to take them.
        send: takes a message to another core member.
        admit: told who may begin, and the fencing number of the entry.
        clock: seconds.
    """

    def __init__(
        self,
        name: NodeId,
        members: Iterable[Member],
        send: Callable[[NodeId, Carried], None],
        admit: Callable[[Ticket, int], None],
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.chain = Chain(members)
        self._send = send
        self._admit = admit
        self._clock = clock
        self._waiting: dict[Ticket, None] = {}
        self._inside: dict[Ticket, None] = {}
        self._entries = 0
        self._number = 0
        self._events: deque[MutexEvent] = deque()
        self._busy = False

    # -- for those who scale --------------------------------------------------------------

    def want(self, ticket: Ticket) -> None:
        """Somebody wants to scale. Asked twice, it counts once."""
        if ticket in self._inside:
            return
        self._waiting[ticket] = None
        if self.chain.status is Status.INSIDE and not self.chain.contended:
            self._let_in()
        self._run()

    def done(self, ticket: Ticket) -> None:
        """It has scaled, or does not want to any more."""
        self._waiting.pop(ticket, None)
        self._inside.pop(ticket, None)
        self._run()

    # -- for the other members ------------------------------------------------------------

    def join(self) -> None:
        """Take part, though others have begun."""
        self._run(JoinRequested())

    def receive(self, sender: NodeId, message: Carried) -> None:
        """A core member says something."""
        self._run(Received(sender, message))

    def lose(self, name: NodeId) -> None:
        """An instance is dead: neither its permission nor its exit will come."""
        for tickets in (self._waiting, self._inside):
            for ticket in [each for each in tickets if each[0] == name]:
                del tickets[ticket]
        known = any(name in member.roster.known for member in self.chain.members.values())
        self._run(MemberRemoved(name) if known else None)

    @property
    def silent(self) -> set[NodeId]:
        """Who was greeted and has not answered yet."""
        return {name for member in self.chain.members.values() for name in member.awaiting}

    def forget_silent(self) -> None:
        """Hold those for dead who were greeted when this member joined and never answered."""
        for name in sorted(self.silent):
            logger.warning("%s: core member %s does not answer", self.name, name)
            self._run(MemberRemoved(name))

    def close(self) -> None:
        """Leave for good. Who is inside by our entry is on its own from now on."""
        self._waiting.clear()
        self._inside.clear()
        self._run()
        self._run(LeaveRequested())

    # -- inside ---------------------------------------------------------------------------

    def _run(self, event: MutexEvent | None = None) -> None:
        """Take an event, and do what is due then.

        What is done on admission may come back here: one event after the other.
        """
        if event is not None:
            self._events.append(event)
        if self._busy:
            return
        self._busy = True
        try:
            while self._events or self._is_due():
                self._take(self._events.popleft())
        finally:
            self._busy = False

    def _is_due(self) -> bool:
        """Ask, leave, or ask no more, as those that are here want it."""
        match self.chain.status:
            case Status.IDLE if self._waiting:
                self._entries += 1
                self._events.append(EnterRequested(self._entries))
            case Status.WAITING if not self._waiting:
                self._events.append(Cancelled(self._entries))
            case Status.INSIDE if not self._inside:
                self._events.append(ExitRequested())
            case _:
                return False
        return True

    def _take(self, event: MutexEvent) -> None:
        for effect in self.chain.handle(event, self._clock()):
            match effect:
                case Send(to, Carried() as message):
                    self._send(to, message)
                case Admit(_, number):
                    self._number = number
                    self._let_in()
                case Revoke(_, reason):
                    # Those inside go on: the scale protocol bears it.
                    logger.warning("%s: an entry is over: %s", self.name, reason)
                    self._inside.clear()
                case Reject(sender, reason):
                    logger.warning("%s: message of %s rejected: %s", self.name, sender, reason)

    def _let_in(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._inside.update(waiting)
        for ticket in waiting:
            self._admit(ticket, self._number)
