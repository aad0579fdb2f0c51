"""Which decider an instance gets, from the configuration and the bounds of its operator."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dsp.scaling.deciders import Bounded, Bounds, Decider, Thresholds, make_decider
from dsp.stream.graph import Graph

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["Deciders", "decider_for"]

Deciders = Callable[[str, Random], tuple[Decider, float] | None]
"""Makes the decider of an instance of an operator, and gives its period; None for none."""


def decider_for(config: "Config", graph: Graph) -> Deciders:
    """Give a function that makes the decider of an instance, with its period."""

    def make(operator: str, random: Random) -> tuple[Decider, float] | None:
        described = graph.operators[operator]
        if not described.elastic:
            return None
        bounds = Bounds(minimum=described.minimum, maximum=described.maximum)
        inner = make_decider("probabilistic", random, Thresholds())
        return Bounded(inner, bounds), 1.0

    return make
