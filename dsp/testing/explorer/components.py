"""The parts of a state, each with a table of the values it was seen in.

A state is a tuple of small numbers, one for each component, and a number stands for a value in the
component's table; 0 always stands for "nothing there" and adds nothing to a fingerprint. Every
value has a 64-bit digest, and a fingerprint is their sum modulo 2**64, so that a step that changes
three components costs three additions.
"""

from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

from dsp.core.machine import Machine, Received
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer.actions import Action, ActionKind
from dsp.testing.explorer.digest import digest64
from dsp.testing.explorer.result import Kind

__all__ = ["Values", "Counter", "Node", "Channel", "LocalState", "Outcome", "Detail"]

T = TypeVar("T", bound=Hashable)

_MEMORY = 1_000_000


class Detail(NamedTuple):
    """The rest of an outcome, if it is more than frames to send."""

    effects: tuple[object, ...]
    error: tuple[Kind, str] | None


Outcome = tuple[int, tuple[tuple["Channel", int], ...], Detail | None]
"""What a machine did with an event: its next local state, frames sent, and the rest if any."""

LocalState = tuple[Hashable, Hashable, float]
"""Variant of the machine, its state, its clock."""


class Values(Generic[T]):
    """A component that holds any hashable value; the first one is its number 0."""

    __slots__ = ("digests", "name", "numbers", "slot", "values")

    def __init__(self, slot: int, name: Hashable, first: T) -> None:
        self.slot = slot
        self.name = name
        self.values: list[T] = [first]
        self.digests: list[int] = [0]
        self.numbers: dict[T, int] = {first: 0}

    def number(self, value: T) -> int:
        """The number of a value, given out at its first appearance."""
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.values)
            self.values.append(value)
            self.digests.append(digest64(self.name, value))
        return number


class Counter:
    """A component that is a small number by itself: a used budget, a position in a script."""

    __slots__ = ("digests", "name", "slot")

    def __init__(self, slot: int, name: Hashable, limit: int) -> None:
        self.slot = slot
        self.name = name
        self.digests = [0, *(digest64(name, value) for value in range(1, limit + 1))]


class Node:
    """The machine of one node, in all states it was seen in."""

    __slots__ = (
        "deadlines",
        "digests",
        "fed",
        "locals",
        "name",
        "numbers",
        "prototypes",
        "slot",
        "states",
        "tick",
        "ticks",
    )

    def __init__(self, slot: int, name: NodeId) -> None:
        self.slot = slot
        self.name = name
        self.prototypes: dict[Hashable, Machine[object, object]] = {}
        self.locals: list[LocalState] = [(None, None, 0.0)]
        self.states: list[Hashable] = [None]
        self.deadlines: list[float | None] = [None]
        self.digests: list[int] = [0]
        self.numbers: dict[LocalState, int] = {}
        self.tick = Action(ActionKind.TICK, name)
        self.ticks: dict[int, Outcome] = {}
        self.fed: dict[tuple[int, Hashable], Outcome] = {}

    def machine_in(self, local: int) -> Machine[object, object]:
        """The scratch machine of the right variant, set to a state."""
        variant, state, _ = self.locals[local]
        machine = self.prototypes[variant]
        machine.restore(state)
        return machine

    def number(self, value: LocalState, machine: Machine[object, object]) -> int:
        """The number of a local state.

        Args:
            value: the state.
            machine: a machine in that state, asked for its deadline when the state is new.
        """
        number = self.numbers.get(value)
        if number is None:
            number = self.numbers[value] = len(self.locals)
            self.locals.append(value)
            self.states.append(value[1])
            self.deadlines.append(machine.next_deadline())
            self.digests.append(digest64("node", self.name, value))
        return number


class Channel:
    """Frames from one node to another on one lane, in all contents it was seen with.

    A channel with no lane carries local events: those posted to a node (sender is receiver), or
    the notice that the sender is lost.
    """

    __slots__ = (
        "actions",
        "appended",
        "capacity",
        "contents",
        "deliver",
        "digests",
        "faulty",
        "heads",
        "lane",
        "memory",
        "message_numbers",
        "message_values",
        "node",
        "numbers",
        "receiver",
        "sender",
        "slot",
        "tails",
    )

    def __init__(
        self, slot: int, sender: NodeId, lane: Lane | None, node: Node, capacity: int | None
    ) -> None:
        self.slot = slot
        self.sender = sender
        self.receiver = node.name
        self.lane = lane
        self.node = node
        self.capacity = capacity
        self.faulty = False
        self.contents: list[tuple[int, ...]] = [()]
        self.heads: list[int] = [0]
        self.tails: list[int] = [0]
        self.digests: list[int] = [0]
        self.numbers: dict[tuple[int, ...], int] = {(): 0}
        self.appended: dict[int, int] = {}
        # Keyed by local state << 32 | message.
        self.memory: dict[int, Outcome] = {}
        self.actions: dict[tuple[ActionKind, int], Action] = {}
        self.deliver = self.action(ActionKind.DELIVER)
        self.message_values: list[Hashable] = []
        self.message_numbers: dict[Hashable, int] = {}

    def message(self, value: Hashable) -> int:
        """The number of a message on this channel."""
        number = self.message_numbers.get(value)
        if number is None:
            number = self.message_numbers[value] = len(self.message_values)
            self.message_values.append(value)
        return number

    def messages(self, content: int) -> tuple[Hashable, ...]:
        """The messages of a content, oldest first."""
        return tuple(self.message_values[number] for number in self.contents[content])

    def action(self, kind: ActionKind, index: int = 0) -> Action:
        """The action of that kind on this channel; one object for all times."""
        action = self.actions.get((kind, index))
        if action is None:
            action = Action(kind, self.receiver, self.sender, self.lane, index)
            self.actions[kind, index] = action
        return action

    def remember(self, local: int, message: int, outcome: Outcome) -> None:
        """Keep what the receiver did with a message in a local state."""
        if len(self.memory) >= _MEMORY:
            self.memory.clear()
        self.memory[local << 32 | message] = outcome

    def event(self, message: int) -> Hashable:
        """What the receiver's machine takes when a message arrives."""
        value = self.message_values[message]
        return value if self.lane is None else Received(self.sender, value, self.lane)

    def number(self, content: tuple[int, ...]) -> int:
        """The number of a content."""
        number = self.numbers.get(content)
        if number is None:
            tail = self.number(content[1:])
            number = self.numbers[content] = len(self.contents)
            self.contents.append(content)
            self.heads.append(content[0])
            self.tails.append(tail)
            values = tuple(self.message_values[message] for message in content)
            name = ("channel", self.sender, self.receiver, self.lane)
            self.digests.append(digest64(name, values))
        return number

    def append(self, content: int, message: int) -> int:
        """The content with one message more, or -1 if the channel is full."""
        key = content << 32 | message
        number = self.appended.get(key)
        if number is None:
            longer = (*self.contents[content], message)
            full = self.capacity is not None and len(longer) > self.capacity
            number = self.appended[key] = -1 if full else self.number(longer)
        return number
