"""The instance's half of the adaptive balancer: tells what records cost here, again and again.

Unlike OSG's it does not wait until its matrices are stable: it sends what it saw since it last did,
as soon as that is enough records and some time has passed, and schedulers put it together.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, assert_never, cast

from dsp.balance.estimates import Costs
from dsp.balance.events import Executed, MeterEffect, MeterEvent
from dsp.balance.hashing import HashFamily
from dsp.balance.settings import BalanceSettings
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
from dsp.errors import InvariantError, LocalProtocolError

if TYPE_CHECKING:
    from dsp.core.types import NodeId

__all__ = ["AdaptiveMeter"]


class AdaptiveMeter:
    """What sits in an instance whose records are spread by the adaptive balancer.

    Args:
        settings: sizes of the matrices, and how often they are told.
    """

    def __init__(self, settings: BalanceSettings) -> None:
        self._settings = settings
        self._costs = Costs(HashFamily(settings.rows, settings.columns, settings.seed))
        self._schedulers: dict[NodeId, None] = {}
        self._told: float | None = None

    def handle(self, event: MeterEvent, now: float) -> Sequence[MeterEffect]:
        """Take one event; give what has to be done."""
        match event:
            case Executed(scheduler, keys, seconds):
                if len(keys) != len(seconds):
                    raise LocalProtocolError(f"{len(seconds)} durations of {len(keys)} records")
                self._schedulers[scheduler] = None
                self._costs.add(keys, seconds)
                return self._tell(now)
            case PeerAppeared(peer):
                self._schedulers[peer] = None
                return []
            case PeerLost(peer):
                self._schedulers.pop(peer, None)
                return []
            case Received(sender, message, _):
                return [Reject(sender, f"{type(message).__name__} is nothing for an instance")]
            case Tick() | SendFailed() | Cancelled():
                return []
            case other:
                assert_never(other)

    def _tell(self, now: float) -> list[MeterEffect]:
        settings = self._settings
        if self._costs.counts.total < settings.report_records:
            return []
        if self._told is not None and now < self._told + settings.report_pause:
            return []
        self._told = now
        message = self._costs.matrices()
        self._costs.reset()
        return [Send(scheduler, message) for scheduler in self._schedulers]

    # -- for drivers and explorers --------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Nothing here waits for a time: without records there is nothing to tell."""
        return None

    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the state is one that must never be."""
        if self._costs.counts.total < 0.0 or self._costs.seconds.total < 0.0:
            raise InvariantError("fewer than no records")

    def state(self) -> Hashable:
        """The whole mutable state as a value."""
        return self._costs.state(), tuple(self._schedulers), self._told

    def restore(self, state: Hashable) -> None:
        """Return to a value that ``state`` gave."""
        costs, schedulers, self._told = cast(
            "tuple[tuple[bytes, bytes, float, float], tuple[NodeId, ...], float | None]", state
        )
        self._costs.restore(costs)
        self._schedulers = dict.fromkeys(schedulers)

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
        return {"records": self._costs.counts.total, "mean": self._costs.mean}
