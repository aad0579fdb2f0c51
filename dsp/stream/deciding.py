"""Which decider an instance gets, from the configuration and the bounds of its operator."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dsp.scaling.deciders import Decider
from dsp.scaling.deciders.configured import configured_decider
from dsp.stream.graph import Graph

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["Deciders", "decider_for"]

Deciders = Callable[[str, Random], tuple[Decider, float] | None]
"""Makes the decider of an instance of an operator, and gives its period; None for none."""


def decider_for(config: "Config", graph: Graph) -> Deciders:
    """Give a function that makes the decider of an instance, with its period.

    The bounds of an operator are those of its description, within those of the configuration.
    """

    def make(operator: str, random: Random) -> tuple[Decider, float] | None:
        described = graph.operators[operator]
        if not described.elastic:
            return None
        rules = config.scaling.of(operator)
        minimum = max(described.minimum, rules.minimum)
        bounds = [each for each in (described.maximum, rules.maximum) if each is not None]
        maximum = max(minimum, min(bounds)) if bounds else None
        rules = rules.model_copy(update={"minimum": minimum, "maximum": maximum})
        return configured_decider(rules, random), rules.period

    return make
