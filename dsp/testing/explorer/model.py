"""What a user writes to have a protocol explored."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, Never, TypeVar

from dsp.core.machine import Machine
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer.actions import Action, ActionKind
from dsp.testing.explorer.run import Run
from dsp.testing.explorer.script import Absent, LaneRules, Notice, Script, Snapshot
from dsp.testing.explorer.view import View

__all__ = ["Model", "AnyModel"]

MachineT = TypeVar("MachineT", bound=Machine[Never, object])


class Model(Generic[MachineT]):
    """Machines, what happens to them, and what must hold. Subclass and override.

    Only ``machines`` is required. Hooks and predicates must be functions of their arguments: the
    explorer remembers their outcomes, keyed by what they read. A predicate reports a fault by
    raising ``InvariantError`` or by a failing ``assert``.

    **Time is abstract.** Each machine has a clock of its own that only its own time-outs move. An
    event is handled at the machine's clock; an armed deadline may fire at any moment, which hands
    ``Tick`` to the machine with ``now`` set to the deadline and moves its clock there. A machine
    that re-arms ``now + timeout`` would so count up for ever: either bound the time-outs of a run
    (``max_ticks``), or say in ``rebase`` how a state looks when its clock is set back to zero.

    Attributes:
        lanes: how channels treat frames, for each lane that is not a reliable FIFO one.
        max_ticks: time-outs in one run, of all machines together; None for no bound.
        absent: what becomes of frames to a node that does not exist.
        notice: when survivors of a crash may learn of it.
    """

    lanes: Mapping[Lane, LaneRules] = {}
    max_ticks: int | None = None
    absent: Absent = Absent.DROP
    notice: Notice = Notice.ANYTIME

    def machines(self) -> Mapping[NodeId, MachineT]:
        """New machines for the nodes that exist at the start, in the order to explore them."""
        raise NotImplementedError

    def scripts(self) -> Sequence[Script]:
        """The stimuli. Each script is a process of its own."""
        return ()

    def ghost(self) -> Hashable:
        """The first value of the model's own state, which hooks read and replace."""
        return None

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        """A machine gave an effect other than ``Send``. By default nothing happens."""

    def on_undeliverable(
        self, run: Run, sender: NodeId, to: NodeId, message: Hashable, lane: Lane
    ) -> None:
        """A frame was dropped because its receiver does not exist. By default nothing happens."""

    def invariant(self, view: View[MachineT]) -> None:
        """Raise if the state must never be. Checked in every state."""

    def quiet(self, view: View[MachineT]) -> None:
        """Raise if a run must not end here. Checked where nothing more can happen."""

    def finished(self, view: View[MachineT]) -> bool:
        """Whether nothing is left to do; a quiet state that is not finished is a deadlock.

        Scripts that did not reach their end are a deadlock in any case, except for steps of nodes
        that are gone.
        """
        return True

    def rebase(self, node: NodeId, state: Hashable, by: float) -> Hashable:
        """The same machine state with its clock set back by ``by``, all times in it reduced.

        Called after each time-out. By default None, which keeps absolute times; ``rebase_floats``
        does it for states in which every float is an instant.
        """
        return None

    def canonical(self, snapshot: Snapshot) -> Snapshot:
        """The representative of all states that behave like this one. By default itself.

        Makes unbounded counters finite (subtract the least from all) and uses symmetry. It costs
        some 50 microseconds for each new transition, so override it only where needed. States,
        channels and ghost may be rewritten; nodes, scripts and gone must stay as they are.
        """
        return snapshot

    def watchers(self, dead: NodeId, alive: tuple[NodeId, ...]) -> Sequence[NodeId]:
        """The nodes that will be told of a crash. By default all that live when it happens."""
        return alive

    def fairness(self, action: Action) -> Hashable:
        """The fairness class of an action, or None if it may be put off for ever.

        In a fair run no class stays possible for ever without being taken. By default each channel
        and each node's time-out is a class of its own, each script one for its ``fair`` steps (the
        explorer does not ask here for the others), and faults are never due.
        """
        if action.kind in (ActionKind.LOSE, ActionKind.DUPLICATE, ActionKind.OVERTAKE):
            return None
        return action


AnyModel = Model[Any]
