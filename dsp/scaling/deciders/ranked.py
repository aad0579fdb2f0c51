"""A better local rule than the papers': the same aim, with places in a row instead of dice.

A predecessor knows all siblings, so it can tell an instance how many they are and which place in
the row of their names is its own. Every sibling then computes the same number of instances that are
missing or too many, and acts if its place is among so many: the first ones create, the last ones
leave. That takes the variance out, most of all when all decide at the same moment, and the right
number acts within one period instead of a chance of it.

What else the papers' rule lacks:

* Siblings that are announced but were not there at the last decision may still be starting and
  take no load yet, so they count for less when the load of the whole operator is estimated.
* Who saw the row grow does not leave, who saw it shrink does not create, unless the load is half
  as far again beyond the threshold: that saves actions which would be undone.
* Nobody leaves whose siblings could not take the load with a reserve. Leavers are what costs
  throughput, so this pays for the next two.
* Too many is worse than too few, as a share of a small number it has no bound. So leaving begins
  before ``low`` is reached, and corrects more than it sees.
* The place before the leavers leaves too with some probability: the one whose turn comes first
  need not be the last in the row.
"""

from math import floor
from random import Random
from typing import TYPE_CHECKING

from dsp.scaling.deciders.base import STAY, Decision, Duplicate, Leave, Observation, Report
from dsp.scaling.deciders.probabilistic import Probabilistic, Thresholds

if TYPE_CHECKING:
    from dsp.core.types import NodeId

__all__ = ["Ranked"]

# Selected on seeds 1000 to 1029, 2000 to 2029 and 3000 to 3019 of `dsp lab scaling`; reported on
# others in docs/design/scaling.md.
YOUNG = 0.8
"""How much of an active sibling one counts for that was not there at the last decision."""
OUT_BAND = 1.05
IN_BAND = 0.8
"""How far towards a threshold the load must be to act, as a share of the way from the target."""
RELUCTANCE = 0.5
"""By how much the way is longer for what would undo a recent change."""
OUT_GAIN = 0.88
IN_GAIN = 1.2
"""What is corrected at once of what is missing, or too many."""
OUT_ROUNDING = 0.47
IN_ROUNDING = 0.7
"""Parts of an instance from which on a whole one is created, or leaves: 1 minus these."""
RESERVE = 0.5
"""What those that stay must have left over, as a share of one instance's capacity."""
STAND_IN = 0.3
"""Probability that the place before the leavers leaves too."""
MEMORY = 2
"""Decisions for which a change of the row counts as recent."""


class Ranked:
    """Acts by its place among its siblings; without a report, like the papers' rule.

    Args:
        random: seeded; of this instance alone.
        thresholds: when to act.
    """

    def __init__(self, random: Random, thresholds: Thresholds | None = None) -> None:
        self._random = random
        self._thresholds = thresholds or Thresholds()
        self._fallback = Probabilistic(random, self._thresholds)
        self._known: frozenset[NodeId] | None = None
        self._changes: list[int] = []

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        report, limits = observation.report, self._thresholds
        if report is None or observation.me not in report.siblings:
            return self._fallback.decide(observation)
        count, place = len(report.siblings), report.siblings.index(observation.me)
        # What the load of all siblings comes to, in capacities of one.
        load = observation.ratio * self._learn(report)
        surplus = count - load / limits.target
        trend = sum(self._changes)
        if surplus < 0:
            band = OUT_BAND * (limits.high / limits.target - 1) * count
            if -surplus >= band * _reluctance(trend < 0) or load >= count:
                return self._create(-surplus, count, place, overload=load >= count)
        elif not observation.keeper:
            band = IN_BAND * (1 - limits.low / limits.target) * count
            if surplus >= band * _reluctance(trend > 0):
                spare = min(floor(IN_GAIN * surplus + IN_ROUNDING), floor(count - load - RESERVE))
                return self._leave(spare, count - 1 - place)
        return STAY

    def _create(self, wanted: float, count: int, place: int, *, overload: bool) -> Decision:
        missing = max(floor(OUT_GAIN * wanted + OUT_ROUNDING), int(overload))
        each, rest = divmod(missing, count)
        number = each + (place < rest)
        return Duplicate(number) if number else STAY

    def _leave(self, spare: int, behind: int) -> Decision:
        """Leave if at most so many are behind in the row."""
        if spare <= 0 or behind > spare:
            return STAY
        return Leave() if behind < spare or self._random.random() < STAND_IN else STAY

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


def _reluctance(undoes: bool) -> float:
    return 1 + RELUCTANCE if undoes else 1.0
