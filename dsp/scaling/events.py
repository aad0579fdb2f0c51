"""What scale machines say to each other, and the events and effects around them.

A message that concerns an edge of the graph carries the sender's operator: whether the sender is
before or after us follows from the graph, never from whom we happen to know (D1).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

from dsp.core.machine import CommonEffect, CommonEvent
from dsp.core.types import NodeId

__all__ = [
    "Member",
    "Duplication",
    "DuplicationAck",
    "Deletion",
    "DeletionAck",
    "Start",
    "Keep",
    "Evict",
    "ScaleMessage",
    "ScaleOutRequested",
    "Spawned",
    "SpawnFailed",
    "LeaveRequested",
    "Assigned",
    "Delivered",
    "QueueEmptied",
    "ScaleEvent",
    "Spawn",
    "Activate",
    "Drain",
    "Terminate",
    "Stop",
    "Deserted",
    "ScaleEffect",
]


class Member(NamedTuple):
    """An instance as its neighbours know it; members of an operator sort by seniority.

    Attributes:
        operator: what it is an instance of.
        generation: 0 for those that an application starts with, else one more than the
            generation of the instance that created it.
        id: its name, which no other instance ever has.
    """

    operator: str
    generation: int
    id: NodeId


# -- messages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duplication:
    """The sender creates siblings: they are your neighbours from now on."""

    operator: str
    generation: int
    newcomers: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class DuplicationAck:
    """The newcomers are known here, or (not ``linked``) never will be, since I leave."""

    linked: bool


@dataclass(frozen=True, slots=True)
class Deletion:
    """The sender leaves: forget it, and say when no record of yours is on its way to it."""

    operator: str


@dataclass(frozen=True, slots=True)
class DeletionAck:
    """The leaver is forgotten here, and has all that was sent to it."""


@dataclass(frozen=True, slots=True)
class Start:
    """To a newcomer: these neighbours know you, begin.

    Attributes:
        neighbours: every one that knows the newcomer.
        bereaved: operators whose first keeper is lost, where neighbours name the next one.
    """

    neighbours: tuple[Member, ...]
    bereaved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Keep:
    """The sender takes the receiver for the keeper of its operator, or no longer does."""

    you: bool


@dataclass(frozen=True, slots=True)
class Evict:
    """The sender holds the receiver for dead and has forgotten it: it has to stop."""


ScaleMessage = Duplication | DuplicationAck | Deletion | DeletionAck | Start | Keep | Evict


# -- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScaleOutRequested:
    """The decider wants siblings. ``token`` resolves with their names, or fails."""

    count: int = 1
    token: Hashable = None


@dataclass(frozen=True, slots=True)
class Spawned:
    """The siblings that ``Spawn`` asked for exist and are idle; fewer than asked for will do."""

    newcomers: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class SpawnFailed:
    """No sibling could be created."""

    reason: str


@dataclass(frozen=True, slots=True)
class LeaveRequested:
    """The decider wants this instance gone. ``token`` resolves when it is."""

    token: Hashable = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """The data plane chose a successor for some records. Comes before they are sent."""

    to: NodeId
    count: int = 1


@dataclass(frozen=True, slots=True)
class Delivered:
    """The machine of a successor has so many records that were assigned to it."""

    by: NodeId
    count: int = 1


@dataclass(frozen=True, slots=True)
class QueueEmptied:
    """The answer to ``Drain``: no record is left in the queue or in the body."""


ScaleEvent = (
    CommonEvent
    | ScaleOutRequested
    | Spawned
    | SpawnFailed
    | LeaveRequested
    | Assigned
    | Delivered
    | QueueEmptied
)


# -- effects ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spawn:
    """Create siblings; answer with ``Spawned`` or ``SpawnFailed``."""

    count: int


@dataclass(frozen=True, slots=True)
class Activate:
    """Begin to process records, those first that came while the instance was idle."""


@dataclass(frozen=True, slots=True)
class Drain:
    """No more records will come: process what is there, then answer ``QueueEmptied``."""


@dataclass(frozen=True, slots=True)
class Terminate:
    """The instance left in good order: end it."""


@dataclass(frozen=True, slots=True)
class Stop:
    """The instance cannot go on: end it as a crash would, so that its neighbours are told."""

    reason: str


@dataclass(frozen=True, slots=True)
class Deserted:
    """As far as is known here, no instance of a neighbouring operator is left."""

    operator: str


ScaleEffect = CommonEffect | Spawn | Activate | Drain | Terminate | Stop | Deserted
