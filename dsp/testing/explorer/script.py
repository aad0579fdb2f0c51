"""Stimuli: what users and the surroundings do to machines, and in which order."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Never

from dsp.core.machine import Machine
from dsp.core.types import Lane, NodeId

if TYPE_CHECKING:
    from dsp.testing.explorer.run import Run
    from dsp.testing.explorer.view import View

__all__ = [
    "Absent",
    "LaneRules",
    "Notice",
    "Script",
    "Snapshot",
    "Stimulus",
    "call",
    "crash",
    "join",
    "leave",
    "tell",
]

# A guard reads machines of whatever type the model has; the model's own annotations narrow it.
Guard = Callable[["View[Any]"], bool]


class Absent(Enum):
    """What becomes of a frame that is sent to a node that does not exist (yet, or any more)."""

    DROP = "drop"
    """It is dropped, and ``Model.on_undeliverable`` hears of it."""
    KEEP = "keep"
    """It stays in its channel until the node joins."""
    VIOLATION = "violation"
    """It must not happen: the trace is reported."""


class Notice(Enum):
    """When a survivor may take ``PeerLost`` after a crash."""

    ANYTIME = "anytime"
    """At any later moment; frames of the dead node may still come before and after it."""
    LAST = "last"
    """At any moment after the last frame in flight from the dead node to this survivor."""
    CUT = "cut"
    """At any later moment; what is still in flight from the dead node is lost with it."""


@dataclass(frozen=True, slots=True)
class LaneRules:
    """How the channels of one lane treat frames. The default is a reliable FIFO channel.

    Each budget is shared by all channels of the lane and counted over a whole run; ``None`` means
    without limit. Losing and doubling act on the frame at the head of a channel, which loses no
    behaviour, since every frame is at the head before it arrives.

    Attributes:
        losses: frames that may vanish.
        duplicates: frames that may arrive once more than they were sent.
        overtakings: frames that may arrive before others that were sent earlier.
        capacity: frames that one channel holds; a step that would overfill one has to wait.
    """

    losses: int | None = 0
    duplicates: int | None = 0
    overtakings: int | None = 0
    capacity: int | None = None


@dataclass(frozen=True, slots=True)
class Stimulus:
    """One thing that a script does. Made by ``tell``, ``crash``, ``leave``, ``join`` or ``call``.

    Attributes:
        label: shown in traces.
        node: must exist for the stimulus to be possible; None if no node must.
        event: what the node's machine takes, if this is a plain event.
        act: what happens otherwise.
        when: a further condition; a function of what it reads from the view and of nothing else.
        fair: whether a run in which this stimulus stays possible and never happens is ruled out
            when looking for starvation. A user who may stop asking is not fair; one who must leave
            what it entered is.
    """

    label: str
    node: NodeId | None = None
    event: Hashable = None
    act: "Callable[[Run], None] | None" = None
    when: Guard | None = None
    fair: bool = True


@dataclass(frozen=True, slots=True)
class Script:
    """Stimuli that happen one after the other, interleaved in every way with all else.

    Attributes:
        name: unique in the model, often the node that the script drives.
        steps: the stimuli in order.
        endless: start again after the last step. An endless script is never unfinished.
    """

    name: str
    steps: tuple[Stimulus, ...]
    endless: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole state in plain values, as ``replay`` returns it and ``Model.canonical`` rewrites it.

    Attributes:
        states: what ``Machine.state`` gave, for each node that exists.
        channels: frames in flight by (sender, receiver, lane), oldest first, empty ones left out.
            The lane is None for posted events (sender is receiver) and for ``PeerLost`` notices.
        ghost: the model's own state.
        scripts: how many steps each script has done (counted anew on each round if endless).
        gone: nodes that existed and no longer do.
    """

    states: Mapping[NodeId, Hashable]
    channels: Mapping[tuple[NodeId, NodeId, Lane | None], tuple[Hashable, ...]] = field(
        default_factory=dict
    )
    ghost: Hashable = None
    scripts: Mapping[str, int] = field(default_factory=dict)
    gone: tuple[NodeId, ...] = ()


def tell(
    node: NodeId, event: Hashable, *, when: Guard | None = None, fair: bool = True
) -> Stimulus:
    """The machine of ``node`` takes a local event."""
    return Stimulus(f"{node} is told {event!r}", node, event, None, when, fair)


def crash(node: NodeId, *, when: Guard | None = None, fair: bool = True) -> Stimulus:
    """The node vanishes with what is in flight to it; survivors are told later (``Notice``)."""
    return Stimulus(f"{node} crashes", node, None, lambda run: run.crash(node), when, fair)


def leave(node: NodeId, *, when: Guard | None = None, fair: bool = True) -> Stimulus:
    """The node is removed in good order; nobody is told."""
    return Stimulus(f"{node} leaves", node, None, lambda run: run.retire(node), when, fair)


def join(
    node: NodeId,
    machine: Callable[[], Machine[Never, object]],
    *,
    variant: Hashable = None,
    when: Guard | None = None,
    fair: bool = True,
) -> Stimulus:
    """A node appears, with the machine that ``machine()`` makes (see ``Run.spawn``)."""

    def act(run: "Run") -> None:
        run.spawn(node, machine(), variant=variant)

    return Stimulus(f"{node} joins", None, None, act, when, fair)


def call(
    label: str,
    act: "Callable[[Run], None]",
    *,
    node: NodeId | None = None,
    when: Guard | None = None,
    fair: bool = True,
) -> Stimulus:
    """Anything else: ``act`` gives its orders to the ``Run`` that it is handed."""
    return Stimulus(label, node, None, act, when, fair)
