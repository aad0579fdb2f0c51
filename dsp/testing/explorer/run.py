"""What a model's hooks may order while a step is under way."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Never, cast

from dsp.core.machine import Machine
from dsp.core.types import NodeId

__all__ = ["Run", "Order", "Spawn", "Remove", "Feed", "Violate"]


@dataclass(frozen=True, slots=True)
class Spawn:
    """Create a node."""

    node: NodeId
    machine: Machine[object, object]
    state: Hashable
    variant: Hashable


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a node, and tell the others if it crashed."""

    node: NodeId
    crashed: bool


@dataclass(frozen=True, slots=True)
class Feed:
    """Hand a local event to a machine, in this step or later."""

    node: NodeId
    event: Hashable
    later: bool


@dataclass(frozen=True, slots=True)
class Violate:
    """The model saw something that must not be."""

    message: str


Order = Spawn | Remove | Feed | Violate


class Run:
    """Handed to hooks: reads and replaces the ghost state, and takes orders.

    The outcome of a hook is remembered and used again. It may therefore depend on the arguments
    of the hook and on ``ghost``, and on nothing else. Orders are carried out when the hook
    returns, in the order in which they were given.

    Attributes:
        ghost: the model's own state; assign another hashable value to change it.
    """

    __slots__ = ("ghost", "orders")

    def __init__(self, ghost: Hashable) -> None:
        self.ghost = ghost
        self.orders: list[Order] = []

    def spawn(
        self, node: NodeId, machine: Machine[Never, object], *, variant: Hashable = None
    ) -> None:
        """Create a node in the state that ``machine`` is in.

        Args:
            node: a name that no living node has.
            machine: a fresh machine, used by the explorer from now on.
            variant: tells machines of one node apart whose construction (not state) differs, for
                example by incarnation. Machines with equal variant must be interchangeable.
        """
        fresh = cast("Machine[object, object]", machine)
        self.orders.append(Spawn(node, fresh, fresh.state(), variant))

    def retire(self, node: NodeId) -> None:
        """Remove a node in good order. Frames to it are treated as ``Model.absent`` says."""
        self.orders.append(Remove(node, crashed=False))

    def crash(self, node: NodeId) -> None:
        """Remove a node with what is in flight to it; survivors get ``PeerLost`` later."""
        self.orders.append(Remove(node, crashed=True))

    def feed(self, node: NodeId, event: Hashable) -> None:
        """Hand a local event to a machine within this step, after the effects of this event."""
        self.orders.append(Feed(node, event, later=False))

    def post(self, node: NodeId, event: Hashable) -> None:
        """Hand a local event to a machine at any later moment, in the order of posting."""
        self.orders.append(Feed(node, event, later=True))

    def violate(self, message: str) -> None:
        """Report that this step must not happen, with the trace that leads to it."""
        self.orders.append(Violate(message))
