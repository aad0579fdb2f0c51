"""Deciders as the configuration wants them."""

from random import Random
from typing import TYPE_CHECKING

from dsp.scaling.deciders.autoscale import Proactive
from dsp.scaling.deciders.base import Decider
from dsp.scaling.deciders.bounded import Bounded, Bounds
from dsp.scaling.deciders.named import make_decider
from dsp.scaling.deciders.probabilistic import Thresholds

if TYPE_CHECKING:
    from dsp.config.scaling import ScaleRules, ScalingConfig

__all__ = ["configured_decider", "proactive_settings", "rules_of"]


def rules_of(scaling: "ScalingConfig", operator: str) -> "ScaleRules":
    """Give the settings of an operator, also of a configuration that was told."""
    return scaling.operators.get(operator, scaling)


def configured_decider(rules: "ScaleRules", random: Random) -> Decider:
    """Make the decider of one instance, with its bounds.

    Args:
        rules: of the instance's operator, ``config.scaling.of(operator)``.
        random: seeded, of this instance alone.
    """
    thresholds = Thresholds(target=rules.target, high=rules.high, low=rules.low)
    bounds = Bounds(rules.minimum, rules.maximum, rules.cool_down, rules.per_minute)
    decider = make_decider(rules.decider, random, thresholds, proactive_settings(rules))
    return Bounded(decider, bounds)


def proactive_settings(rules: "ScaleRules") -> Proactive:
    """Give the parameters of AUTOSCALE+ that an operator's settings come to."""
    period = rules.period
    return Proactive(
        iteration=period,
        window=2 * period if rules.window is None else rules.window,
        settle=period / 2 if rules.settle is None else rules.settle,
        beta=rules.beta,
        margin=rules.margin,
        weight=rules.cpu_weight,
        reserved=rules.cpu_reserved,
        combine=rules.combine,
        minimum=rules.minimum,
        maximum=rules.maximum,
    )
