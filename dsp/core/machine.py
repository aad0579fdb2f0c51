"""The contract of a protocol machine, and the events and effects that all machines share.

A machine is a protocol without its surroundings: an event goes in, effects come out. It does no
input or output, reads no clock, draws no random number, starts no task and does not log, so the
same object runs on asyncio (``dsp.core.driver``), in a simulated world, and in an explorer that
tries every interleaving (``dsp.testing.explorer``).

Events are facts or requests (``Received``, ``Tick``, a machine's own ``EnterRequested``), effects
are orders to whoever runs the machine (``Send``, ``Resolve``, a machine's own ``Spawn``). Both are
frozen dataclasses with slots: comparable, hashable, printable.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from dsp.core.types import Lane, NodeId

__all__ = [
    "Machine",
    "Received",
    "PeerAppeared",
    "PeerLost",
    "SendFailed",
    "Tick",
    "Cancelled",
    "Send",
    "Resolve",
    "Fail",
    "Reject",
    "CommonEvent",
    "CommonEffect",
]

EventT = TypeVar("EventT", contravariant=True)
EffectT = TypeVar("EffectT", covariant=True)


class Machine(Protocol[EventT, EffectT]):
    """A pure state machine.

    Rules that the driver and the explorer rely on:

    * the outcome of ``handle`` depends on the state, the event and ``now``, on nothing else;
    * effects are ordered, and their order never depends on the iteration order of a set;
    * a message that a correct peer never sends gives a ``Reject`` effect: a peer cannot crash us;
    * a local call that the state does not allow raises ``LocalProtocolError`` and changes nothing.
    """

    def handle(self, event: EventT, now: float) -> Sequence[EffectT]:
        """Take one event at time ``now`` and return what has to be done. The only mutator."""
        ...

    def next_deadline(self) -> float | None:
        """When to call ``handle(Tick(), now)`` next, or None if no time-out is pending."""
        ...

    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the state is one that must never be."""
        ...

    def state(self) -> Hashable:
        """The whole mutable state as an immutable value; equal states behave alike."""
        ...

    def restore(self, state: Hashable) -> None:
        """Return to a value that ``state`` gave. Must not share mutable parts with it."""
        ...

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
        ...


# -- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Received:
    """A peer's message arrived on a lane."""

    sender: NodeId
    message: Hashable
    lane: Lane = Lane.CONTROL


@dataclass(frozen=True, slots=True)
class PeerAppeared:
    """The transport sees a peer. A hint: it may be a new incarnation of one that was there."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class PeerLost:
    """The transport lost a peer. A hint: whether the peer is dead is a machine's decision."""

    peer: NodeId


@dataclass(frozen=True, slots=True)
class SendFailed:
    """Messages that were sent and will not arrive."""

    to: NodeId
    messages: tuple[Hashable, ...]
    lane: Lane = Lane.CONTROL


@dataclass(frozen=True, slots=True)
class Tick:
    """The time that ``next_deadline`` asked for has come."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The task that waits for ``token`` was cancelled: withdraw what it asked for."""

    token: Hashable


CommonEvent = Received | PeerAppeared | PeerLost | SendFailed | Tick | Cancelled


# -- effects ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a peer."""

    to: NodeId
    message: Hashable
    lane: Lane = Lane.CONTROL


@dataclass(frozen=True, slots=True)
class Resolve:
    """Wake the local task that waits for ``token``, with a value."""

    token: Hashable
    value: Hashable = None


@dataclass(frozen=True, slots=True)
class Fail:
    """Wake the local task that waits for ``token``, with an error."""

    token: Hashable
    error: str


@dataclass(frozen=True, slots=True)
class Reject:
    """A peer broke the protocol; the message was ignored. Reported and counted by the driver."""

    sender: NodeId
    reason: str


CommonEffect = Send | Resolve | Fail | Reject
