"""The topologies of paper 002, figures 9 and 10: what operators there are, and what tuples cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from dsp.errors import ConfigError

__all__ = ["Stage", "TOPOLOGIES", "SOURCE", "topology", "costs_of", "passes", "LEVELS"]

SOURCE = "source"
LEVELS = 64
"""Costs are 1 to 64 times the least one, as in the experiments with OSG."""
# An odd constant: multiplied by it, consecutive numbers are spread over 32 bits.
SPREAD = 2654435769


@dataclass(frozen=True, slots=True)
class Stage:
    """An operator of a topology.

    Attributes:
        name: of the operator.
        parents: the operators that send to it.
        cost: seconds that a tuple costs on average, as a share of the critical operator's.
        sensitive: whether that depends on the tuple's value.
        selectivity: tuples that go on of those that come.
        scales: whether it may have several instances.
    """

    name: str
    parents: tuple[str, ...]
    cost: float
    sensitive: bool = False
    selectivity: float = 1.0
    scales: bool = True


def _simple(sensitive: bool) -> tuple[Stage, ...]:
    return (
        Stage("bolt", (SOURCE,), 1.0, sensitive=sensitive),
        Stage("finalize", ("bolt",), 0.0, scales=False),
    )


TOPOLOGIES: dict[str, tuple[Stage, ...]] = {
    "insensitive": _simple(sensitive=False),
    "sensitive": _simple(sensitive=True),
    "complex": (
        Stage("dispatcher", (SOURCE,), 0.1, selectivity=0.8),
        Stage("city", ("dispatcher",), 1.0, sensitive=True),
        Stage("city-analyzer", ("city",), 0.3, selectivity=0.5),
        Stage("age", ("dispatcher",), 0.3),
        Stage("age-analyzer", ("age",), 0.2, selectivity=0.5),
        Stage("persister", ("city-analyzer", "age-analyzer"), 0.0, scales=False),
    ),
}
"""By name; the critical operator is the one whose cost is 1, and the last one is the sink."""


def topology(name: str) -> tuple[Stage, ...]:
    """Give the stages of a topology, each after its parents.

    Raises:
        ConfigError: there is no such topology.
    """
    stages = TOPOLOGIES.get(name)
    if stages is None:
        raise ConfigError(f"no topology {name!r}; there are {', '.join(TOPOLOGIES)}")
    return stages


def costs_of(stage: Stage, mean: float, weights: Sequence[float], random: Random) -> list[float]:
    """Give the seconds that each value costs at a stage; on average so many for a cost of 1.

    A sensitive stage has its values spread at random over 64 levels, 1 to 64 times the least.
    """
    if not stage.sensitive:
        return [stage.cost * mean] * len(weights)
    levels = [random.randint(1, LEVELS) for _ in weights]
    present = sum(level * weight for level, weight in zip(levels, weights, strict=True))
    return [stage.cost * mean * level / present for level in levels]


def passes(stage: Stage, number: int) -> bool:
    """Whether a stage lets a tuple go on: decided by its number, so that all runs agree."""
    if stage.selectivity >= 1:
        return True
    salted = (number * SPREAD + sum(map(ord, stage.name)) * 7919) & 0xFFFFFFFF
    mixed = ((salted ^ (salted >> 15)) * SPREAD) & 0xFFFFFFFF
    return (mixed >> 8) / (1 << 24) < stage.selectivity
