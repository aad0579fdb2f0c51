"""2-FGME exactly as published (paper 000 algorithms 12 to 15): an exhibit that does not hold.

Line by line, faults included, to be compared with ``dsp.mutex.two_fgme``: it lets both groups in,
deadlocks, and lets members in that did not ask. docs/design/mutex.md says where and why. Never use
it.

Two things that the pseudo-code leaves open: no request means a priority below all others (line 2),
and a member that gets in while it does not ask (line 72 looks at no state) is reported by
``intruded``.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from dsp.core.machine import Send
from dsp.core.types import NodeId
from dsp.mutex.events import MutexEffect
from dsp.mutex.fixed import FixedGroups
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status

__all__ = ["PublishedTwoFGME", "PublishedReq", "PublishedAck", "PublishedEnd"]


@dataclass(frozen=True, slots=True)
class PublishedReq:
    """``Req(n, req_id)``."""

    ts: int


@dataclass(frozen=True, slots=True)
class PublishedAck:
    """``Ack(n), renew, end``."""

    renew: bool = False
    end: bool = False


@dataclass(frozen=True, slots=True)
class PublishedEnd:
    """``End(n, LC)``."""

    clock: int


class PublishedTwoFGME(FixedGroups):
    """One member's part of the published algorithm.

    Args:
        seat: who takes part.
    """

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self._competitors = seat.competitors
        self._peers = frozenset(seat.competitors)
        self._clock = 0
        self._ts = 0  # 0 stands for the infinite time of no request
        self._authorised = False
        self._waiting: set[NodeId] = set()
        self._to_send: set[NodeId] = set()
        self._to_ignore: set[NodeId] = set()
        self._received: set[NodeId] = set()
        self.intruded = False

    def _ask(self) -> list[MutexEffect]:
        self._clock += 1  # line 10
        self._ts = self._clock
        self._received = set()  # line 16
        if self._authorised:
            self._to_send = {*self._competitors}  # line 14
            return []
        return self._multicast(self._competitors)  # line 12

    def _leave(self) -> list[MutexEffect]:
        clock = self._clock
        self._ts = 0  # line 89
        waiting = sorted(self._waiting)
        if waiting:
            self._authorised = True  # line 91
        others = [peer for peer in self._competitors if peer not in self._waiting]
        self._waiting = set()
        self._to_ignore = set()  # line 97
        return [
            *(Send(peer, PublishedAck(end=True)) for peer in waiting),
            *(Send(peer, PublishedEnd(clock)) for peer in others),
        ]

    def _receive(self, sender: NodeId, message: Hashable) -> list[MutexEffect] | None:
        match message:
            case PublishedReq(ts):
                return self._on_req(sender, ts)
            case PublishedAck(renew, end):
                return self._on_ack(sender, renew, end)
            case PublishedEnd(clock):
                self._clock = max(self._clock, clock)
                self._authorised = False
                self._waiting.discard(sender)
                return self._resume()  # lines 83 to 85
            case _:
                return None

    def _on_req(self, sender: NodeId, ts: int) -> list[MutexEffect]:
        self._clock = max(self._clock, ts)
        outside = self.status is not Status.INSIDE
        if outside and (not self._ts or (self._ts, self.me) > (ts, sender)):  # line 20
            effects: list[MutexEffect] = [Send(sender, PublishedAck())]
            if not self._authorised:
                self._authorised = True
                if self._ts:
                    for peer in self._competitors:
                        if peer != sender:
                            effects += self._put_off(peer)
            return effects
        if self._authorised and outside:  # line 42
            effects = []
            if sender not in self._to_send:
                effects.append(Send(sender, PublishedEnd(self._clock)))
                self._to_send.add(sender)
                self._forget_ack(sender)
            return [*effects, Send(sender, PublishedAck(renew=True))]
        self._waiting.add(sender)  # line 54
        return []

    def _put_off(self, peer: NodeId) -> list[MutexEffect]:
        message: PublishedAck | PublishedEnd = PublishedEnd(self._clock)
        if peer in self._waiting:
            self._waiting.discard(peer)
            message = PublishedAck(renew=True)
        self._to_send.add(peer)
        self._forget_ack(peer)
        return [Send(peer, message)]

    def _forget_ack(self, peer: NodeId) -> None:
        if peer in self._received:
            self._received.discard(peer)
        else:
            self._to_ignore.add(peer)

    def _on_ack(self, sender: NodeId, renew: bool, end: bool) -> list[MutexEffect]:
        effects: list[MutexEffect] = []
        if end or renew:
            self._authorised = False
            if end:
                self._to_ignore.discard(sender)
                effects += self._resume()  # lines 63 to 65
        if sender in self._to_ignore:
            self._to_ignore.discard(sender)
            return effects
        self._received.add(sender)
        if self._received == {*self._competitors}:  # line 72
            self.intruded = self.intruded or self.status is Status.IDLE
            effects += self._settle(self._get_in())
        return effects

    def _resume(self) -> list[MutexEffect]:
        # Line 64 empties the set before line 65 subtracts it, so line 65 does nothing.
        peers = sorted(self._to_send)
        self._to_send = set()
        return self._multicast(peers)

    def _multicast(self, peers: "list[NodeId] | tuple[NodeId, ...]") -> list[MutexEffect]:
        return [Send(peer, PublishedReq(self._ts)) for peer in peers]

    def _own_state(self) -> tuple[Hashable, ...]:
        return (
            self._clock,
            self._ts,
            self._authorised,
            frozenset(self._waiting),
            frozenset(self._to_send),
            frozenset(self._to_ignore),
            frozenset(self._received),
            self.intruded,
        )

    def _own_restore(self, state: tuple[Any, ...]) -> None:
        self._clock, self._ts, self._authorised, *sets, self.intruded = state
        self._waiting, self._to_send, self._to_ignore, self._received = map(set, sets)
