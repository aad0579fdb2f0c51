"""What balancers and the instances that they send to say to each other, and the events around them.

A *scheduler* chooses, for one edge of the graph, the instance that gets a record. A *meter* sits
in each instance at the other end and learns what records cost there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsp.core.machine import CommonEvent, Reject, Send
from dsp.core.types import NodeId

__all__ = [
    "Matrices",
    "Request",
    "Reply",
    "BalanceMessage",
    "Offered",
    "Departing",
    "Worked",
    "Executed",
    "SchedulerEvent",
    "MeterEvent",
    "Assign",
    "Piggyback",
    "SchedulerEffect",
    "MeterEffect",
]


# -- messages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Matrices:
    """What records cost at the sender: the cells of two sketches with the same hash functions.

    Attributes:
        rows: of each.
        columns: of each.
        seed: of the hash functions.
        counts: how many records there were, row by row.
        seconds: how long they took in all, row by row.
    """

    rows: int
    columns: int
    seed: int
    counts: tuple[float, ...]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """With records: how far is your work from what I think it is?

    Attributes:
        epoch: which synchronisation it belongs to.
        estimate: seconds of work that the scheduler believes it gave to the receiver, these
            records included.
    """

    epoch: int
    estimate: float


@dataclass(frozen=True, slots=True)
class Reply:
    """The records that came with a request are executed: seconds they took beyond the estimate."""

    epoch: int
    difference: float


BalanceMessage = Matrices | Reply


# -- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Offered:
    """To a scheduler: records are there. ``Assign`` answers.

    Attributes:
        keys: of the records.
        room: how many each instance takes at most, for schedulers that ask; None for no bound.
    """

    keys: Sequence[bytes]
    room: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Departing:
    """To a scheduler: records leave for an instance now. ``Piggyback`` may answer.

    Attributes:
        to: the instance.
        behind: seconds that those are estimated to cost which are assigned to it and stay behind.
    """

    to: NodeId
    behind: float = 0.0


@dataclass(frozen=True, slots=True)
class Worked:
    """To a scheduler: an instance has executed so many of the records that it got."""

    by: NodeId
    records: int


@dataclass(frozen=True, slots=True)
class Executed:
    """To a meter: records of a scheduler were executed, one after the other.

    Attributes:
        scheduler: whose.
        keys: of the records.
        seconds: what each of them took.
        request: what came with the last of them.
    """

    scheduler: NodeId
    keys: Sequence[bytes]
    seconds: Sequence[float]
    request: Request | None = None


SchedulerEvent = CommonEvent | Offered | Departing | Worked
MeterEvent = CommonEvent | Executed


# -- effects ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """These instances get the records that were offered, in the same order.

    Attributes:
        targets: one for each record; fewer if the room is used up, none if nobody is there.
        work: seconds that what each of them gets is estimated to take there, by who gets something.
    """

    targets: Sequence[NodeId]
    work: Mapping[NodeId, float]


@dataclass(frozen=True, slots=True)
class Piggyback:
    """Send this along with the records that depart."""

    request: Request


SchedulerEffect = Assign | Piggyback | Reject
MeterEffect = Send | Reject
