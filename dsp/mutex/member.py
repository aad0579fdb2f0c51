"""A member of two groups that may change: joining, leaving, crashes, and fencing numbers.

Theory of operation. ``TwoFGME`` does the excluding; this machine says who the competitors are. Like
permissions, links are a matter of pairs, so no member list has to be agreed on.

* **Joining.** A member greets everybody it knows, of both groups (``Hello``), and everybody it
  learns of by the answers; it takes part when all have answered. Who answers (``Welcome``) has the
  new permission, so a newcomer never upsets who is inside. If two competitors greet each other,
  the one of group 0 answers. Of two who join at once at least one learns of the other, from any
  member that both
  greet: hence the views in messages, and siblings that know each other.
* **Leaving** (``Bye``): between entries; the permissions vanish.
* **Crashes.** A suspect is held for dead if enough members are not suspected (``Roster``). Its
  permissions are taken back, which is to say they vanish, and the fencing term goes up. If it
  speaks again it is told (``Expelled``): its entry is revoked, and it joins anew.
* **Numbers.** Every message carries the highest number that its sender knows, and an entry takes
  the next one, so it is above that of every entry of the other group that was over before. A term
  goes before the count: whoever takes permissions back starts a new one, and is above what the
  dead one can have reached in its own.

========= ============================================= ==========================================
phase     meaning                                       left by
========= ============================================= ==========================================
JOINING   greets; requests wait                         the last answer
MEMBER    takes part                                    Expelled, Superseded; LeaveRequested
LEFT      answers Bye to late greetings                 never
========= ============================================= ==========================================
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dsp.core.machine import (
    Cancelled,
    PeerAppeared,
    PeerLost,
    Received,
    Reject,
    Send,
    SendFailed,
    Tick,
)
from dsp.core.types import NodeId
from dsp.errors import InvariantError, LocalProtocolError
from dsp.mutex.events import (
    Bye,
    Carried,
    EnterRequested,
    ExitRequested,
    Expelled,
    Hello,
    JoinRequested,
    LeaveRequested,
    MemberRemoved,
    MembershipMessage,
    MutexEffect,
    MutexEvent,
    PermissionMessage,
    Superseded,
    Welcome,
)
from dsp.mutex.membership import Membership
from dsp.mutex.status import Phase, Status

__all__ = ["Member"]


class Member(Membership):
    """One member's part, and what a lock is made of.

    Args:
        seat: this member, and everybody it knows of at the start.
        generation: larger than any that this name had before; an endpoint's epoch will do.
        founder: take part at once. All founders must be given the same groups and begin together;
            one that may be a restart must join, which begins with ``JoinRequested``.
        quorum: whether suspicion needs a majority.
        patience: seconds without a new suspicion before suspects are held for dead. One that is cut
            off suspects everybody, but not at one moment, and must not act on the first.
        edge: which pair of groups this is about, where a node is in more than one.
    """

    @property
    def status(self) -> Status:
        """Whether it is inside or waits to be."""
        return Status.WAITING if self._wants else self.lock.status

    @property
    def awaiting(self) -> frozenset[NodeId]:
        """Who was greeted and has not answered yet."""
        return frozenset(self._awaiting)

    @property
    def number(self) -> int:
        """The fencing number of the latest entry."""
        return self._numbers.number

    # -- the machine contract -------------------------------------------------------------

    def handle(self, event: MutexEvent, now: float) -> Sequence[MutexEffect]:
        """Take one event and return what has to be done."""
        return self._numbers.stamp(self._react(event, now))

    def _react(self, event: MutexEvent, now: float) -> Iterable[MutexEffect]:
        match event:
            case Received(sender, message):
                return self._on_received(sender, message)
            case EnterRequested(token):
                return self._on_enter(token)
            case ExitRequested():
                return self.lock.handle(event, now)
            case Cancelled(token) if token == self._token:
                waited, self._wants = self._wants, False
                return [] if waited else self.lock.handle(event, now)
            case PeerLost(peer):
                return self._on_suspected(peer, now)
            case SendFailed(to):
                if to in self.roster.known:
                    self.roster.broken.add(to)
                return self._on_suspected(to, now)
            case PeerAppeared(peer):
                return self._on_appeared(peer, now)
            case MemberRemoved(peer):
                return self._on_removed(peer)
            case Tick() if self._deadline is not None and now >= self._deadline:
                self._deadline = None
                return self._bury()
            case JoinRequested() if not self._greeted:
                return self._greet()
            case LeaveRequested():
                return self._on_leave()
            case Superseded(number):
                self._numbers.learn(number)
                return self._rejoin("a resource has seen a higher number")
            case _:
                return []

    def next_deadline(self) -> float | None:
        """When to act on suspicions, which come from the transport or from the engine."""
        return self._deadline

    def check_invariants(self) -> None:
        """Raise if this is a state that must never be."""
        self.lock.check_invariants()
        for holds, text in self.roster.rules(self.phase, self.lock, self._awaiting):
            if not holds:
                raise InvariantError(f"{self.me}: {text}: {dict(self.describe())}")

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        return (
            self.phase,
            self._generation,
            frozenset(self._awaiting),
            self._greeted,
            self._deadline,
            self._token,
            self._wants,
            self._numbers.state(),
            self.roster.state(),
            self.lock.state(),
        )

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        self.phase, self._generation, awaiting, self._greeted, self._deadline, *rest = parts
        self._token, self._wants, numbers, roster, lock = rest
        self._numbers.restore(numbers)
        self._awaiting = {*awaiting}
        self.roster.restore(roster)
        self.lock.restore(lock)

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        return {
            "phase": self.phase.name,
            "generation": self._generation,
            "awaiting": sorted(self._awaiting),
            "number": self._numbers.number,
            **self.roster.describe(),
            **self.lock.describe(),
        }

    # -- in -------------------------------------------------------------------------------

    def _on_enter(self, token: Hashable) -> Iterable[MutexEffect]:
        if self.phase is Phase.LEFT:
            raise LocalProtocolError(f"{self.me} has left")
        if self._wants:
            raise LocalProtocolError(f"{self.me} is {self.status.name} already")
        if self.phase is Phase.JOINING:
            self._token, self._wants = token, True
            return []
        effects = self.lock.handle(EnterRequested(token), 0.0)
        self._token = token
        return effects

    # -- messages -------------------------------------------------------------------------

    def _on_received(self, sender: NodeId, message: Hashable) -> Sequence[MutexEffect]:
        if not isinstance(message, Carried) or message.edge != self.edge:
            return [Reject(sender, f"no message between members of {self.edge!r}: {message!r}")]
        self._numbers.learn(message.number)
        return self._take(sender, message.body)

    def _take(
        self, sender: NodeId, body: PermissionMessage | MembershipMessage
    ) -> Sequence[MutexEffect]:
        if self.phase is Phase.LEFT:
            late = isinstance(body, Hello)
            return [Send(sender, Bye(self.roster.view(without_me=True)))] if late else []
        match body:
            case Hello():
                return self._on_hello(sender, body)
            case Bye(view):
                return self._on_bye(sender, view)
            case Expelled(generation):
                return self._on_expelled(sender, generation)
        if sender in self.roster.lost:
            group, generation = self.roster.lost[sender]
            if isinstance(body, Welcome):
                generation = body.mine  # perhaps the first that we hear of it
                self.roster.lost[sender] = (group, generation)
            return [Send(sender, Expelled(generation))]
        if isinstance(body, Welcome):
            return self._on_welcome(sender, body)
        if sender not in self.lock.competitors:
            return []  # from before it heard our greeting, which undoes all that was
        return self.lock.handle(Received(sender, body), 0.0)
