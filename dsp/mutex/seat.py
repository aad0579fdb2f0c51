"""Who takes part: two groups, and a member's place in them."""

from dataclasses import dataclass

from dsp.core.types import NodeId
from dsp.errors import ConfigError

__all__ = ["Groups", "Seat"]

Groups = tuple[tuple[NodeId, ...], tuple[NodeId, ...]]
"""The members of both groups. Group 0 holds every permission at the start."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's place. Members of one group may be inside together, those of two never.

    Attributes:
        me: the member.
        groups: everybody; each name once.
    """

    me: NodeId
    groups: Groups

    def __post_init__(self) -> None:
        names = [*self.groups[0], *self.groups[1]]
        if len({*names}) != len(names) or self.me not in names:
            raise ConfigError(f"{self.me!r} and everybody else must be in one group, once: {names}")

    @property
    def group(self) -> int:
        """0 or 1."""
        return int(self.me in self.groups[1])

    @property
    def siblings(self) -> tuple[NodeId, ...]:
        """The other members of the same group, sorted."""
        return tuple(sorted(name for name in self.groups[self.group] if name != self.me))

    @property
    def competitors(self) -> tuple[NodeId, ...]:
        """The members of the other group, sorted."""
        return tuple(sorted(self.groups[1 - self.group]))

    @property
    def others(self) -> tuple[NodeId, ...]:
        """Everybody else, sorted."""
        return tuple(sorted((*self.siblings, *self.competitors)))
