"""The scheduler's half of OSG (paper 002, figure 7a): the least loaded instance gets a record.

    ROUND ROBIN --- matrices of every instance are there -----> SEND ALL
    SEND ALL ------ every instance has got a request ----------> WAIT ALL
    WAIT ALL ------ every instance has replied ----------------> RUN
    all but ROUND ROBIN --- new matrices of an instance -------> SEND ALL, the next epoch

Loads are estimated: what records cost is read from the matrices, and summed up for each instance.
A request travels with records and carries the estimate at that moment; the reply has the difference
to what those records and all before them took. Replies to earlier epochs are out of date.

Where the paper is silent:

* In SEND ALL the next records go round, one to each instance, as in the paper; a request leaves
  with the first that departs for an instance, whether they depart singly or in batches.
* A request compares what *this* scheduler sent. Where several would compare what all of them sent,
  each would make up for the whole of a difference, and so overshoot by their number.
* A newcomer begins with the load of the least loaded instance: with 0 it would get every record
  until it has caught up with the sum of all time. It is estimated by the mean matrices of the
  others until it has sent its own, and takes part from the next epoch on.
* One that is lost is waited for by nobody; without it an epoch may be complete.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heapreplace
from typing import Final, assert_never, cast

from dsp.balance.believed import Believed
from dsp.balance.estimates import Costs, Estimator
from dsp.balance.events import (
    Assign,
    Departing,
    Matrices,
    Offered,
    Piggyback,
    Reply,
    Request,
    SchedulerEffect,
    SchedulerEvent,
    Worked,
)
from dsp.balance.hashing import HashFamily, np
from dsp.balance.settings import BalanceSettings
from dsp.core.machine import Cancelled, PeerAppeared, PeerLost, Received, Reject, SendFailed, Tick
from dsp.core.types import NodeId
from dsp.errors import CodecError, InvariantError

__all__ = ["OsgScheduler", "SchedulerState", "TRANSITIONS"]


class SchedulerState(Enum):
    """States of figure 7a."""

    ROUND_ROBIN = "round robin"
    SEND_ALL = "send all"
    WAIT_ALL = "wait all"
    RUN = "run"


TRANSITIONS: Final = {
    SchedulerState.ROUND_ROBIN: {SchedulerState.SEND_ALL},
    SchedulerState.SEND_ALL: {SchedulerState.WAIT_ALL, SchedulerState.RUN},
    SchedulerState.WAIT_ALL: {SchedulerState.SEND_ALL, SchedulerState.RUN},
    SchedulerState.RUN: {SchedulerState.SEND_ALL},
}
"""What may follow what; new matrices in SEND ALL begin it again."""


@dataclass(slots=True)
class _Way:
    """What is known of an instance.

    Attributes:
        base: load that it began with.
        load: seconds of work that it was given, as far as is known.
        matrices: the last that it sent.
        turn: whether a record has to go to it in this epoch, whatever its load.
        asks: whether a request has to go to it.
        awaited: whether its reply is missing.
        difference: what it replied.
    """

    base: float = 0.0
    load: float = 0.0
    matrices: Matrices | None = None
    turn: bool = False
    asks: bool = False
    awaited: bool = False
    difference: float = 0.0


class OsgScheduler:
    """Chooses an instance for each record, as OSG does.

    Args:
        settings: sizes of the matrices.
        instances: those that are there.
    """

    def __init__(self, settings: BalanceSettings, instances: Sequence[NodeId] = ()) -> None:
        self._family = HashFamily(settings.rows, settings.columns, settings.seed)
        self._ways: dict[NodeId, _Way] = {name: _Way() for name in instances}
        self._costs: dict[NodeId, Costs] = {}
        self._believed = Believed(self._read)
        self._estimator: Estimator | None = None
        self.status = SchedulerState.ROUND_ROBIN
        self._epoch = 0
        self._next = 0

    # -- events ---------------------------------------------------------------------------

    def handle(self, event: SchedulerEvent, now: float) -> Sequence[SchedulerEffect]:
        """Take one event; give what has to be done."""
        match event:
            case Offered(keys):
                return [self._assign(keys)]
            case Departing(to, behind):
                return self._depart(to, behind)
            case Received(sender, message, _):
                return self._hear(sender, message)
            case PeerAppeared(peer):
                self._appear(peer)
                return []
            case PeerLost(peer):
                self._lose(peer)
                return []
            case Worked() | Tick() | SendFailed() | Cancelled():
                return []
            case other:
                assert_never(other)

    def _hear(self, sender: NodeId, message: Hashable) -> list[SchedulerEffect]:
        way = self._ways.get(sender)
        if way is None:
            return []  # it left before its message came
        match message:
            case Matrices():
                try:
                    costs = Costs.of(message, self._family)
                except CodecError as error:
                    return [Reject(sender, str(error))]
                way.matrices = message
                self._costs[sender] = costs
                self._forget_estimates()
                if self.status is not SchedulerState.ROUND_ROBIN or self._is_informed:
                    self._synchronise()
            case Reply(epoch, difference):
                if epoch == self._epoch and way.awaited:
                    way.awaited, way.difference = False, difference
                    self._advance()
            case _:
                return [Reject(sender, f"{type(message).__name__} is nothing for a scheduler")]
        return []

    @property
    def _is_informed(self) -> bool:
        return all(way.matrices is not None for way in self._ways.values())

    def _synchronise(self) -> None:
        self.status = SchedulerState.SEND_ALL
        self._epoch += 1
        for way in self._ways.values():
            way.turn = way.asks = True
            way.awaited, way.difference = False, 0.0

    def _advance(self) -> None:
        """See whether the last request is sent, or the last reply there."""
        ways = self._ways.values()
        if self.status is SchedulerState.SEND_ALL and not any(way.asks for way in ways):
            self.status = SchedulerState.WAIT_ALL
        if self.status is SchedulerState.WAIT_ALL and not any(way.awaited for way in ways):
            for way in ways:
                way.load += way.difference
                way.difference = 0.0
            self.status = SchedulerState.RUN

    def _appear(self, peer: NodeId) -> None:
        if peer in self._ways:
            return
        least = min((way.load for way in self._ways.values()), default=0.0)
        self._ways[peer] = _Way(base=least, load=least)
        self._forget_estimates()

    def _lose(self, peer: NodeId) -> None:
        if self._ways.pop(peer, None) is None:
            return
        self._costs.pop(peer, None)
        self._forget_estimates()
        if not self._ways:
            # Whoever comes next is met as at the start.
            self.status = SchedulerState.ROUND_ROBIN
        elif self.status is SchedulerState.ROUND_ROBIN:
            if self._is_informed:
                self._synchronise()
        else:
            self._advance()

    def _depart(self, to: NodeId, behind: float) -> list[SchedulerEffect]:
        way = self._ways.get(to)
        if way is None or not way.asks or way.turn:
            return []
        way.asks, way.awaited = False, True
        request = Request(self._epoch, way.load - way.base - behind)
        self._advance()
        return [Piggyback(request)]

    # -- choosing -------------------------------------------------------------------------

    def _assign(self, keys: Sequence[bytes]) -> Assign:
        names = list(self._ways)
        if not names:
            return Assign([], {})
        if self.status is SchedulerState.ROUND_ROBIN:
            count = len(names)
            targets = [names[(self._next + i) % count] for i in range(len(keys))]
            self._next = (self._next + len(keys)) % count
            # Nothing is known of what they cost: the synchronisation to come makes up for it.
            return Assign(targets, dict.fromkeys(targets, 0.0))
        estimates = self._believed.of(keys)
        chosen: list[int] = []
        ways = list(self._ways.values())
        before = [way.load for way in ways]
        turns = [i for i, way in enumerate(ways) if way.turn][: len(keys)]
        for index, costs in zip(turns, estimates, strict=False):
            ways[index].turn = False
            ways[index].load += costs[index]
            chosen.append(index)
        heap = [(way.load, index) for index, way in enumerate(ways)]
        heapify(heap)
        for costs in estimates[len(turns) :]:
            load, index = heap[0]
            heapreplace(heap, (load + costs[index], index))
            chosen.append(index)
        for load, index in heap:
            ways[index].load = load
        work = {names[index]: ways[index].load - before[index] for index in dict.fromkeys(chosen)}
        return Assign([names[index] for index in chosen], work)

    def _read(self, keys: Sequence[bytes]) -> list[list[float]]:
        """Read from the matrices what a record of each key costs at each instance."""
        if not self._costs:
            return [[0.0] * len(self._ways) for _ in keys]
        if self._estimator is None:
            self._estimator = Estimator(list(self._costs.values()))
        table = self._estimator.estimate(keys)
        if list(self._costs) != list(self._ways):
            places = {name: place for place, name in enumerate(self._costs)}
            mean = table.mean(axis=1)  # for newcomers: what a record costs the others
            columns = [table[:, places[name]] if name in places else mean for name in self._ways]
            table = np.stack(columns, axis=1)
        rows: list[list[float]] = table.tolist()
        return rows

    def _forget_estimates(self) -> None:
        self._believed.change()
        self._estimator = None

    # -- for drivers and explorers --------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Nothing here waits for a time."""
        return None

    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the state is one that must never be."""
        ways = self._ways.values()
        asks, awaited = any(way.asks for way in ways), any(way.awaited for way in ways)
        if self.status is SchedulerState.SEND_ALL and not asks:
            raise InvariantError("SEND ALL, and every request is sent")
        if self.status is SchedulerState.WAIT_ALL and (asks or not awaited):
            raise InvariantError("WAIT ALL, and no reply is missing or a request is not sent")
        if self.status is SchedulerState.RUN and (asks or awaited):
            raise InvariantError("RUN in the middle of a synchronisation")
        if self.status is SchedulerState.ROUND_ROBIN and ways and self._is_informed:
            raise InvariantError("ROUND ROBIN, and all matrices are there")
        if any(way.turn and not way.asks for way in ways):
            raise InvariantError("a request was sent before its record")

    def state(self) -> Hashable:
        """The whole mutable state as a value."""
        ways = tuple(
            (name, (w.base, w.load, w.matrices, w.turn, w.asks, w.awaited, w.difference))
            for name, w in self._ways.items()
        )
        return self.status, self._epoch, self._next, ways

    def restore(self, state: Hashable) -> None:
        """Return to a value that ``state`` gave."""
        self.status, self._epoch, self._next, ways = cast(
            "tuple[SchedulerState, int, int, tuple[tuple[NodeId, "
            "tuple[float, float, Matrices | None, bool, bool, bool, float]], ...]]",
            state,
        )
        self._ways = {name: _Way(*way) for name, way in ways}
        self._costs = {
            name: Costs.of(way.matrices, self._family)
            for name, way in self._ways.items()
            if way.matrices is not None
        }
        self._forget_estimates()

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
        loads = {name: round(way.load - way.base, 6) for name, way in self._ways.items()}
        return {"status": self.status.value, "epoch": self._epoch, "loads": loads}
