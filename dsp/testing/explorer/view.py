"""What predicates see of a state, and the memory of their answers."""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, Never, TypeVar, cast

from dsp.core.machine import Machine
from dsp.core.types import Lane, NodeId
from dsp.errors import ConfigError

if TYPE_CHECKING:
    from dsp.testing.explorer.space import Space

__all__ = ["View", "Remembered"]

MachineT = TypeVar("MachineT", bound=Machine[Never, object])
T = TypeVar("T")

_LEAVES = 200_000


class View(Generic[MachineT]):
    """A state, as predicates and guards read it. Valid during the call only."""

    __slots__ = ("_broad", "_reads", "_space", "_state")

    def __init__(self, space: "Space", state: tuple[int, ...]) -> None:
        self._space = space
        self._state = state
        self._reads: dict[int, int] = {}
        self._broad = False

    def _read(self, slot: int) -> int:
        value = self._state[slot] if slot < len(self._state) else 0
        self._reads[slot] = value
        return value

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        """The nodes that exist, in order of appearance."""
        return self._space.roster.values[self._read(self._space.roster.slot)][0]

    @property
    def gone(self) -> tuple[NodeId, ...]:
        """The nodes that existed and no longer do."""
        return self._space.roster.values[self._read(self._space.roster.slot)][1]

    @property
    def ghost(self) -> Hashable:
        """The model's own state."""
        return self._space.ghost.values[self._read(self._space.ghost.slot)]

    def exists(self, node: NodeId) -> bool:
        """Whether the node exists now."""
        return node in self.nodes

    def state(self, node: NodeId) -> Hashable:
        """What ``Machine.state`` gave for the node.

        Raises:
            KeyError: there is no such node now.
        """
        part = self._space.node(node)
        local = self._read(part.slot)
        if not local:
            raise KeyError(node)
        return part.states[local]

    def machine(self, node: NodeId) -> MachineT:
        """The node's machine in this state, to be read and not to be changed or kept.

        Raises:
            KeyError: there is no such node now.
        """
        part = self._space.node(node)
        local = self._read(part.slot)
        if not local:
            raise KeyError(node)
        return cast("MachineT", part.machine_in(local))

    def channel(
        self, sender: NodeId, receiver: NodeId, lane: Lane = Lane.CONTROL
    ) -> tuple[Hashable, ...]:
        """The frames in flight on one channel, oldest first."""
        part = self._space.channel(sender, receiver, lane)
        return part.messages(self._read(part.slot))

    def in_flight(self) -> list[tuple[NodeId, NodeId, Lane, tuple[Hashable, ...]]]:
        """Every channel that is not empty: sender, receiver, lane, frames."""
        self._broad = True
        found = []
        for part in self._space.channels:
            content = self._read(part.slot)
            if content and part.lane is not None:
                found.append((part.sender, part.receiver, part.lane, part.messages(content)))
        return found

    def steps_done(self, script: str) -> int:
        """How many steps of a script were done (in the present round, if it is endless)."""
        return self._read(self._space.script(script).slot)


class Remembered(Generic[T]):
    """A predicate with a memory, keyed by what the predicate reads.

    A predicate that is a function of its view reads one component, then, depending on it, another.
    So its answers form a decision tree, and an answer is found again by walking down: at each
    branch the value of one component decides. Predicates that read a lot never meet the same
    values twice; their tree is given up when it is too large.
    """

    __slots__ = ("_broad", "_function", "_leaves", "_root", "_space")

    def __init__(self, function: "Callable[[View[Any]], T]", space: "Space") -> None:
        self._function = function
        self._space = space
        self._root: tuple[int, dict[int, Any]] | list[T] | None = None
        self._leaves = 0
        self._broad = False

    def __call__(self, state: tuple[int, ...]) -> T:
        """The answer in this state, computed or remembered."""
        node: Any = self._root
        try:
            while node.__class__ is tuple:
                node = node[1].get(state[node[0]])
        except IndexError:
            return self._miss((*state, *([0] * (self._space.width - len(state)))))
        if node is None:
            return self._miss(state)
        answer: T = node[0]
        return answer

    def forget_broad(self) -> None:
        """There is a new channel: answers that depend on "all channels" are out of date."""
        if self._broad:
            self._root = None

    def _miss(self, state: tuple[int, ...]) -> T:
        view: View[Any] = View(self._space, state)
        answer = self._function(view)
        self._broad = self._broad or view._broad
        if self._leaves >= _LEAVES:
            self._root = None
            return answer
        self._leaves += 1
        leaf = [answer]
        reads = list(view._reads.items())
        if not reads:
            self._root = leaf
            return answer
        if self._root is None:
            self._root = (reads[0][0], {})
        node: tuple[int, dict[int, Any]] | list[T] = self._root
        for position, (slot, value) in enumerate(reads):
            if not isinstance(node, tuple) or node[0] != slot:
                raise ConfigError("a predicate must depend on nothing but what it reads")
            branches = node[1]
            if position + 1 == len(reads):
                branches[value] = leaf
            else:
                node = branches.setdefault(value, (reads[position + 1][0], {}))
        return answer
