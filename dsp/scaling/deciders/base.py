"""What deciders see, and what they may say.

A decider is asked once in every period of its instance. It sees the instance's own figures and what
neighbours report, never a global state, and it holds the randomness: the protocol machine has none.
"""

from dataclasses import dataclass
from typing import Protocol

from dsp.core.types import NodeId
from dsp.scaling.usable import CpuUse

__all__ = [
    "Observation",
    "Report",
    "Stay",
    "Duplicate",
    "Leave",
    "Retire",
    "Decision",
    "Decider",
    "Watcher",
    "STAY",
]


FREE = CpuUse()


@dataclass(frozen=True, slots=True)
class Report:
    """What a predecessor can tell an instance about its operator.

    Instances do not know their siblings; whoever sends to them does.

    Attributes:
        siblings: every instance of the operator that the predecessor sends to, the one that is
            told included, sorted by name. Newcomers are among them from the moment on at which
            they are announced, leavers are not.
        load: records per second for the whole operator; None if the predecessor does not measure.
        pending: records that it has for the operator and that are not dealt with.
        expected: records per second that it expects to have for the operator in the next iteration;
            None if it does not estimate.
        latency: mean seconds per record of the siblings; None if they do not tell.
        usable: the least share of a core that a sibling can count on; None likewise.
        keeper: which of the siblings never leaves; None if unknown.
    """

    siblings: tuple[NodeId, ...]
    load: float | None = None
    pending: float = 0.0
    expected: float | None = None
    latency: float | None = None
    usable: float | None = None
    keeper: NodeId | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What an instance knows when it decides.

    Attributes:
        now: seconds, on any clock that does not go back.
        me: the instance.
        load: records per second that come here, plus the growth of the queue, plus what
            predecessors hold back for want of credit: not censored by backpressure.
        capacity: records per second that this instance can process.
        keeper: whether it is the keeper of its operator, which never leaves.
        predecessors: how many instances send to it.
        successors: how many it sends to.
        held_back: whether it is slowed down by successors that take no more: more siblings would
            not help then.
        report: what a predecessor tells, if one does.
        cpu: how the core of the instance is used.
    """

    now: float
    me: NodeId
    load: float
    capacity: float
    keeper: bool = False
    predecessors: int = 0
    successors: int = 0
    held_back: bool = False
    report: Report | None = None
    cpu: CpuUse = FREE

    @property
    def ratio(self) -> float:
        """Load over capacity."""
        return self.load / self.capacity


@dataclass(frozen=True, slots=True)
class Stay:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Create so many siblings."""

    count: int = 1


@dataclass(frozen=True, slots=True)
class Leave:
    """End this instance in good order."""


@dataclass(frozen=True, slots=True)
class Retire:
    """Ask named siblings to leave. For deciders that lead their operator."""

    siblings: tuple[NodeId, ...]


Decision = Stay | Duplicate | Leave | Retire

STAY = Stay()


class Decider(Protocol):
    """Decides for one instance.

    A decider belongs to one instance and may remember what it saw. It never says ``Leave`` for a
    keeper, and never looks at a clock or at anything else than the observation.
    """

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        ...


class Watcher(Decider, Protocol):
    """A decider that wants to see figures between its turns too."""

    def watch(self, observation: Observation) -> None:
        """Take in figures."""
        ...
