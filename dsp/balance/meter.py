"""What meters have in common: they learn what records cost here, and tell those who choose.

A meter sits in an instance and is asked about every record that goes through the body. When it
tells what it learnt, and what it keeps beyond that, is for each kind of meter to say.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import assert_never

from dsp.balance.estimates import Costs
from dsp.balance.events import Executed, Matrices, MeterEffect, MeterEvent
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
from dsp.core.types import NodeId
from dsp.errors import LocalProtocolError

__all__ = ["Meter"]


class Meter(ABC):
    """Learns what records cost.

    Args:
        settings: sizes of the matrices, and when they are told.
    """

    def __init__(self, settings: BalanceSettings) -> None:
        self._settings = settings
        self._costs = Costs(HashFamily(settings.rows, settings.columns, settings.seed))
        # Those who choose, and the seconds that the records of each took, where that is asked for.
        self._schedulers: dict[NodeId, float] = {}

    def handle(self, event: MeterEvent, now: float) -> Sequence[MeterEffect]:
        """Take one event; give what has to be done."""
        match event:
            case Executed():
                if len(event.keys) != len(event.seconds):
                    raise LocalProtocolError(
                        f"{len(event.seconds)} durations of {len(event.keys)} records"
                    )
                return [*self._meet(event.scheduler), *self._executed_some(event, now)]
            case PeerAppeared(peer):
                return self._meet(peer)
            case PeerLost(peer):
                self._schedulers.pop(peer, None)
                return []
            case Received(sender, message, _):
                return [Reject(sender, f"{type(message).__name__} is nothing for an instance")]
            case Tick() | SendFailed() | Cancelled():
                return []
            case other:
                assert_never(other)

    def _meet(self, scheduler: NodeId) -> list[MeterEffect]:
        if scheduler in self._schedulers:
            return []
        self._schedulers[scheduler] = 0.0
        return self._greet(scheduler)

    def _greet(self, scheduler: NodeId) -> list[MeterEffect]:
        """A scheduler is there that was not: tell it what it should know."""
        return []

    @abstractmethod
    def _executed_some(self, executed: Executed, now: float) -> Sequence[MeterEffect]:
        """Learn from records, and tell if it is time to."""

    def _tell(self) -> tuple[Matrices, list[MeterEffect]]:
        """Tell every scheduler what was learnt, and begin anew."""
        message = self._costs.matrices()
        self._costs.reset()
        return message, [Send(scheduler, message) for scheduler in self._schedulers]

    # -- for drivers and explorers --------------------------------------------------------

    def next_deadline(self) -> float | None:
        """Nothing here waits for a time: without records there is nothing to tell."""
        return None

    @abstractmethod
    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the state is one that must never be."""

    @abstractmethod
    def state(self) -> Hashable:
        """The whole mutable state as a value."""

    @abstractmethod
    def restore(self, state: Hashable) -> None:
        """Return to a value that ``state`` gave."""

    @abstractmethod
    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
