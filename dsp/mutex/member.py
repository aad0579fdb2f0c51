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
    Left,
    Linked,
    MemberRemoved,
    MembershipMessage,
    MutexEffect,
    MutexEvent,
    PermissionMessage,
    Revoke,
    Settled,
    Superseded,
    Unlinked,
    View,
    Welcome,
)
from dsp.mutex.numbers import Numbering
from dsp.mutex.roster import Roster
from dsp.mutex.seat import Seat
from dsp.mutex.status import Phase, Status
from dsp.mutex.two_fgme import TwoFGME

__all__ = ["Member"]


class Member:
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

    def __init__(
        self,
        seat: Seat,
        *,
        generation: int = 1,
        founder: bool = False,
        quorum: bool = True,
        patience: float = 0.0,
        edge: str = "",
    ) -> None:
        self.me = seat.me
        self.group = seat.group
        self.edge = edge
        self.phase = Phase.MEMBER if founder else Phase.JOINING
        self.roster = Roster(seat.me, seat.group, quorum=quorum)
        self._generation = generation
        for group, names in enumerate(seat.groups):
            for name in names:
                if name != seat.me:
                    self.roster.known[name] = (group, generation if founder else 0)
        alone = ((seat.me,), ()) if seat.group == 0 else ((), (seat.me,))
        self.lock = TwoFGME(seat if founder else Seat(seat.me, alone))
        # Who has not answered yet; nobody can settle before the greetings are out.
        self._awaiting: set[NodeId] = set() if founder else {*self.roster.known}
        self._greeted = founder
        self._patience = patience
        self._deadline: float | None = None
        self._token: Hashable = None
        self._wants = False
        self._numbers = Numbering(seat.group, edge)

    @property
    def status(self) -> Status:
        """Whether it is inside or waits to be."""
        return Status.WAITING if self._wants else self.lock.status

    @property
    def number(self) -> int:
        """The fencing number of the latest entry."""
        return self._numbers.number

    # -- the machine contract -------------------------------------------------------------

    def handle(self, event: MutexEvent, now: float) -> Sequence[MutexEffect]:
        """Take one event and return what has to be done."""
        if isinstance(event, Received):
            return self._on_received(event.sender, event.message)
        match event:
            case EnterRequested(token):
                return self._numbers.stamp(self._on_enter(token))
            case ExitRequested():
                return self._numbers.stamp(self.lock.handle(event, now))
            case Cancelled(token) if token == self._token:
                if self._wants:
                    self._wants = False
                    return []
                return self._numbers.stamp(self.lock.handle(event, now))
            case PeerLost(peer):
                return self._numbers.stamp(self._on_suspected(peer, now))
            case SendFailed(to):
                if to in self.roster.known:
                    self.roster.broken.add(to)
                return self._numbers.stamp(self._on_suspected(to, now))
            case PeerAppeared(peer):
                return self._numbers.stamp(self._on_appeared(peer, now))
            case MemberRemoved(peer):
                return self._numbers.stamp(self._on_removed(peer))
            case Tick() if self._deadline is not None and now >= self._deadline:
                self._deadline = None
                return self._numbers.stamp(self._bury())
            case JoinRequested() if not self._greeted:
                return self._numbers.stamp(self._greet())
            case LeaveRequested():
                return self._numbers.stamp(self._on_leave())
            case Superseded(number):
                self._numbers.learn(number)
                return self._numbers.stamp(self._rejoin("a resource has seen a higher number"))
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
            "members": self.roster.view(),
            "awaiting": sorted(self._awaiting),
            "suspects": sorted(self.roster.suspects),
            "lost": sorted(self.roster.lost),
            "number": self._numbers.number,
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

    # -- joining --------------------------------------------------------------------------

    def _greet(self) -> list[MutexEffect]:
        self._greeted = True
        hello = Hello(self._generation, self.group, self.roster.view())
        greetings = [Send(name, hello) for name in sorted(self._awaiting)]
        return [*greetings, *self._settle()]

    def _greet_strangers(self, view: View) -> list[MutexEffect]:
        if self.phase is not Phase.JOINING:
            return []  # a member's strangers join, and will greet it
        strangers = self.roster.strangers(view)
        for name, group in strangers:
            self.roster.known[name] = (group, 0)
            self._awaiting.add(name)
        hello = Hello(self._generation, self.group, self.roster.view())
        return [Send(name, hello) for name, _ in strangers]

    def _settle(self) -> list[MutexEffect]:
        if self.phase is not Phase.JOINING or self._awaiting or not self._greeted:
            return []
        self.phase = Phase.MEMBER
        effects: list[MutexEffect] = [Settled()]
        if self._wants:
            self._wants = False
            effects += self.lock.handle(EnterRequested(self._token), 0.0)
        return effects

    def _on_hello(self, sender: NodeId, message: Hello) -> list[MutexEffect]:
        generation, group = message.generation, message.group
        known = self.roster.known.get(sender)
        linked = sender in self.lock.competitors
        if known is not None and generation <= known[1]:
            return []  # greeted twice by the same one, which has its answer or will have it
        effects: list[MutexEffect] = []
        if linked:
            self._numbers.begin_term()
            effects += self.lock.handle(Unlinked(sender), 0.0)
        self.roster.meet(sender, group, generation)
        answer = Welcome(generation, self._generation, self.roster.view())
        if group == self.group:
            self._awaiting.discard(sender)
        elif sender in self._awaiting and self.group == 1:
            # Group 0 answers. Once more, since ours may have reached its former life.
            again = Hello(self._generation, self.group, self.roster.view())
            return [*effects, Send(sender, again)]
        else:
            self._awaiting.discard(sender)
            effects += self.lock.handle(Linked(sender, held=True), 0.0)
        effects.append(Send(sender, answer))
        return effects + self._greet_strangers(message.view) + self._settle()

    def _on_welcome(self, sender: NodeId, message: Welcome) -> list[MutexEffect]:
        if message.generation != self._generation or sender not in self._awaiting:
            return []
        self._awaiting.discard(sender)
        self.roster.meet(sender, self.roster.known[sender][0], message.mine)
        effects: list[MutexEffect] = []
        if self.roster.competes(sender):
            effects += self.lock.handle(Linked(sender, held=False), 0.0)
        return effects + self._greet_strangers(message.view) + self._settle()

    # -- leaving --------------------------------------------------------------------------

    def _on_leave(self) -> list[MutexEffect]:
        if self._wants or self.lock.status is not Status.IDLE or self.phase is Phase.LEFT:
            raise LocalProtocolError(f"{self.me} cannot leave now: {dict(self.describe())}")
        self.phase = Phase.LEFT
        self._awaiting.clear()
        bye = Bye(self.roster.view(without_me=True))
        return [*(Send(name, bye) for name in sorted(self.roster.known)), Left()]

    def _on_bye(self, sender: NodeId, view: View) -> list[MutexEffect]:
        self.roster.forget(sender)
        return self._gone(sender) + self._greet_strangers(view) + self._settle()

    def _gone(self, name: NodeId) -> list[MutexEffect]:
        self._awaiting.discard(name)
        if name not in self.lock.competitors:
            return []
        return [*self.lock.handle(Unlinked(name), 0.0)]

    # -- crashes --------------------------------------------------------------------------

    def _on_suspected(self, peer: NodeId, now: float) -> list[MutexEffect]:
        if peer not in self.roster.known or self.phase is Phase.LEFT:
            return []
        self.roster.suspects.add(peer)
        return self._judge(now)

    def _judge(self, now: float) -> list[MutexEffect]:
        if self._patience:
            self._deadline = now + self._patience if self.roster.suspects else None
            return []
        return self._bury()

    def _bury(self) -> list[MutexEffect]:
        effects: list[MutexEffect] = []
        for name in self.roster.bury():
            group, generation = self.roster.lost[name]
            if group != self.group:
                self._numbers.begin_term()
            effects += [Send(name, Expelled(generation)), *self._gone(name)]
        return effects + self._settle()

    def _on_appeared(self, peer: NodeId, now: float) -> list[MutexEffect]:
        self.roster.suspects.discard(peer)
        if peer in self.roster.broken:
            return self._rejoin(f"messages to {peer} were lost")
        if peer in self.roster.lost:
            return [Send(peer, Expelled(self.roster.lost[peer][1]))]
        return self._judge(now)

    def _on_removed(self, peer: NodeId) -> list[MutexEffect]:
        if self.roster.competes(peer) or peer in self.roster.lost:
            self._numbers.begin_term()
        self.roster.forget(peer)
        return self._gone(peer) + self._settle()

    def _on_expelled(self, sender: NodeId, generation: int) -> list[MutexEffect]:
        if generation != self._generation:
            return []  # we have begun anew since
        self.roster.resurrect(sender)
        if sender in self.roster.known and not self.roster.competes(sender):
            # Nothing is between siblings but that they know each other.
            return [Send(sender, Hello(self._generation, self.group, self.roster.view()))]
        return self._rejoin(f"{sender} held this member for dead")

    def _rejoin(self, reason: str) -> list[MutexEffect]:
        """Begin anew with everybody; a request goes on, an entry does not."""
        if self.phase is Phase.LEFT:
            return []
        effects: list[MutexEffect] = []
        if self.lock.status is Status.INSIDE:
            effects += [Revoke(self._token, reason), *self.lock.handle(ExitRequested(), 0.0)]
        elif self.lock.status is Status.WAITING:
            effects += self.lock.handle(Cancelled(self._token), 0.0)
            self._wants = True
        for name in sorted(self.lock.competitors):
            effects += self.lock.handle(Unlinked(name), 0.0)
        self._generation += 1
        self.phase = Phase.JOINING
        self.roster.suspects.clear()
        self.roster.broken.clear()
        self._awaiting = {*self.roster.known}
        return effects + self._greet()

    # -- messages -------------------------------------------------------------------------

    def _on_received(self, sender: NodeId, message: Hashable) -> Sequence[MutexEffect]:
        if not isinstance(message, Carried) or message.edge != self.edge:
            return [Reject(sender, f"no message between members of {self.edge!r}: {message!r}")]
        self._numbers.learn(message.number)
        return self._numbers.stamp(self._take(sender, message.body))

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
