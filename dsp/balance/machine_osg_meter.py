"""The instance's half of OSG (paper 002, figure 7b): learns what records cost, and tells.

    START ------- N records -------> STABILIZING     a snapshot of the ratios is taken
    STABILIZING - N records, moved > STABILIZING     another one
    STABILIZING - N records, stable> START           matrices are sent to all, and begin anew

A look compares the ratios of seconds and counts, cell by cell, with those of the snapshot; the
matrices are stable where the differences are at most ``tolerance`` of the snapshot's sum
(equation 14). Cells in which nothing was counted are 0, see ``estimates``.

Beyond the paper: seconds are summed up for each scheduler, so that each one's synchronisation
compares its estimate with what its own records took; and a scheduler that appears gets the last
matrices, since the next ones may be long in coming.
"""

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum
from typing import cast

from dsp.balance.events import Executed, Matrices, MeterEffect, Reply
from dsp.balance.hashing import np
from dsp.balance.meter import Meter
from dsp.balance.settings import BalanceSettings
from dsp.balance.sketch import Matrix
from dsp.core.machine import Send
from dsp.core.types import NodeId
from dsp.errors import InvariantError

__all__ = ["MeterState", "OsgMeter"]


class MeterState(Enum):
    """States of figure 7b."""

    START = "start"
    STABILIZING = "stabilizing"


class OsgMeter(Meter):
    """What sits in an instance whose records are spread by OSG.

    Args:
        settings: sizes, window and tolerance.
    """

    def __init__(self, settings: BalanceSettings) -> None:
        super().__init__(settings)
        self._snapshot: Matrix | None = None
        self._executed = 0
        self._last: Matrices | None = None

    @property
    def status(self) -> MeterState:
        """Where it is in figure 7b."""
        return MeterState.START if self._snapshot is None else MeterState.STABILIZING

    def _greet(self, scheduler: NodeId) -> list[MeterEffect]:
        return [] if self._last is None else [Send(scheduler, self._last)]

    def _executed_some(self, executed: Executed, now: float) -> Sequence[MeterEffect]:
        keys, seconds, request = executed.keys, executed.seconds, executed.request
        effects: list[MeterEffect] = []
        start, window = 0, self._settings.window
        while start < len(keys):
            # A look is due after every N records exactly, however they come.
            end = min(len(keys), start + window - self._executed)
            self._costs.add(keys[start:end], seconds[start:end])
            self._executed += end - start
            start = end
            if self._executed == window:
                self._executed = 0
                effects += self._look()
        self._schedulers[executed.scheduler] += sum(seconds)
        if request is not None:
            difference = self._schedulers[executed.scheduler] - request.estimate
            effects.append(Send(executed.scheduler, Reply(request.epoch, difference)))
        return effects

    def _look(self) -> list[MeterEffect]:
        present = self._costs.ratios()
        if self._snapshot is None or not self._is_stable(self._snapshot, present):
            self._snapshot = present
            return []
        self._snapshot = None
        self._last, effects = self._tell()
        return effects

    def _is_stable(self, before: Matrix, present: Matrix) -> bool:
        moved = float(np.abs(before - present).sum())
        return moved <= self._settings.tolerance * float(before.sum())

    # -- for drivers and explorers --------------------------------------------------------

    def check_invariants(self) -> None:
        if not 0 <= self._executed < self._settings.window:
            raise InvariantError(f"{self._executed} records in a window")
        counts = self._costs.counts
        if not np.allclose(counts.matrix.sum(axis=1), counts.total):
            raise InvariantError("rows of a sketch that have not counted the same records")

    def state(self) -> Hashable:
        snapshot = None if self._snapshot is None else self._snapshot.tobytes()
        taken = tuple(self._schedulers.items())
        return self._costs.state(), snapshot, self._executed, taken, self._last

    def restore(self, state: Hashable) -> None:
        costs, snapshot, self._executed, taken, self._last = cast(
            "tuple[tuple[bytes, bytes, float, float], bytes | None, int, "
            "tuple[tuple[NodeId, float], ...], Matrices | None]",
            state,
        )
        self._costs.restore(costs)
        shape = self._costs.counts.matrix.shape
        self._snapshot = None if snapshot is None else np.frombuffer(snapshot).reshape(shape)
        self._schedulers = dict(taken)

    def describe(self) -> Mapping[str, object]:
        return {"status": self.status.value, "executed": self._executed, "mean": self._costs.mean}
