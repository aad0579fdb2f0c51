"""The whole graph of a small model, kept in memory to look for cycles in it."""

from array import array
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from typing import Any

from dsp.errors import ConfigError
from dsp.testing.explorer.actions import Action, ActionKind
from dsp.testing.explorer.engine import Engine
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.view import View

__all__ = ["Graph", "UNFAIR"]

UNFAIR = 0
"""The fairness class of actions that may be put off for ever."""


class Graph:
    """States numbered in breadth-first order, and the steps between them.

    Args:
        model: what to explore.
        labels: predicates to be evaluated in every state.
        max_states: stop, incomplete, after so many states.

    Attributes:
        labels: for each predicate, its truth in each state.
        complete: whether the whole graph is there.
    """

    def __init__(
        self, model: AnyModel, labels: Sequence[Callable[[View[Any]], bool]], max_states: int
    ) -> None:
        self._model = model
        self._engine = engine = Engine(model)
        self._class_numbers: dict[Hashable, int] = {None: UNFAIR}
        self._class_of: dict[tuple[Action, int], int] = {}
        predicates = [engine.space.remember(label) for label in labels]
        state, fingerprint = engine.initial()
        numbers = {fingerprint: 0}
        # The edge by which each state was found first; the state at the start has none.
        self._found_by = array("q", [-1])
        self.labels = [bytearray([bool(holds(state))]) for holds in predicates]
        self._first_edge = array("Q")
        self._sources = array("I")
        self._targets = array("I")
        self._classes = array("I")
        self.complete = True
        waiting = deque([(state, fingerprint)])
        while waiting:
            state, fingerprint = waiting.popleft()
            number = len(self._first_edge)
            self._first_edge.append(len(self._targets))
            for action, after, total in engine.successors(state, fingerprint):
                target = numbers.get(total)
                if target is None:
                    target = numbers[total] = len(numbers)
                    self._found_by.append(len(self._targets))
                    for holds, known in zip(predicates, self.labels, strict=True):
                        known.append(bool(holds(after)))
                    waiting.append((after, total))
                self._sources.append(number)
                self._targets.append(target)
                self._classes.append(self._class(action, state))
            if len(numbers) > max_states:
                self.complete = False
                break
        while len(self._first_edge) <= len(numbers):
            self._first_edge.append(len(self._targets))

    def __len__(self) -> int:
        return len(self._found_by)

    @property
    def transitions(self) -> int:
        """Number of steps between states."""
        return len(self._targets)

    def _class(self, action: Action, state: tuple[int, ...]) -> int:
        position = 0
        if action.kind is ActionKind.SCRIPT:
            position = state[self._engine.space.script(action.subject).slot]
        known = self._class_of.get((action, position))
        if known is None:
            name = self._model.fairness(action)
            if action.kind is ActionKind.SCRIPT:
                drives = self._engine.space.script(action.subject).drives
                name = name if drives[position].stimulus.fair else None
            known = self._class_numbers.setdefault(name, len(self._class_numbers))
            self._class_of[action, position] = known
        return known

    def edges(self, number: int) -> range:
        """The steps out of a state."""
        return range(self._first_edge[number], self._first_edge[number + 1])

    def source(self, edge: int) -> int:
        """The state in which a step starts."""
        return self._sources[edge]

    def target(self, edge: int) -> int:
        """The state to which a step leads."""
        return self._targets[edge]

    def fairness(self, edge: int) -> int:
        """The fairness class of a step."""
        return self._classes[edge]

    def choice(self, edge: int) -> int:
        """Which of the steps out of its state an edge is, counted from 0."""
        return edge - self._first_edge[self._sources[edge]]

    def stem(self, number: int) -> list[int]:
        """The steps of a shortest way from the start to a state."""
        way = []
        while (edge := self._found_by[number]) >= 0:
            way.append(edge)
            number = self._sources[edge]
        return way[::-1]

    def path(self, start: int, members: Container[int], goal: Callable[[int], bool]) -> list[int]:
        """The steps of a shortest way inside ``members`` to a state that ``goal`` accepts."""
        if goal(start):
            return []
        found_by: dict[int, int] = {start: -1}
        waiting = deque([start])
        while waiting:
            for edge in self.edges(waiting.popleft()):
                target = self._targets[edge]
                if target not in members or target in found_by:
                    continue
                found_by[target] = edge
                if goal(target):
                    way = [edge]
                    while (before := found_by[self._sources[way[-1]]]) >= 0:
                        way.append(before)
                    return way[::-1]
                waiting.append(target)
        raise ConfigError("there is no way inside a component of the graph")

    def components(self, inside: bytearray) -> Iterator[list[int]]:
        """Strongly connected components of the part of the graph that is marked, each sorted.

        Tarjan's algorithm with a stack of its own, since graphs are deeper than Python's.
        """
        size = len(self)
        index = array("I", bytes(4 * size))
        low = array("I", bytes(4 * size))
        on_stack = bytearray(size)
        stack: list[int] = []
        counter = 0
        for root in range(size):
            if index[root] or not inside[root]:
                continue
            calls = [(root, self._first_edge[root])]
            while calls:
                number, edge = calls.pop()
                if not index[number]:
                    counter += 1
                    index[number] = low[number] = counter
                    stack.append(number)
                    on_stack[number] = 1
                end = self._first_edge[number + 1]
                while edge < end:
                    target = self._targets[edge]
                    if inside[target] and not index[target]:
                        # This edge is looked at again when its target is done.
                        calls.append((number, edge))
                        calls.append((target, self._first_edge[target]))
                        break
                    if on_stack[target]:
                        low[number] = min(low[number], low[target])
                    edge += 1
                else:
                    if low[number] == index[number]:
                        members: list[int] = []
                        while not members or members[-1] != number:
                            members.append(stack.pop())
                            on_stack[members[-1]] = 0
                        yield sorted(members)
