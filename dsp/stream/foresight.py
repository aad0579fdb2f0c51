"""What instances tell their neighbours of what is to come (paper 002, equations 4 and 5).

An instance that decides by estimates tells its predecessors how fast it is; that is how they know
that somebody wants estimates. They tell every sibling what all of them said comes to, how many
records wait, and how many they expect to send. An instance that is asked asks its own predecessors,
so estimates travel down the graph as far as somebody wants them. Nobody sees more than neighbours.
"""

from collections import deque
from collections.abc import Iterable
from random import Random

from dsp._pb.engine_pb2 import EngineDemand, EngineShare
from dsp.core.types import NodeId
from dsp.scaling.deciders import AutoscalePlus, Bounded, Decider, Observation, Proactive
from dsp.scaling.forecast import Forecast, Sample
from dsp.scaling.usable import usable_cpu

__all__ = ["Foresight", "foreseer"]

# Periods over which the records that come out are compared with those that go in.
SELECTIVITY_PERIODS = 20


def foreseer(decider: Decider | None) -> AutoscalePlus | None:
    """Give the decider that estimates, if this is one, bounds around it or not."""
    if isinstance(decider, Bounded):
        decider = decider.inner
    return decider if isinstance(decider, AutoscalePlus) else None


class Foresight:
    """One instance's part in the exchange of estimates.

    Args:
        settings: parameters of the operator.
        decider: what the instance decides with, if that estimates.
        is_source: whether records enter the pipeline here.
    """

    def __init__(
        self, settings: Proactive, decider: AutoscalePlus | None, *, is_source: bool
    ) -> None:
        self._settings = decider.settings if decider is not None else settings
        self._decides = decider is not None
        # Who decides otherwise and is asked estimates all the same.
        self._monitor = decider or AutoscalePlus(Random(0), settings)
        self._is_source = is_source
        self._shares: dict[NodeId, EngineShare] = {}
        self._sent: dict[str, Forecast] = {}
        self._flow: dict[str, deque[tuple[int, int]]] = {}

    @property
    def wanted(self) -> bool:
        """Whether the instance, or a successor, decides by estimates."""
        return self._decides or bool(self._shares)

    def heard(self, sender: NodeId, share: EngineShare) -> None:
        """A successor tells how fast it is."""
        self._shares[sender] = share

    def forget(self, name: NodeId) -> None:
        """A neighbour is gone."""
        self._shares.pop(name, None)

    def share(self, seen: Observation) -> EngineShare:
        """Give what predecessors are told."""
        usable = usable_cpu(seen.cpu, self._settings.weight, self._settings.reserved)
        return EngineShare(latency=1.0 / seen.capacity, usable=usable)

    def watch(self, seen: Observation) -> None:
        """Take in figures of a period."""
        self._monitor.watch(seen)

    def flowed(self, now: float, operator: str, worked: int, sent: int, rate: float) -> None:
        """So much was worked on and sent to an operator in a period.

        Args:
            rate: records per second for it, those held back included.
        """
        flow = self._flow.setdefault(operator, deque(maxlen=SELECTIVITY_PERIODS))
        flow.append((worked, sent))
        if self._is_source:
            settings = self._settings
            forecast = self._sent.get(operator)
            if forecast is None:
                forecast = self._sent[operator] = Forecast(
                    settings.iteration, settings.window, settings.settle
                )
            forecast.note(Sample(now, rate))

    def add_to(
        self,
        demand: EngineDemand,
        operator: str,
        members: Iterable[NodeId],
        seen: Observation | None,
        pending: int,
    ) -> None:
        """Put into a message for an operator what its instances want to know."""
        shares = [self._shares[name] for name in members if name in self._shares]
        if not shares:
            return
        demand.pending = pending
        demand.latency = sum(share.latency for share in shares) / len(shares)
        demand.usable = min(share.usable for share in shares)
        expected = self._expected(operator, seen)
        if expected is not None:
            demand.expected = expected

    def _expected(self, operator: str, seen: Observation | None) -> float | None:
        """Records per second that this instance will have for an operator (equation 4)."""
        if self._is_source:
            forecast = self._sent.get(operator)
            return forecast.input_rate() if forecast is not None else None
        if seen is None or seen.report is None:
            return None
        rate = self._monitor.forecast.input_rate()
        flow = self._flow[operator]
        worked, sent = sum(each for each, _ in flow), sum(each for _, each in flow)
        if rate is None or not worked:
            return None
        report = seen.report
        total = self._settings.total(rate, report.expected, report.pending)
        return total / len(report.siblings) * sent / worked
