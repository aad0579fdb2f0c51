"""The adaptive balancer: a record goes to the instance that will be through with it first.

OSG sums up estimates and corrects the sums now and then. But whoever sends over our channels hears
from each instance what it has executed. So the work that lies at an instance is known record by
record, and estimates are needed for that little alone: an error is gone as soon as the record is.

What records cost is learnt from the reports of all instances together, in one pair of sketches in
which old records fade. How much slower than the others an instance is, is one number: what its
records took, by what they were expected to take. A record's cost at an instance is the product.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from math import exp, log
from typing import Final, TypeVar, assert_never, cast

from dsp.balance.believed import Believed
from dsp.balance.estimates import Costs, Estimator
from dsp.balance.events import (
    Assign,
    Departing,
    Matrices,
    Offered,
    SchedulerEffect,
    SchedulerEvent,
    Worked,
)
from dsp.balance.hashing import HashFamily, np
from dsp.balance.settings import BalanceSettings
from dsp.core.machine import Cancelled, PeerAppeared, PeerLost, Received, Reject, SendFailed, Tick
from dsp.core.types import NodeId
from dsp.errors import CodecError, InvariantError

__all__ = ["AdaptiveScheduler"]

T = TypeVar("T")

# Of a slow change of speed, so much is believed with each report; a large one is believed at once.
SMOOTHING: Final = 0.25
LARGE: Final = log(1.5)
# What is not known costs something: or all records of a moment would go to one instance.
UNKNOWN: Final = 1e-6


@dataclass(slots=True)
class _Way:
    """What is known of an instance.

    Attributes:
        speed: how many times longer than elsewhere records take there.
        waiting: estimated seconds of each record that lies there, oldest first.
        work: their sum.
        since: when the oldest of them was begun, as far as is known.
    """

    speed: float = 1.0
    waiting: list[float] = field(default_factory=list)
    work: float = 0.0
    since: float = 0.0


class AdaptiveScheduler:
    """Chooses an instance for each record by the work that lies there and what the record costs.

    Args:
        settings: sizes of the matrices, and how long they remember.
        instances: those that are there.
    """

    def __init__(self, settings: BalanceSettings, instances: Sequence[NodeId] = ()) -> None:
        self._settings = settings
        self._costs = Costs(HashFamily(settings.rows, settings.columns, settings.seed))
        self._ways: dict[NodeId, _Way] = {name: _Way() for name in instances}
        self._believed = Believed(self._read)
        self._estimator: Estimator | None = None
        self._turn = 0

    def handle(self, event: SchedulerEvent, now: float) -> Sequence[SchedulerEffect]:
        """Take one event; give what has to be done."""
        match event:
            case Offered(keys, room):
                return [self._assign(keys, room, now)]
            case Worked(by, records):
                self._worked(by, records, now)
                return []
            case Received(sender, message, _):
                return self._hear(sender, message)
            case PeerAppeared(peer):
                self._ways.setdefault(peer, _Way())
                return []
            case PeerLost(peer):
                self._ways.pop(peer, None)
                return []
            case Departing() | Tick() | SendFailed() | Cancelled():
                return []
            case other:
                assert_never(other)

    # -- learning -------------------------------------------------------------------------

    def _worked(self, by: NodeId, records: int, now: float) -> None:
        way = self._ways.get(by)
        if way is None or not records:
            return
        way.work -= sum(way.waiting[:records])
        del way.waiting[:records]
        way.since = now
        if not way.waiting:
            way.work = 0.0  # rounding errors must not add up

    def _hear(self, sender: NodeId, message: Hashable) -> list[SchedulerEffect]:
        way = self._ways.get(sender)
        if way is None:
            return []  # it left before its message came
        if not isinstance(message, Matrices):
            return [Reject(sender, f"{type(message).__name__} is nothing for this scheduler")]
        try:
            seen = Costs.of(message, self._costs.family)
        except CodecError as error:
            return [Reject(sender, str(error))]
        self._learn_speed(way, seen)
        self._costs.decay(0.5 ** (seen.counts.total / self._settings.memory))
        seen.seconds.decay(1.0 / way.speed)
        self._costs.merge(seen)
        self._forget_estimates()
        return []

    def _learn_speed(self, way: _Way, seen: Costs) -> None:
        expected = self._costs.expected(seen)
        if not expected > 0.0 or not seen.seconds.total > 0.0:
            return
        found = log(seen.seconds.total / expected)
        off = found - log(way.speed)
        believed = off if abs(off) > LARGE else SMOOTHING * off
        way.speed = exp(log(way.speed) + believed)
        # Speeds compare instances: what is common to all belongs to the costs.
        common = exp(sum(log(each.speed) for each in self._ways.values()) / len(self._ways))
        for each in self._ways.values():
            each.speed /= common
        self._costs.seconds.decay(common)

    # -- choosing -------------------------------------------------------------------------

    def _assign(self, keys: Sequence[bytes], room: Sequence[int] | None, now: float) -> Assign:
        count = len(self._ways)
        if not count:
            return Assign([], {})
        # Who would be through first with a mean record: instances may differ in speed. Where that
        # is the same, as at the start, they take turns.
        turn = self._turn % count
        names, ways = _turned(list(self._ways), turn), _turned(list(self._ways.values()), turn)
        left = None if room is None else _turned(room, turn)
        mean = max(self._costs.mean, UNKNOWN)
        heap = [
            (self._left(way, now) + way.speed * mean, place)
            for place, way in enumerate(ways)
            if left is None or left[place] > 0
        ]
        heapify(heap)
        if left is not None and min(left) >= len(keys):
            left = None  # nobody's room is used up
        speeds = [way.speed for way in ways]
        given: list[list[float]] = [[] for _ in ways]
        chosen: list[int] = []
        for cost in self._believed.of(keys):
            if not heap:
                break
            end, place = heap[0]
            each = cost * speeds[place]
            chosen.append(place)
            given[place].append(each)
            if left is not None:
                left[place] -= 1
                if not left[place]:
                    heappop(heap)
                    continue
            heapreplace(heap, (end + each, place))
        work: dict[NodeId, float] = {}
        for name, way, some in zip(names, ways, given, strict=True):
            if some:
                if not way.waiting:
                    way.since = now
                way.waiting += some
                work[name] = sum(some)
                way.work += work[name]
        self._turn = (turn + len(chosen)) % count
        return Assign([names[place] for place in chosen], work)

    @staticmethod
    def _left(way: _Way, now: float) -> float:
        """Seconds of work that lie at an instance; some of the oldest record is done."""
        if not way.waiting:
            return 0.0
        return way.work - min(way.waiting[0], max(0.0, now - way.since))

    def _read(self, keys: Sequence[bytes]) -> list[float]:
        """Read from the sketches what a record of each key costs."""
        if self._estimator is None:
            self._estimator = Estimator([self._costs])
        estimates = self._estimator.estimate(keys)[:, 0]
        seconds: list[float] = np.maximum(estimates, UNKNOWN).tolist()
        return seconds

    def _forget_estimates(self) -> None:
        self._believed.change()
        self._estimator = None

    # -- for drivers and explorers --------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Nothing here waits for a time."""
        return None

    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the state is one that must never be."""
        for name, way in self._ways.items():
            if abs(sum(way.waiting) - way.work) > 1e-6 * max(1.0, way.work):
                raise InvariantError(f"the work at {name} is not that of its records")
            if not way.speed > 0.0:
                raise InvariantError(f"{name} takes {way.speed} times as long as the others")

    def state(self) -> Hashable:
        """The whole mutable state as a value."""
        ways = tuple(
            (name, way.speed, tuple(way.waiting), way.work, way.since)
            for name, way in self._ways.items()
        )
        return self._costs.state(), ways, self._turn

    def restore(self, state: Hashable) -> None:
        """Return to a value that ``state`` gave."""
        costs, ways, self._turn = cast(
            "tuple[tuple[bytes, bytes, float, float], "
            "tuple[tuple[NodeId, float, tuple[float, ...], float, float], ...], int]",
            state,
        )
        self._costs.restore(costs)
        self._ways = {
            name: _Way(speed, list(waiting), work, since)
            for name, speed, waiting, work, since in ways
        }
        self._forget_estimates()

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
        return {
            "work": {name: round(way.work, 6) for name, way in self._ways.items()},
            "speeds": {name: round(way.speed, 3) for name, way in self._ways.items()},
        }


def _turned(items: Sequence[T], turn: int) -> list[T]:
    """Give items from one on, and then those before it."""
    return [*items[turn:], *items[:turn]]
