"""Breadth-first exploration, level by level: one process's share of it, and the way back."""

import gc
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsp.testing.explorer.actions import Action, Step
from dsp.testing.explorer.engine import Engine, Flaw, Successor
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.result import Kind, Violation
from dsp.testing.explorer.space import Broken
from dsp.testing.explorer.table import FingerprintTable, Frontier

__all__ = ["Finding", "Level", "Shard", "Outbox", "retrace", "patient_collector"]

_PLACES = 1 << 20
_RANK = {kind: rank for rank, kind in enumerate(Kind)}


@contextmanager
def patient_collector() -> Iterator[None]:
    """Have the cyclic garbage collector run seldom, and then as before.

    States are tuples of numbers, which the collector would look through again and again: a fifth
    of the time of an exploration.
    """
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@dataclass(frozen=True, slots=True)
class Finding:
    """A flaw and where it is.

    Attributes:
        length: steps of the trace.
        fingerprint: of the state that is at fault, or in which the faulty step starts.
        link: of that state.
        flaw: what is wrong.
    """

    length: int
    fingerprint: int
    link: int
    flaw: Flaw

    @property
    def rank(self) -> tuple[int, int, str, str, int]:
        """Least is reported first: an order that does not depend on how work is divided."""
        action = "" if self.flaw.action is None else repr(self.flaw.action)
        kind = _RANK[self.flaw.kind]
        return (self.length, kind, self.flaw.message, action, self.fingerprint)


@dataclass(slots=True)
class Level:
    """What one process found while it expanded its states of one level."""

    transitions: int = 0
    quiet: int = 0
    cut: int = 0
    new: int = 0
    finding: Finding | None = None

    def note(self, finding: Finding) -> None:
        """Keep a finding if it ranks before the one kept so far."""
        if self.finding is None or finding.rank < self.finding.rank:
            self.finding = finding


class Outbox:
    """States for another process, with the links to their parents.

    A state is sent again and again if its parents are far apart. A small filter stops most of
    that: it remembers one fingerprint for each of its places.
    """

    __slots__ = ("_filter", "fingerprints", "links", "states")

    def __init__(self) -> None:
        # The fingerprint 0 is sent at most once too few: it fits no place but the first.
        self._filter = array("Q", [1]) + array("Q", bytes(8 * (_PLACES - 1)))
        self.clear()

    def clear(self) -> None:
        """Start a new batch; what was sent stays filtered."""
        self.states = Frontier()
        self.fingerprints = array("Q")
        self.links = array("I")

    def put(self, state: tuple[int, ...], fingerprint: int, link: int) -> None:
        """Add a state unless it was sent of late."""
        place = fingerprint >> 20 & _PLACES - 1
        if self._filter[place] == fingerprint:
            return
        self._filter[place] = fingerprint
        self.states.push(state)
        self.fingerprints.append(fingerprint)
        self.links.append(link)


class Shard:
    """The states that one process owns: those whose fingerprint is ``me`` modulo ``workers``.

    Args:
        model: what to explore.
        me: number of this process.
        workers: number of processes.
        links: keep parent links, so that traces can be given.
    """

    def __init__(
        self, model: AnyModel, *, me: int = 0, workers: int = 1, links: bool = True
    ) -> None:
        self.engine = Engine(model)
        self.table = FingerprintTable(links=links)
        self.outboxes = [Outbox() for _ in range(workers)] if workers > 1 else []
        self._me = me
        self._workers = workers
        self._frontier = Frontier()
        self._base = 0

    def start(self) -> Level:
        """Take in the state at the start, if this process owns it."""
        level = Level()
        try:
            state, fingerprint = self.engine.initial()
        except Broken as broken:
            if self._me == 0:
                level.note(Finding(0, 0, 0, Flaw(broken.kind, broken.message)))
            return level
        if fingerprint % self._workers == self._me:
            self._admit([(None, state, fingerprint)], 0, 0, level)
        return level

    def _admit(
        self,
        found: Sequence[tuple[Action | None, tuple[int, ...], int]],
        link: int,
        length: int,
        level: Level,
    ) -> None:
        push, flaw_in = self._frontier.push, self.engine.flaw_in
        new = self.table.add_all(found, link)
        level.new += len(new)
        for number, (_, state, fingerprint) in enumerate(new, len(self.table) - len(new)):
            push(state)
            flaw = flaw_in(state)
            if flaw is not None:
                own = number * self._workers + self._me
                level.note(Finding(length, fingerprint, own, flaw))

    def expand(self, depth: int) -> Level:
        """Expand all own states of a level. States of others are left in the outboxes.

        Args:
            depth: steps from the start to the states of this level.
        """
        level = Level()
        engine, table = self.engine, self.table
        frontier, self._frontier = self._frontier, Frontier()
        fingerprints = table.fingerprints
        base, self._base = self._base, len(table)
        successors = engine.successors
        for number, state in enumerate(frontier, base):
            fingerprint = fingerprints[number]
            found = successors(state, fingerprint)
            link = number * self._workers + self._me
            if engine.flaws:
                for flaw in engine.flaws:
                    level.note(Finding(depth + 1, fingerprint, link, flaw))
            elif not found:
                if engine.cut:
                    level.cut += 1
                else:
                    level.quiet += 1
                    end = engine.flaw_at_end(state)
                    if end is not None:
                        level.note(Finding(depth, fingerprint, link, end))
            level.transitions += len(found)
            if self.outboxes:
                found = self._divide(found, link)
            self._admit(found, link, depth + 1, level)
        return level

    def _divide(self, found: list[Successor], link: int) -> list[Successor]:
        own = []
        for item in found:
            owner = item[2] % self._workers
            if owner == self._me:
                own.append(item)
            else:
                self.outboxes[owner].put(item[1], item[2], link)
        return own

    def receive(
        self,
        fingerprints: Sequence[int],
        links: Sequence[int],
        states_at: Callable[[Sequence[int]], Iterable[tuple[int, ...]]],
        length: int,
        level: Level,
    ) -> None:
        """Take in states that another process found.

        Args:
            fingerprints: of the states.
            links: to their parents.
            states_at: gives the states at some positions, in this process's numbers.
            length: steps from the start to them.
            level: takes what is found.
        """
        table, push, flaw_in = self.table, self._frontier.push, self.engine.flaw_in
        new = table.add_linked(fingerprints, links)
        level.new += len(new)
        for number, state in enumerate(states_at(new), len(table) - len(new)):
            push(state)
            flaw = flaw_in(state)
            if flaw is not None:
                own = number * self._workers + self._me
                level.note(Finding(length, table.fingerprints[number], own, flaw))

    def parent(self, link: int) -> tuple[int, int]:
        """Fingerprint of a state that this process owns, and the link to its parent."""
        number = link // self._workers
        return self.table.fingerprints[number], self.table.parents[number]


def retrace(model: AnyModel, way: Sequence[int], flaw: Flaw) -> Violation:
    """Find the steps of a trace again, from the fingerprints of the states on the way.

    Args:
        model: the model.
        way: fingerprints of the states after the start, in order.
        flaw: what is wrong at the end of it.
    """
    engine = Engine(model)
    steps: list[Step] = []
    if way or flaw.action is not None:
        state, fingerprint = engine.initial()
        for target in way:
            found = engine.successors(state, fingerprint)
            action = next(action for action, _, reached in found if reached == target)
            step, state, fingerprint = engine.explain(state, fingerprint, action)
            steps.append(step)
        if flaw.action is not None:
            steps.append(engine.explain(state, fingerprint, flaw.action)[0])
    return Violation(flaw.kind, flaw.message, tuple(steps))
