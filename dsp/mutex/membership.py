"""How members come to know each other, part, and hold each other for dead.

This is the half of a ``Member`` that says who takes part; ``dsp.mutex.member`` has the theory.
"""

from typing import TYPE_CHECKING

from dsp.core.machine import Cancelled, Send
from dsp.core.types import NodeId
from dsp.errors import LocalProtocolError
from dsp.mutex.events import (
    Bye,
    EnterRequested,
    ExitRequested,
    Expelled,
    Hello,
    Left,
    Linked,
    MutexEffect,
    Revoke,
    Settled,
    Unlinked,
    View,
    Welcome,
)
from dsp.mutex.numbers import Numbering
from dsp.mutex.roster import Roster
from dsp.mutex.seat import Seat
from dsp.mutex.status import Phase, Status
from dsp.mutex.two_fgme import TwoFGME

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Membership"]


class Membership:
    """One member as a participant; its arguments are those of ``Member``."""

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
            raise LocalProtocolError(f"{self.me} cannot leave now: {self.lock.describe()}")
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
