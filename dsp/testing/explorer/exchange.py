"""States on their way between processes.

Each process numbers components and values as it meets them, so the same state is different
numbers in two processes. A batch therefore carries, besides the numbers, the meaning of each number
that the other side has not been told yet. That is little: there are few values and many
combinations.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from dsp.core.machine import Machine
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer.components import Channel, LocalState, Node
from dsp.testing.explorer.search import Outbox
from dsp.testing.explorer.space import Roster, Space

if TYPE_CHECKING:
    from array import array

__all__ = ["Batch", "Sender", "Receiver"]


@dataclass(slots=True)
class _NodeNews:
    slot: int
    name: NodeId
    prototypes: dict[Hashable, Machine[object, object]]
    locals: list[LocalState]


@dataclass(slots=True)
class _ChannelNews:
    slot: int
    key: tuple[NodeId, NodeId, Lane | None]
    messages: list[Hashable]
    contents: list[tuple[int, ...]]


@dataclass(slots=True)
class Batch:
    """States in the sender's numbers, and what the receiver needs to read them."""

    fingerprints: "array[int]"
    links: "array[int]"
    chunks: "list[tuple[int, array[int]]]"
    roster: list[Roster] = field(default_factory=list)
    ghost: list[Hashable] = field(default_factory=list)
    nodes: list[_NodeNews] = field(default_factory=list)
    channels: list[_ChannelNews] = field(default_factory=list)


class Sender:
    """Writes batches for one other process, and knows what it has told it already."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._told: dict[Hashable, int] = {}

    def _news(self, key: Hashable, known: int) -> int:
        """From which number on a table of ``known`` entries is news."""
        before = self._told.get(key, 0)
        self._told[key] = known
        return before

    def pack(self, outbox: Outbox) -> Batch:
        """Empty an outbox into a batch."""
        space = self._space
        batch = Batch(outbox.fingerprints, outbox.links, outbox.states.chunks)
        outbox.clear()
        batch.roster = space.roster.values[self._news("roster", len(space.roster.values)) :]
        batch.ghost = space.ghost.values[self._news("ghost", len(space.ghost.values)) :]
        for node in space.nodes:
            first = self._news(("node", node.slot), len(node.locals))
            variants = list(node.prototypes)
            new = variants[self._news(("variants", node.slot), len(variants)) :]
            if first < len(node.locals) or new:
                machines = {variant: node.prototypes[variant] for variant in new}
                news = _NodeNews(node.slot, node.name, machines, node.locals[first:])
                batch.nodes.append(news)
        for channel in space.channels:
            first = self._news(("contents", channel.slot), len(channel.contents))
            start = self._news(("messages", channel.slot), len(channel.message_values))
            messages = channel.message_values[start:]
            # A message may have a number and be in no content: its receiver was dead.
            if first < len(channel.contents) or messages:
                key = (channel.sender, channel.receiver, channel.lane)
                contents = channel.contents[first:]
                batch.channels.append(_ChannelNews(channel.slot, key, messages, contents))
        return batch


class Receiver:
    """Reads batches of one other process into this process's numbers."""

    def __init__(self, space: Space) -> None:
        self._space = space
        # For each of the sender's components: our slot, and our number for each of its values. The
        # components that a model starts with are numbered alike in all processes.
        self._slots: list[int] = list(range(space.width))
        self._values: list[list[int]] = [[] for _ in self._slots]
        for counter in space.counters():
            self._values[counter.slot] = list(range(len(counter.digests)))
        self._messages: dict[int, list[int]] = {}
        self._arrange: Callable[[list[int]], tuple[int, ...]] = tuple
        self._arranged = (0, 0)

    def _component(self, slot: int, part: Node | Channel) -> list[int]:
        while len(self._slots) <= slot:
            self._slots.append(-1)
            self._values.append([])
        self._slots[slot] = part.slot
        return self._values[slot]

    def learn(self, batch: Batch) -> None:
        """Take in the meaning of the sender's new numbers."""
        space = self._space
        self._values[space.roster.slot].extend(space.roster.number(new) for new in batch.roster)
        self._values[space.ghost.slot].extend(space.ghost.number(new) for new in batch.ghost)
        for news in batch.nodes:
            node = space.node(news.name)
            values = self._component(news.slot, node)
            for variant, machine in news.prototypes.items():
                node.prototypes.setdefault(variant, machine)
            for local in news.locals:
                if not values:
                    values.append(0)
                    continue
                machine = node.prototypes[local[0]]
                machine.restore(local[1])
                values.append(node.number(local, machine))
        for item in batch.channels:
            channel = space.channel(*item.key)
            values = self._component(item.slot, channel)
            messages = self._messages.setdefault(item.slot, [])
            messages.extend(channel.message(value) for value in item.messages)
            for content in item.contents:
                values.append(channel.number(tuple(messages[number] for number in content)))

    def translate(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """A state of the sender in this process's numbers."""
        tables = self._values
        values = [table[value] for table, value in zip(tables, state, strict=False)]
        # Padded to the sender's width, and with one 0 more for components that only we know.
        values.extend([0] * (len(tables) + 1 - len(values)))
        if self._arranged != (len(tables), self._space.width):
            self._arranged = (len(tables), self._space.width)
            order = [len(tables)] * self._space.width
            for theirs, ours in enumerate(self._slots):
                order[ours] = theirs
            self._arrange = itemgetter(*order)
        return self._arrange(values)
