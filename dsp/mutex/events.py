"""What the machines of mutual exclusion take and give, and what members say to each other.

All algorithms have the same events and effects. ``EnterRequested`` is answered by ``Admit`` once;
``ExitRequested`` is allowed while inside; ``Cancelled(token)`` withdraws a request that still
waits, and leaves again if it was admitted in the same step.
"""

from collections.abc import Hashable
from dataclasses import dataclass

from dsp.core.machine import CommonEffect, CommonEvent
from dsp.core.types import NodeId

__all__ = [
    "Req",
    "Ack",
    "PermissionMessage",
    "Hello",
    "Welcome",
    "Bye",
    "Expelled",
    "MembershipMessage",
    "Carried",
    "EnterRequested",
    "ExitRequested",
    "Linked",
    "Unlinked",
    "JoinRequested",
    "LeaveRequested",
    "MemberRemoved",
    "Superseded",
    "MutexEvent",
    "Admit",
    "Revoke",
    "Settled",
    "Left",
    "MutexEffect",
]

View = tuple[tuple[NodeId, ...], tuple[NodeId, ...]]


# -- messages of the corrected 2-FGME ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Req:
    """Give me our permission: I asked at time ``ts``. Again for a loan: give it back."""

    ts: int


@dataclass(frozen=True, slots=True)
class Ack:
    """Here is our permission.

    Attributes:
        renew: time of the giver's own request, which this files again; 0 if it has none.
        end: the giver was inside and has left.
    """

    renew: int = 0
    end: bool = False


PermissionMessage = Req | Ack


# -- messages of membership -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The sender joins, or joins again: forget what was between us.

    Attributes:
        generation: larger at each later join of the same name.
        group: of the sender.
        view: everybody that the sender knows of, by group.
    """

    generation: int
    group: int
    view: View


@dataclass(frozen=True, slots=True)
class Welcome:
    """The answer: you are a member for me, and our permission is here.

    Attributes:
        generation: of the ``Hello`` that is answered.
        mine: the sender's own generation.
        view: everybody that the sender knows of, by group.
    """

    generation: int
    mine: int
    view: View


@dataclass(frozen=True, slots=True)
class Bye:
    """The sender is no member any more. Also what it answers to a late ``Hello``."""

    view: View


@dataclass(frozen=True, slots=True)
class Expelled:
    """The sender held the receiver for dead and took its permissions back: join again."""

    generation: int


MembershipMessage = Hello | Welcome | Bye | Expelled


@dataclass(frozen=True, slots=True)
class Carried:
    """A message between members, with what every message carries.

    Attributes:
        edge: which pair of groups this is about, where a node is in more than one.
        number: the highest fencing number that the sender knows of.
        body: the message.
    """

    edge: str
    number: int
    body: PermissionMessage | MembershipMessage


# -- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EnterRequested:
    """Somebody wants to get in. ``Admit`` with the same token is the answer."""

    token: Hashable = None


@dataclass(frozen=True, slots=True)
class ExitRequested:
    """Whoever is inside leaves."""


@dataclass(frozen=True, slots=True)
class Linked:
    """A competitor joined; ``held`` says at which end the new permission is."""

    peer: NodeId
    held: bool


@dataclass(frozen=True, slots=True)
class Unlinked:
    """A competitor left, or is held for dead: its permission is no longer needed."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class JoinRequested:
    """This member is to greet those it knows of. ``Settled`` says when it has joined."""


@dataclass(frozen=True, slots=True)
class LeaveRequested:
    """This member wants to go, for good. Only while it is not inside and does not ask."""


@dataclass(frozen=True, slots=True)
class MemberRemoved:
    """Somebody knows for certain that a member is gone for good: no majority has to agree."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class Superseded:
    """A guarded resource refused this member's number, since it has seen ``number``."""

    number: int
    edge: str = ""


MutexEvent = (
    CommonEvent
    | EnterRequested
    | ExitRequested
    | Linked
    | Unlinked
    | JoinRequested
    | LeaveRequested
    | MemberRemoved
    | Superseded
)


# -- effects ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Admit:
    """The request with this token is inside.

    Attributes:
        number: the fencing number of this entry; 0 from a machine that has none.
        numbers: the number for each edge, where a node takes several.
    """

    token: Hashable
    number: int = 0
    numbers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Revoke:
    """The entry with this token is over: others hold this member for dead, or its number is old."""

    token: Hashable
    reason: str


@dataclass(frozen=True, slots=True)
class Settled:
    """This member has joined: all members know it."""


@dataclass(frozen=True, slots=True)
class Left:
    """This member is gone; its machine takes no more requests."""


MutexEffect = CommonEffect | Admit | Revoke | Settled | Left
