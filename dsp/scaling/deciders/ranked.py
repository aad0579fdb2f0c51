"""A better local rule than the papers': the same aim, with places in a row instead of dice.

A predecessor knows all siblings, so it can tell an instance how many they are and which place in
the row of their names is its own. Every sibling then computes the same number of instances that are
missing or too many, and acts if and only if its place is among so many: the first ones create, the
last ones leave. No dice means no variance, most of all when all decide at the same moment, and that
the right number acts within one period instead of a chance of it.

Two more things that the papers' rule lacks. Siblings that are announced but were not there at the
last decision may still be starting and take no load yet, so they count for less when the load of
the whole operator is estimated. And who saw the row grow does not leave, who saw it shrink does
not create, unless the load is a little farther beyond the threshold: that saves actions which
would be undone.
"""

from math import floor
from typing import TYPE_CHECKING

from dsp.scaling.deciders.base import STAY, Decision, Duplicate, Leave, Observation, Report
from dsp.scaling.deciders.probabilistic import Probabilistic, Thresholds

if TYPE_CHECKING:
    from dsp.core.types import NodeId

__all__ = ["Ranked"]

# Selected on seeds 1000 to 1029 and 2000 to 2029 of `dsp lab scaling`; reported on others in
# docs/design/scaling.md.
YOUNG = 0.7
"""How much of an active sibling one counts for that was not there at the last decision."""
GAIN = 1.12
"""What is corrected at once of what is missing or too many; over 1, since the load moves on."""
RELUCTANCE = 0.06
"""How much farther beyond a threshold the load must be to undo a recent change."""
OUT_ROUNDING = 0.65
IN_ROUNDING = 0.55
"""Parts of an instance from which on a whole one is created, or leaves: 1 minus these."""
MEMORY = 2
"""Decisions for which a change of the row counts as recent."""


class Ranked:
    """Acts by its place among its siblings; without a report, like the papers' rule.

    Args:
        fallback: the papers' rule, for want of a report.
        thresholds: when to act.
    """

    def __init__(self, fallback: Probabilistic, thresholds: Thresholds | None = None) -> None:
        self._fallback = fallback
        self._thresholds = thresholds or Thresholds()
        self._known: frozenset[NodeId] | None = None
        self._changes: list[int] = []

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        report, limits = observation.report, self._thresholds
        if report is None or observation.me not in report.siblings:
            return self._fallback.decide(observation)
        count = len(report.siblings)
        rho = observation.ratio * self._learn(report) / count
        place, trend = report.siblings.index(observation.me), sum(self._changes)
        high = limits.high + (RELUCTANCE if trend < 0 else 0.0)
        low = limits.low - (RELUCTANCE if trend > 0 else 0.0)
        # The reluctance ends where the load exceeds the capacity.
        if rho >= min(high, max(1.0, limits.high)):
            missing = floor(GAIN * count * (rho / limits.target - 1) + OUT_ROUNDING)
            if rho >= 1:
                missing = max(1, missing)
            each, rest = divmod(missing, count)
            number = each + (place < rest)
            return Duplicate(number) if number else STAY
        if rho <= low and not observation.keeper:
            spare = floor(GAIN * count * (1 - rho / limits.target) + IN_ROUNDING)
            return Leave() if place >= count - spare else STAY
        return STAY

    def _learn(self, report: Report) -> float:
        """Take in a report, and estimate how many of the siblings take load."""
        known, count = self._known, len(report.siblings)
        self._known = frozenset(report.siblings)
        if known is None:
            # Whoever decides for the first time was just created: the row has grown.
            self._changes = [1]
            return float(count)
        old = sum(name in known for name in report.siblings)
        self._changes = [*self._changes, count - len(known)][-MEMORY:]
        return old + YOUNG * (count - old)
