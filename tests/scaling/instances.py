"""A minimal instance: a scale machine, a queue, one body that does nothing, and forwarding.

It is a machine itself, so that it can be explored with its records, and run in worlds. Records go
on the DATA lane; so do their confirmations, which makes them as independent of control messages as
they can be.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

from dsp.core.machine import Received, Send
from dsp.core.types import Lane, NodeId
from dsp.scaling.events import Activate, Assigned, Delivered, Drain, QueueEmptied, Spawn, Stop
from dsp.scaling.place import Place

__all__ = [
    "Confirm",
    "Create",
    "Enter",
    "Forward",
    "Instance",
    "Out",
    "Record",
    "Scaler",
    "Stopped",
]


class Scaler(Protocol):
    """What an instance needs of a scale machine; the published one has it too."""

    place: Place

    @property
    def works(self) -> bool: ...
    def routes(self, operator: str) -> tuple[NodeId, ...]: ...
    def handle(self, event: Any, now: float) -> Sequence[object]: ...  # noqa: ANN401
    def check_invariants(self) -> None: ...
    def state(self) -> Hashable: ...
    def restore(self, state: Hashable) -> None: ...
    def describe(self) -> Mapping[str, object]: ...


@dataclass(frozen=True, slots=True)
class Record:
    """A record on its way."""

    number: int


@dataclass(frozen=True, slots=True)
class Confirm:
    """The receiver's machine has so many records."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class Enter:
    """A record comes from outside."""

    number: int


@dataclass(frozen=True, slots=True)
class Forward:
    """The body is done with the oldest record: send it on, by the way with this number."""

    way: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create siblings of the instance at a place."""

    parent: Place
    count: int


@dataclass(frozen=True, slots=True)
class Out:
    """A record reached the end."""

    number: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The instance gave up."""

    had_records: bool


class Instance:
    """One instance with its records.

    Args:
        scaler: the protocol.
        copies: every successor operator gets each record; otherwise one of them.
        lane: of records. On CONTROL nothing is confirmed: that is the papers' single channel.
        refuse_early: take a record that comes to an idle instance for a fault.
    """

    def __init__(
        self,
        scaler: Scaler,
        *,
        copies: bool = False,
        lane: Lane = Lane.DATA,
        refuse_early: bool = False,
    ) -> None:
        self.scaler = scaler
        self.queue: tuple[int, ...] = ()
        self._copies = copies
        self._lane = lane
        self._refuse_early = refuse_early

    def ways(self) -> list[tuple[NodeId, ...]]:
        """All choices of receivers for the next record."""
        downstream = self.scaler.place.downstream
        if not downstream:
            return [()]
        routes = [self.scaler.routes(operator) for operator in downstream]
        if self._copies:
            return list(product(*routes))
        return [(to,) for group in routes for to in group]

    def can_forward(self, way: int = 0) -> bool:
        return bool(self.queue) and self.scaler.works and way < len(self.ways())

    def handle(self, event: object, now: float) -> Sequence[object]:
        effects: list[object] = []
        match event:
            case Received(sender, Record(number), _):
                assert self.scaler.works or not self._refuse_early, "a record comes too early"
                self.queue += (number,)
                if self._lane is Lane.DATA:
                    effects.append(Send(sender, Confirm(), Lane.DATA))
            case Received(sender, Confirm(count), _):
                effects += self._scale(Delivered(sender, count), now)
            case Enter(number):
                self.queue += (number,)
            case Forward(way):
                effects += self._forward(self.ways()[way], now)
            case _:
                effects += self._scale(event, now)
        return effects

    def _forward(self, receivers: tuple[NodeId, ...], now: float) -> Iterator[object]:
        number, self.queue = self.queue[0], self.queue[1:]
        for to in receivers:
            yield from self._scale(Assigned(to), now)
            yield Send(to, Record(number), self._lane)
        if not receivers:
            yield Out(number)
        if not self.queue and self._draining:
            yield from self._scale(QueueEmptied(), now)

    @property
    def _draining(self) -> bool:
        return self.scaler.describe()["status"] == "DRAINING"

    def _scale(self, event: object, now: float) -> Iterator[object]:
        for effect in self.scaler.handle(event, now):
            if isinstance(effect, Drain):
                if not self.queue:
                    yield from self._scale(QueueEmptied(), now)
            elif isinstance(effect, Spawn):
                yield Create(self.scaler.place, effect.count)
            elif isinstance(effect, Stop):
                yield Stopped(bool(self.queue))
            elif not isinstance(effect, Activate):
                yield effect

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        self.scaler.check_invariants()

    def state(self) -> Hashable:
        return (self.scaler.state(), self.queue)

    def restore(self, state: Hashable) -> None:
        parts: Any = state
        scaler, self.queue = parts
        self.scaler.restore(scaler)

    def describe(self) -> Mapping[str, object]:
        return {**self.scaler.describe(), "queue": len(self.queue)}
