"""Deciders as the configuration wants them."""

from random import Random
from typing import TYPE_CHECKING

from dsp.scaling.deciders.base import Decider
from dsp.scaling.deciders.bounded import Bounded, Bounds
from dsp.scaling.deciders.named import make_decider
from dsp.scaling.deciders.probabilistic import Thresholds

if TYPE_CHECKING:
    from dsp.config.scaling import ScaleRules

__all__ = ["configured_decider"]


def configured_decider(rules: "ScaleRules", random: Random) -> Decider:
    """Make the decider of one instance, with its bounds.

    Args:
        rules: of the instance's operator, ``config.scaling.of(operator)``.
        random: seeded, of this instance alone.
    """
    thresholds = Thresholds(target=rules.target, high=rules.high, low=rules.low)
    bounds = Bounds(rules.minimum, rules.maximum, rules.cool_down, rules.per_minute)
    return Bounded(make_decider(rules.decider, random, thresholds), bounds)
