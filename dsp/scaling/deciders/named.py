"""The rules by name."""

from collections.abc import Callable
from random import Random

from dsp.errors import ConfigError
from dsp.scaling.deciders.autoscale import AutoscalePlus, Proactive
from dsp.scaling.deciders.base import Decider
from dsp.scaling.deciders.leading import Centralised, Threshold
from dsp.scaling.deciders.probabilistic import Probabilistic, Thresholds
from dsp.scaling.deciders.ranked import Ranked

__all__ = ["DECIDERS", "make_decider"]

DECIDERS: dict[str, Callable[[Random, Thresholds, Proactive], Decider]] = {
    "probabilistic": lambda random, limits, settings: Probabilistic(random, limits),
    "secure": lambda random, limits, settings: Probabilistic(random, limits, secure=True),
    "ranked": lambda random, limits, settings: Ranked(random, limits),
    "centralised": lambda random, limits, settings: Centralised(limits),
    "threshold": lambda random, limits, settings: Threshold(limits),
    "autoscale+": lambda random, limits, settings: AutoscalePlus(random, settings, limits),
}
"""The rules by name. What is to come (hierarchical control) joins here."""


def make_decider(
    name: str,
    random: Random,
    thresholds: Thresholds | None = None,
    settings: Proactive | None = None,
) -> Decider:
    """Make the decider of one instance.

    Args:
        name: a key of ``DECIDERS``.
        random: seeded, of this instance alone.
        thresholds: when to act, and what to aim at.
        settings: of ``autoscale+``.

    Raises:
        ConfigError: there is no such rule.
    """
    make = DECIDERS.get(name)
    if make is None:
        raise ConfigError(f"no decider {name!r}; there are {', '.join(DECIDERS)}")
    return make(random, thresholds or Thresholds(), settings or Proactive())
