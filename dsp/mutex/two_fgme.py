"""2-FGME with one permission per cross pair: what dsp uses.

Theory of operation (paper 000 chapter 5, corrected as argued in docs/design/mutex.md). Each pair of
members of different groups shares one permission. Whoever has all of its permissions may be inside,
so exclusion holds by construction. A permission stays with who has it until the other one asks.

* To get in, a member asks every competitor whose permission it lacks, with its time (``Req``).
* An idle member hands over; one that is inside waits until it leaves; one that asks itself hands
  over to a senior request (an earlier time, then the smaller name), and its own request goes with
  the permission (``Ack.renew``).
* Concurrent occupancy: while a member has let a competitor by (``authorised``), it also lends to
  the juniors that wait, since their group goes first anyway. The first competitor that comes out
  closes this, and a loan to a junior is recalled as soon as somebody is refused.

========= ============================================= ==========================================
status    meaning                                       left by
========= ============================================= ==========================================
IDLE      does not want to get in                       EnterRequested
WAITING   asks for permissions                          the last Ack; Cancelled
INSIDE    has all permissions                           ExitRequested
========= ============================================= ==========================================

Competitors may come and go (``Linked``, ``Unlinked``): ``dsp.mutex.member`` says when.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dsp.core.machine import Cancelled, Received, Reject, Send
from dsp.core.types import NodeId
from dsp.errors import InvariantError, LocalProtocolError
from dsp.mutex.events import (
    Ack,
    Admit,
    EnterRequested,
    ExitRequested,
    Linked,
    MutexEffect,
    MutexEvent,
    Req,
    Unlinked,
)
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status

__all__ = ["TwoFGME"]


class TwoFGME:
    """One member's part of the corrected algorithm.

    Args:
        seat: who takes part. Later members come by ``Linked``.
    """

    def __init__(self, seat: Seat) -> None:
        self.me = seat.me
        self.group = seat.group
        self.status = Status.IDLE
        self.competitors: set[NodeId] = {*seat.competitors}
        self._clock = 0
        self._ts = 0
        self._token: Hashable = None
        # Permissions that are here; competitors that were let by, as long as that is open.
        self._held: set[NodeId] = {*seat.competitors} if seat.group == 0 else set()
        self._authorised: set[NodeId] = self.competitors - self._held
        # Competitors that wait for our permission, by whether their request is junior or senior.
        self._juniors: set[NodeId] = set()
        self._seniors: set[NodeId] = set()
        # Juniors that were lent a permission, and have not been asked to return it.
        self._loans: set[NodeId] = set()

    @property
    def contended(self) -> bool:
        """Whether a competitor waits for a permission that is here."""
        return bool(self._juniors or self._seniors)

    # -- the machine contract -------------------------------------------------------------

    def handle(self, event: MutexEvent, now: float) -> Sequence[MutexEffect]:
        """Take one event and return what has to be done."""
        if isinstance(event, Received):
            return self._on_message(event.sender, event.message)
        match event:
            case EnterRequested(token):
                return self._on_enter(token)
            case ExitRequested():
                if self.status is not Status.INSIDE:
                    raise LocalProtocolError(f"{self.me} is not inside: {self.status.name}")
                return self._on_exit()
            case Cancelled(token) if token == self._token:
                return self._on_cancelled()
            case Linked(peer, held):
                return self._on_linked(peer, held)
            case Unlinked(peer):
                return self._on_unlinked(peer)
            case _:
                return []

    def next_deadline(self) -> float | None:
        """There are no time-outs."""
        return None

    def check_invariants(self) -> None:
        """Raise if this is a state that must never be."""
        away = self.competitors - self._held
        waiting = self._juniors | self._seniors
        for holds, text in (
            (self.status is not Status.INSIDE or not away, "inside without all permissions"),
            (self._held <= self.competitors, "a permission of nobody"),
            (waiting <= self._held, "owes a permission that it does not have"),
            (not self._juniors & self._seniors, "junior and senior"),
            (not waiting or self.status is not Status.IDLE, "idle, and lets others wait"),
            (self._loans <= away and self._authorised <= away, "let by, with its permission"),
        ):
            if not holds:
                raise InvariantError(f"{self.me}: {text}: {dict(self.describe())}")

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        return (
            self.status,
            self._clock,
            self._ts,
            self._token,
            frozenset(self.competitors),
            frozenset(self._held),
            frozenset(self._authorised),
            frozenset(self._juniors),
            frozenset(self._seniors),
            frozenset(self._loans),
        )

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        self.status, self._clock, self._ts, self._token, *sets = parts
        self.competitors, self._held, self._authorised = map(set, sets[:3])
        self._juniors, self._seniors, self._loans = map(set, sets[3:])

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        return {
            "status": self.status.name,
            "ts": self._ts,
            "held": sorted(self._held),
            "away": sorted(self.competitors - self._held),
            "waiting": sorted(self._juniors | self._seniors),
        }

    # -- in and out -----------------------------------------------------------------------

    def _on_enter(self, token: Hashable) -> list[MutexEffect]:
        if self.status is not Status.IDLE:
            raise LocalProtocolError(f"{self.me} is {self.status.name} already")
        self._clock += 1
        self._ts = self._clock
        self._token = token
        if len(self._held) == len(self.competitors):
            return self._get_in()
        self.status = Status.WAITING
        req = Req(self._ts)
        return [Send(peer, req) for peer in sorted(self.competitors - self._held)]

    def _get_in(self) -> list[MutexEffect]:
        self.status = Status.INSIDE
        self._authorised.clear()
        self._loans.clear()
        return [Admit(self._token)]

    def _on_exit(self) -> list[MutexEffect]:
        effects = self._give(self._juniors | self._seniors, Ack(end=True))
        self._rest()
        return effects

    def _on_cancelled(self) -> list[MutexEffect]:
        if self.status is Status.INSIDE:
            return self._on_exit()  # admitted in the same step in which it was cancelled
        if self.status is Status.IDLE:
            return []
        effects = self._give(self._juniors | self._seniors, Ack())
        self._rest()
        return effects

    def _rest(self) -> None:
        self._loans.clear()
        self.status = Status.IDLE
        self._ts = 0
        self._token = None

    # -- messages -------------------------------------------------------------------------

    def _on_message(self, sender: NodeId, message: Hashable) -> list[MutexEffect]:
        if sender not in self.competitors:
            return [Reject(sender, "is no competitor")]
        match message:
            case Req(ts):
                return self._on_req(sender, ts)
            case Ack(renew, end):
                return self._on_ack(sender, renew, end)
            case _:
                return [Reject(sender, f"no message of 2-FGME: {message!r}")]

    def _on_req(self, sender: NodeId, ts: int) -> list[MutexEffect]:
        self._clock = max(self._clock, ts)
        if sender not in self._held:
            return []  # it asks for what is on its way to it
        if self.status is Status.IDLE:
            return self._give({sender}, Ack())
        if self.status is Status.INSIDE:
            if sender not in self._seniors:
                self._juniors.add(sender)
            return []
        if sender in self._seniors or (ts, sender) < (self._ts, self.me):
            effects = self._give({sender} | self._seniors, Ack(renew=self._ts))
        else:
            self._juniors.add(sender)
            effects = []
        return effects + self._go_on()

    def _on_ack(self, sender: NodeId, renew: int, end: bool) -> list[MutexEffect]:
        if sender in self._held:
            return [Reject(sender, "hands over a permission that it does not have")]
        self._held.add(sender)
        self._authorised.discard(sender)
        self._loans.discard(sender)
        if end:
            self._authorised.clear()
        if renew:
            self._clock = max(self._clock, renew)
            if self.status is Status.IDLE:
                return self._give({sender}, Ack())  # our request was withdrawn, its own was not
            senior = (renew, sender) < (self._ts, self.me)
            (self._seniors if senior else self._juniors).add(sender)
        return self._go_on()

    def _go_on(self) -> list[MutexEffect]:
        if self.status is not Status.WAITING:
            return []
        if len(self._held) == len(self.competitors):
            return self._get_in()
        if self._authorised:
            if not self._juniors:
                return []
            lent = set(self._juniors)
            effects = self._give(lent, Ack(renew=self._ts), let_by=False)
            self._loans |= lent
            return effects
        if self._juniors and self._loans:
            recalled = sorted(self._loans)
            self._loans.clear()
            req = Req(self._ts)
            return [Send(peer, req) for peer in recalled]
        return []

    def _give(self, peers: Iterable[NodeId], ack: Ack, *, let_by: bool = True) -> list[MutexEffect]:
        given = sorted(peers)
        self._held.difference_update(given)
        self._juniors.difference_update(given)
        self._seniors.difference_update(given)
        if let_by:
            self._authorised.update(given)
        return [Send(peer, ack) for peer in given]

    # -- competitors that come and go -----------------------------------------------------

    def _on_linked(self, peer: NodeId, held: bool) -> list[MutexEffect]:
        if peer in self.competitors or (self.status is Status.INSIDE and not held):
            raise LocalProtocolError(f"{self.me} cannot link {peer} now: {self.describe()}")
        self.competitors.add(peer)
        if held:
            self._held.add(peer)
            return []
        self._authorised.add(peer)
        return [Send(peer, Req(self._ts))] if self.status is Status.WAITING else []

    def _on_unlinked(self, peer: NodeId) -> list[MutexEffect]:
        for members in (
            self.competitors,
            self._held,
            self._authorised,
            self._juniors,
            self._seniors,
            self._loans,
        ):
            members.discard(peer)
        return self._go_on()
