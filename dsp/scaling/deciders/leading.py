"""Deciders that lead their operator: the keeper decides for all siblings.

They need a predecessor's report. The papers compare their local rule with the first; the second is
the usual practice of autoscalers.
"""

from dsp.scaling.deciders.base import STAY, Decision, Duplicate, Observation, Retire
from dsp.scaling.deciders.probabilistic import Thresholds

__all__ = ["Centralised", "Threshold"]


class Centralised:
    """The keeper brings its operator to the ideal number of instances in one step.

    Whatever the thresholds: that is the reading that reproduces the papers' comparison. Of the
    thresholds only the target counts.
    """

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self._thresholds = thresholds or Thresholds()

    def decide(self, observation: Observation) -> Decision:
        """Say what the operator does now; siblings of the keeper always stay."""
        limits, report = self._thresholds, observation.report
        if not observation.keeper or report is None:
            return STAY
        present = len(report.siblings)
        ideal = round(_mean_ratio(observation) / limits.target * present)
        change = max(1, ideal) - present
        if change > 0:
            return Duplicate(change)
        others = [name for name in report.siblings if name != observation.me]
        return Retire(tuple(others[change:])) if change < 0 and others else STAY


class Threshold:
    """The keeper adds one instance above the high threshold, and sends one away below the low."""

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self._thresholds = thresholds or Thresholds()

    def decide(self, observation: Observation) -> Decision:
        """Say what the operator does now; siblings of the keeper always stay."""
        limits, report = self._thresholds, observation.report
        if not observation.keeper:
            return STAY
        rho = _mean_ratio(observation)
        if rho >= limits.high:
            return Duplicate(1)
        if rho > limits.low or report is None:
            return STAY
        others = [name for name in report.siblings if name != observation.me]
        return Retire((others[-1],)) if others else STAY


def _mean_ratio(observation: Observation) -> float:
    report = observation.report
    if report is None or report.load is None:
        return observation.ratio
    return report.load / (len(report.siblings) * observation.capacity)
