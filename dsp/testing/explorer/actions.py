"""What can happen next in a state, and what did happen: actions, steps, traces."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum

from dsp.core.machine import Send
from dsp.core.types import Lane, NodeId

__all__ = ["ActionKind", "Action", "Reaction", "Step"]


class ActionKind(Enum):
    """The kinds of choice that the surroundings of machines have."""

    DELIVER = "deliver"
    LOSE = "lose"
    DUPLICATE = "duplicate"
    OVERTAKE = "overtake"
    NOTICE = "notice"
    POSTED = "posted"
    TICK = "tick"
    SCRIPT = "script"


@dataclass(frozen=True, slots=True)
class Action:
    """One choice, named so that it can be repeated in another process.

    Attributes:
        kind: what is done.
        subject: the node that acts, or the script that takes its next step.
        peer: the sender of the frame, or the node that is reported lost.
        lane: the lane of the frame.
        index: position of the frame in its channel; 0 except for OVERTAKE.
    """

    kind: ActionKind
    subject: str
    peer: NodeId | None = None
    lane: Lane | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Reaction:
    """One machine took one event within a step."""

    node: NodeId
    event: Hashable
    effects: tuple[object, ...]

    def __str__(self) -> str:
        return f"{self.node} takes {self.event!r}"


@dataclass(frozen=True, slots=True)
class Step:
    """One numbered line of a trace: the choice, and what the machines did.

    Attributes:
        action: the choice that was made.
        what: the choice in words.
        reactions: events taken and effects given, in order; more than one if the model fed
            further events in the same step.
        notes: what the surroundings did besides (frames dropped, nodes created or removed).
    """

    action: Action
    what: str
    reactions: tuple[Reaction, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.what]
        for number, reaction in enumerate(self.reactions):
            if number:
                lines.append(f"  then {reaction}")
            lines.extend(f"    -> {_words(effect)}" for effect in reaction.effects)
        lines.extend(f"    .. {note}" for note in self.notes)
        return "\n".join(lines)


def _words(effect: object) -> str:
    if isinstance(effect, Send):
        return f"sends {effect.message!r} to {effect.to} on {effect.lane.name}"
    return repr(effect)
