"""What an experiment on mutual exclusion is made of."""

from collections.abc import Callable
from dataclasses import dataclass

from dsp.core.machine import Machine
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.mutex.arbiter_token import ArbiterToken
from dsp.mutex.events import MutexEffect, MutexEvent
from dsp.mutex.published import PublishedTwoFGME
from dsp.mutex.ra1 import RA1
from dsp.mutex.ra2 import RA2
from dsp.mutex.seat import Groups, Seat
from dsp.mutex.two_fgme import TwoFGME

__all__ = ["ALGORITHMS", "OPEN_PARAMETERS", "Algorithm", "Setting", "algorithm", "groups_of"]

Algorithm = Callable[[Seat], Machine[MutexEvent, MutexEffect]]

ALGORITHMS: dict[str, Algorithm] = {
    "2fgme": TwoFGME,
    "ra2": RA2,
    "ra1": RA1,
    "token": ArbiterToken,
    "published": PublishedTwoFGME,
}
"""What can be compared; ``published`` is the thesis's pseudo-code as printed."""

OPEN_PARAMETERS = {
    "hop": "a message takes 2 to 8 ms, evenly; the thesis measured over Kafka, about 13 ms a round",
    "first": "first requests are spread evenly over the first second",
    "occupancy": "mean number inside while anybody is, over the whole run",
}
"""What the thesis leaves open, and how it is settled here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run.

    Attributes:
        nodes: in both groups together, half in each.
        entries: of each node.
        pause: seconds between leaving and asking again (P).
        stay: seconds inside (inCS).
        first: seconds over which the first requests are spread.
        hop: least and most seconds that a message takes.
    """

    nodes: int = 12
    entries: int = 10
    pause: float = 1.0
    stay: float = 1.0
    first: float = 1.0
    hop: tuple[float, float] = (0.002, 0.008)


def algorithm(name: str) -> Algorithm:
    """Give an algorithm by its name.

    Raises:
        ConfigError: there is none.
    """
    if name not in ALGORITHMS:
        raise ConfigError(f"no algorithm {name!r}; there are {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def groups_of(nodes: int) -> Groups:
    """Name the members of two groups of equal size."""
    half = nodes // 2
    first = tuple(NodeId(f"a{n:02}") for n in range(half))
    return first, tuple(NodeId(f"b{n:02}") for n in range(nodes - half))
