"""RA1: Ricart and Agrawala's algorithm for groups (Joung 2002; paper 000 section 2.4).

Who wants to get in asks everybody, with its time, and is inside when everybody has agreed. A
member agrees at once unless it is of the other group and inside, or asks with an earlier time;
then it agrees when it comes out. Simple, 2(n - 1) messages for each entry, and poor occupancy: a
waiting member of the other group keeps out everybody who asked after it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from dsp.core.machine import Send
from dsp.core.types import NodeId
from dsp.mutex.events import MutexEffect
from dsp.mutex.fixed import FixedGroups
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status

__all__ = ["RA1", "RaRequest", "RaReply"]


@dataclass(frozen=True, slots=True)
class RaRequest:
    """May I get in? I asked at time ``ts``."""

    ts: int


@dataclass(frozen=True, slots=True)
class RaReply:
    """As far as I am concerned, yes."""


class RA1(FixedGroups):
    """One member's part of RA1.

    Args:
        seat: who takes part.
    """

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._others = seat.others
        self._siblings = frozenset(seat.siblings)
        self._clock = 0
        self._ts = 0
        self._missing: set[NodeId] = set()
        self._deferred: set[NodeId] = set()

    def _ask(self) -> list[MutexEffect]:
        self._clock += 1
        self._ts = self._clock
        self._missing = {*self._others}
        return [Send(peer, RaRequest(self._ts)) for peer in self._others]

    def _leave(self) -> list[MutexEffect]:
        self._ts = 0
        deferred = sorted(self._deferred)
        self._deferred.clear()
        return [Send(peer, RaReply()) for peer in deferred]

    def _receive(self, sender: NodeId, message: Hashable) -> list[MutexEffect] | None:
        match message:
            case RaRequest(ts):
                self._clock = max(self._clock, ts)
                first = self.status is Status.WAITING and (self._ts, self.me) < (ts, sender)
                if sender not in self._siblings and (first or self.status is Status.INSIDE):
                    self._deferred.add(sender)
                    return []
                return [Send(sender, RaReply())]
            case RaReply() if sender in self._missing:
                self._missing.discard(sender)
                return [] if self._missing else self._settle(self._get_in())
            case _:
                return None

    def _faults(self) -> Sequence[tuple[bool, str]]:
        idle, waits = self.status is Status.IDLE, self.status is Status.WAITING
        return (
            (bool(self._missing) == waits, "waits for replies, or does not, without a reason"),
            (not idle or not self._deferred, "idle, and owes replies"),
        )

    def _own_state(self) -> tuple[Hashable, ...]:
        return self._clock, self._ts, frozenset(self._missing), frozenset(self._deferred)

    def _own_restore(self, state: tuple[Any, ...]) -> None:
        self._clock, self._ts, missing, deferred = state
        self._missing, self._deferred = {*missing}, {*deferred}
