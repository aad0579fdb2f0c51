"""RA2: captains that let their whole group in (Joung 2002; paper 000 section 2.4).

As in RA1, who has everybody's reply gets in; it is then a *captain* and captures the waiting
members of its own group (``RaStart``), which get in at once as *successors*, whatever others they
wait for. So a reply can be out of date: its sender promised to stay out and was captured since.
Replies therefore carry how often their sender was inside (``entered``, the vector VF of the
paper), and a captain tells on leaving whom it captured. A reply that is older than a known entry
of its sender does not count any more, and successors reply again when they come out.

``VSN``, the vector of requests, gives priorities too: requests are ordered by its sum, then by
name. Vectors are in the order of the sorted names.
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

__all__ = ["RA2", "VectorRequest", "VectorReply", "RaStart"]


@dataclass(frozen=True, slots=True)
class VectorRequest:
    """May I get in? ``requests`` is VSN: how often everybody has asked, as far as I know."""

    requests: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VectorReply:
    """As far as I am concerned, yes.

    Attributes:
        request: the receiver's request that is meant, by its number.
        entered: VF, how often everybody got in, as far as the sender knows.
    """

    request: int
    entered: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RaStart:
    """From a captain inside: get in with your request of this number."""

    request: int
    entered: tuple[int, ...]


class RA2(FixedGroups):
    """One member's part of RA2.

    Args:
        seat: who takes part.
    """

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        names = sorted((seat.me, *seat.others))
        self._place = {name: place for place, name in enumerate(names)}
        self._others = seat.others
        self._siblings = frozenset(seat.siblings)
        self._mine = self._place[seat.me]
        self._requests = [0] * len(names)
        self._entered = [0] * len(names)
        # The latest request of each that came from itself, not from hearsay.
        self._asked = [0] * len(names)
        self._priority: tuple[int, NodeId] = (0, seat.me)
        self._captain = False
        # For the present request: what each peer's latest reply says of its sender's own entries.
        self._replies: dict[NodeId, int] = {}

    # -- in and out -----------------------------------------------------------------------

    def _ask(self) -> list[MutexEffect]:
        self._requests[self._mine] += 1
        self._priority = (sum(self._requests), self.me)
        request = VectorRequest(tuple(self._requests))
        return [Send(peer, request) for peer in self._others]

    def _enter(self, *, captain: bool) -> list[MutexEffect]:
        self._captain = captain
        self._replies.clear()
        self._entered[self._mine] = self._requests[self._mine]
        captured = [peer for peer in sorted(self._siblings) if captain and self._pending(peer)]
        return self._settle([*self._capture(captured), *self._get_in()])

    def _capture(self, peers: Sequence[NodeId]) -> list[MutexEffect]:
        for peer in peers:
            place = self._place[peer]
            self._entered[place] = self._asked[place]
        entered = tuple(self._entered)
        return [Send(peer, RaStart(self._asked[self._place[peer]], entered)) for peer in peers]

    def _leave(self) -> list[MutexEffect]:
        self._captain = False
        # Those whom we kept waiting, and those whose earlier reply is out of date by this entry.
        return [
            self._reply(peer)
            for peer in self._others
            if peer not in self._siblings and self._pending(peer)
        ]

    def _pending(self, peer: NodeId) -> bool:
        place = self._place[peer]
        return self._asked[place] > self._entered[place]

    def _reply(self, peer: NodeId) -> Send:
        return Send(peer, VectorReply(self._asked[self._place[peer]], tuple(self._entered)))

    # -- messages -------------------------------------------------------------------------

    def _receive(self, sender: NodeId, message: Hashable) -> list[MutexEffect] | None:
        match message:
            case VectorRequest(requests) if len(requests) == len(self._requests):
                return self._on_request(sender, requests)
            case VectorReply(request, entered) if len(entered) == len(self._entered):
                return self._on_reply(sender, request, entered)
            case RaStart(request, entered) if len(entered) == len(self._entered):
                return self._on_start(request, entered)
            case _:
                return None

    def _on_request(self, sender: NodeId, requests: tuple[int, ...]) -> list[MutexEffect]:
        place = self._place[sender]
        self._asked[place] = requests[place]
        priority = (sum(requests), sender)
        for other, count in enumerate(requests):
            self._requests[other] = max(self._requests[other], count)
        if sender in self._siblings:
            if self._captain and self.status is Status.INSIDE and self._pending(sender):
                return self._capture([sender])
            return [self._reply(sender)]
        first = self.status is Status.WAITING and self._priority < priority
        return [] if first or self.status is Status.INSIDE else [self._reply(sender)]

    def _on_reply(
        self, sender: NodeId, request: int, entered: tuple[int, ...]
    ) -> list[MutexEffect]:
        self._learn(entered)
        if self.status is Status.WAITING and request == self._requests[self._mine]:
            self._replies[sender] = entered[self._place[sender]]
        return self._go_on()

    def _on_start(self, request: int, entered: tuple[int, ...]) -> list[MutexEffect]:
        mine = self._entered[self._mine]
        self._learn(entered)
        self._entered[self._mine] = mine  # that we got in is ours to say
        if self.status is Status.WAITING and request == self._requests[self._mine]:
            return self._enter(captain=False)
        return self._go_on()

    def _go_on(self) -> list[MutexEffect]:
        if self.status is not Status.WAITING:
            return []
        for peer in self._others:
            known = self._replies.get(peer)
            if known is None:
                return []
            if peer not in self._siblings and known < self._entered[self._place[peer]]:
                return []  # out of date: it was captured, and replies again when it comes out
        return self._enter(captain=True)

    def _learn(self, entered: tuple[int, ...]) -> None:
        for place, count in enumerate(entered):
            if count > self._entered[place]:
                self._entered[place] = count

    # -- the rest of the contract ---------------------------------------------------------

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        return {**super().describe(), "captain": self._captain, "replies": dict(self._replies)}

    def _own_state(self) -> tuple[Hashable, ...]:
        return (
            tuple(self._requests),
            tuple(self._entered),
            tuple(self._asked),
            self._priority,
            self._captain,
            tuple(sorted(self._replies.items())),
        )

    def _own_restore(self, state: tuple[Any, ...]) -> None:
        requests, entered, asked, self._priority, self._captain, replies = state
        self._requests, self._entered, self._asked = [*requests], [*entered], [*asked]
        self._replies = dict(replies)
