"""AUTOSCALE+ (paper 002, section 4): scale before the load is there, each instance for itself.

The paper has one module that sees the whole workflow. Here every instance estimates what will come
to its operator from what its predecessors tell all siblings alike: how much they send, how much of
it waits, how much they expect to send, and how fast the siblings are. Whoever has the same figures
comes to the same degree k'. The step from k to k' is then parted by the places in the row of the
siblings' names, as with the ranked rule: the first create, the last leave, and the siblings whose
turn comes later in the period still see the figures and the row that the first one saw.
"""

from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Literal

from dsp.errors import ConfigError
from dsp.scaling.deciders.base import STAY, Decision, Duplicate, Leave, Observation
from dsp.scaling.deciders.probabilistic import Probabilistic, Thresholds
from dsp.scaling.forecast import Forecast, Sample
from dsp.scaling.usable import capacity, reserved_capacity, usable_cpu

__all__ = ["Proactive", "AutoscalePlus"]

# What rounding may add to a quotient of two equal figures.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Proactive:
    """Parameters of AUTOSCALE+.

    Attributes:
        iteration: seconds of an iteration, Delta: what is estimated is the input of the next one.
            Not longer than the period in which instances decide, nor much shorter.
        window: seconds that are looked back on.
        settle: seconds after a change of the siblings in which nothing is monitored.
        beta: how far the working interval reaches below the present degree (equation 11): near 0
            scales in late, 1 as soon as possible.
        margin: share of the reserved CPU that is counted on (equation 13). 0.3 creates more than
            three instances where one would do.
        weight: the lambda of equation 7.
        reserved: share of a core that is reserved for an instance.
        combine: of what was estimated from the past and what the parents expect, the larger
            ("max", cautious) or the smaller ("min").
        minimum: instances of the operator, at least.
        maximum: instances of the operator, at most; None for no bound. Siblings part what is left
            up to it among themselves, so that all together do not pass it.
    """

    iteration: float = 5.0
    window: float = 10.0
    settle: float = 2.5
    beta: float = 0.5
    margin: float = 0.7
    weight: float = 0.3
    reserved: float = 1.0
    combine: Literal["max", "min"] = "max"
    minimum: int = 1
    maximum: int | None = None

    def __post_init__(self) -> None:
        for name in ("beta", "margin", "reserved"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise ConfigError(f"{name} is {value:g}: over 0, and at most 1")
        if not 0 <= self.weight < 1:
            raise ConfigError(f"weight is {self.weight:g}: 0 or more, and below 1")
        if self.combine not in ("max", "min"):
            raise ConfigError(f"combine is {self.combine!r}: max or min")

    def total(self, estimate: float, expected: float | None, pending: float) -> float:
        """Records per second to process in the next iteration (equation 5).

        Args:
            estimate: of what comes, from what came.
            expected: of what comes, by the parents; None if they do not tell.
            pending: records that wait.
        """
        if expected is not None:
            choose = max if self.combine == "max" else min
            estimate = choose(estimate, expected)
        return estimate + pending / self.iteration


class AutoscalePlus:
    """Brings its operator from k to k' instances together with its siblings.

    Args:
        random: seeded; of this instance alone. Used where no predecessor tells the row.
        settings: parameters.
        thresholds: for the rule that stands in where no predecessor tells the row.

    Attributes:
        forecast: the monitor; whoever hosts the instance may feed it between the turns.
    """

    def __init__(
        self,
        random: Random,
        settings: Proactive | None = None,
        thresholds: Thresholds | None = None,
    ) -> None:
        self.settings = settings = settings or Proactive()
        self.forecast = Forecast(
            settings.iteration, settings.window, settings.settle, newcomer=True
        )
        self._fallback = Probabilistic(random, thresholds)
        self._acted = False

    def watch(self, observation: Observation) -> None:
        """Take a sample between two turns."""
        report, settings = observation.report, self.settings
        if report is None or observation.me not in report.siblings:
            return
        usable = usable_cpu(observation.cpu, settings.weight, settings.reserved)
        if report.usable is not None:
            usable = min(usable, report.usable)
        latency = 1.0 / observation.capacity if report.latency is None else report.latency
        row, was_paused = report.siblings, self.forecast.paused
        load = observation.load * len(row) if report.load is None else report.load
        self.forecast.note(
            Sample(
                time=observation.now,
                load=load,
                row=row,
                pending=report.pending,
                expected=report.expected,
                capacity=capacity(latency, usable, observation.cpu.need),
                reserved=reserved_capacity(latency, settings.reserved, settings.margin),
            )
        )
        if was_paused and not self.forecast.paused:
            self._acted = False

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        report = observation.report
        if report is None or observation.me not in report.siblings:
            return self._fallback.decide(observation)
        self.watch(observation)
        forecast = self.forecast
        sample = forecast.last
        if sample is None or not forecast.ready or observation.me not in sample.row:
            return STAY
        if forecast.paused:
            if self._acted:
                return STAY
            self._acted = True
        decision = self._step(observation, sample)
        self._acted = self._acted or decision is not STAY
        return decision

    def expected_input(self) -> float | None:
        """Records per second that will come to the operator in the next iteration (equation 5)."""
        sample, estimate = self.forecast.last, self.forecast.input_rate()
        if sample is None or estimate is None:
            return None
        return self.settings.total(estimate, sample.expected, sample.pending)

    def degree(self) -> tuple[float, int] | None:
        """The ideal degree (equation 10), and that to go to if it must be changed (12, 13)."""
        sample, estimate = self.forecast.last, self.expected_input()
        if sample is None or estimate is None:
            return None
        settings = self.settings
        wanted = max(settings.minimum, ceil(estimate / sample.reserved - ROUNDING))
        if settings.maximum is not None:
            wanted = min(wanted, settings.maximum)
        return estimate / sample.capacity, wanted

    def _step(self, observation: Observation, sample: Sample) -> Decision:
        degree = self.degree()
        assert degree is not None
        ideal, wanted = degree
        row, me = sample.row, observation.me
        count = len(row)
        if ideal > count:
            # Reserved capacity may be the larger one where little of it is usable just now.
            missing = max(1, wanted - count)
            if self.settings.maximum is not None:
                missing = min(missing, max(0, self.settings.maximum - count))
            each, rest = divmod(missing, count)
            number = each + (row.index(me) < rest)
            return Duplicate(number) if number else STAY
        if ideal >= self.settings.beta * count or observation.keeper:
            return STAY
        keeper = observation.report.keeper if observation.report else None
        leaving = [name for name in row if name != keeper]
        return Leave() if me in leaving[max(0, len(leaving) - (count - wanted)) :] else STAY
