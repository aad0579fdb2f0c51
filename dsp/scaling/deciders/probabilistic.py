"""The papers' local rule: each instance by itself, with a probability that fits the whole (D8).

Paper 000, 3.3.1 and 3.3.3, in the reading that reproduces its figures: the replication factor
``p = rho / r - 1`` is not floored. ``Literal`` is the printed algorithm, kept as an exhibit.
"""

from dataclasses import dataclass
from math import ceil, floor
from random import Random

from dsp.errors import ConfigError
from dsp.scaling.deciders.base import STAY, Decision, Duplicate, Leave, Observation

__all__ = ["Thresholds", "Probabilistic", "Literal"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When to act, and what to aim at, as shares of an instance's capacity.

    Attributes:
        target: the desired load, the papers' ``r``. Lower means more instances and more reserve.
        high: scale out from here on.
        low: scale in from here on.
    """

    target: float = 0.7
    high: float = 0.8
    low: float = 0.6

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.target <= self.high:
            raise ConfigError(
                f"low {self.low:g}, target {self.target:g} and high {self.high:g} must be over 0 "
                "and in this order"
            )


class Probabilistic:
    """Duplicates or leaves with a probability, so that all together come near the target.

    Args:
        random: seeded; of this instance alone.
        thresholds: when to act.
        secure: aim at ``r_secure`` where it is below the target, so that the load fits into the
            capacity whatever the dice say. For scale-out only: on scale-in it blocks everything.
    """

    def __init__(
        self, random: Random, thresholds: Thresholds | None = None, *, secure: bool = False
    ) -> None:
        self._random = random
        self._thresholds = thresholds or Thresholds()
        self._secure = secure

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        rho, limits = observation.ratio, self._thresholds
        if rho >= limits.high:
            target = limits.target
            if self._secure:
                target = min(target, rho / ceil(rho))
            factor = rho / target - 1
            count = floor(factor) + (self._random.random() < factor - floor(factor))
            return Duplicate(count) if count else STAY
        if rho <= limits.low and not observation.keeper:
            return Leave() if self._random.random() < 1 - rho / limits.target else STAY
        return STAY


class Literal:
    """The printed algorithms 3, 4 and 8, which hardly ever act. An exhibit, not for use.

    ``floor`` makes the factor a whole number, 0 or more for loads up to twice the target and -1
    below it, and ``n > 1`` forbids to create a single sibling.
    """

    def __init__(self, random: Random, thresholds: Thresholds | None = None) -> None:
        self._random = random
        self._thresholds = thresholds or Thresholds()

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        rho, limits = observation.ratio, self._thresholds
        factor = floor(rho / limits.target - 1)
        if rho >= limits.high:
            count = factor + (self._random.random() < factor)
            return Duplicate(count) if count > 1 else STAY
        if rho <= limits.low and not observation.keeper:
            return Leave() if self._random.random() < factor else STAY
        return STAY
