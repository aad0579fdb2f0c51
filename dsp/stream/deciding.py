"""Which decider an instance gets, from the configuration and the bounds of its operator."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dsp.scaling.deciders import Decider, configured_decider
from dsp.scaling.deciders.configured import rules_of
from dsp.stream.graph import Graph

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["Deciders", "decider_for"]

Deciders = Callable[[str, Random], tuple[Decider, float] | None]
"""Makes the decider of an instance of an operator, and gives its period; None for none."""


def decider_for(config: "Config", graph: Graph) -> Deciders:
    """Give a function that makes deciders as the configuration says.

    An operator's own bounds are within those of the configuration: the higher minimum and the
    lower maximum count.
    """

    def make(operator: str, random: Random) -> tuple[Decider, float] | None:
        described = graph.operators[operator]
        if not described.elastic:
            return None
        rules = rules_of(config.scaling, operator)
        maxima = [most for most in (rules.maximum, described.maximum) if most is not None]
        maximum = min(maxima, default=None)
        minimum = max(rules.minimum, described.minimum)
        if maximum is not None:
            minimum = min(minimum, maximum)
        bounds = {"minimum": minimum, "maximum": maximum}
        return configured_decider(rules.model_copy(update=bounds), random), rules.period

    return make
