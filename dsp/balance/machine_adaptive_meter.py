"""The instance's half of the adaptive balancer: tells what records cost here, again and again.

Unlike OSG's it does not wait until its matrices are stable: it sends what it saw since it last did,
as soon as that is enough records and some time has passed, and schedulers put it together.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from dsp.balance.events import Executed, MeterEffect
from dsp.balance.meter import Meter
from dsp.balance.settings import BalanceSettings
from dsp.errors import InvariantError

if TYPE_CHECKING:
    from dsp.core.types import NodeId

__all__ = ["AdaptiveMeter"]


class AdaptiveMeter(Meter):
    """What sits in an instance whose records are spread by the adaptive balancer.

    Args:
        settings: sizes of the matrices, and how often they are told.
    """

    def __init__(self, settings: BalanceSettings) -> None:
        super().__init__(settings)
        self._told: float | None = None

    def _executed_some(self, executed: Executed, now: float) -> Sequence[MeterEffect]:
        self._costs.add(executed.keys, executed.seconds)
        settings = self._settings
        if self._costs.counts.total < settings.report_records:
            return []
        if self._told is not None and now < self._told + settings.report_pause:
            return []
        self._told = now
        _, effects = self._tell()
        return effects

    # -- for drivers and explorers --------------------------------------------------------

    def check_invariants(self) -> None:
        if self._costs.counts.total < 0.0 or self._costs.seconds.total < 0.0:
            raise InvariantError("fewer than no records")

    def state(self) -> Hashable:
        return self._costs.state(), tuple(self._schedulers), self._told

    def restore(self, state: Hashable) -> None:
        costs, schedulers, self._told = cast(
            "tuple[tuple[bytes, bytes, float, float], tuple[NodeId, ...], float | None]", state
        )
        self._costs.restore(costs)
        self._schedulers = dict.fromkeys(schedulers, 0.0)

    def describe(self) -> Mapping[str, object]:
        return {"records": self._costs.counts.total, "mean": self._costs.mean}
