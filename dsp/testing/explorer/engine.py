"""Successors of a state: what can happen, and what it leads to."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from operator import itemgetter
from typing import Any

from dsp.core.machine import Tick
from dsp.errors import InvariantError
from dsp.testing.explorer.actions import Action, ActionKind, Step
from dsp.testing.explorer.canonical import Canonical, take_snapshot
from dsp.testing.explorer.components import Channel, Node, Outcome
from dsp.testing.explorer.digest import MASK64
from dsp.testing.explorer.model import AnyModel, Model
from dsp.testing.explorer.result import Kind, complaint
from dsp.testing.explorer.script import Absent, Notice, Snapshot
from dsp.testing.explorer.space import Broken, ScriptPart, Space
from dsp.testing.explorer.transition import Blocked, Transition
from dsp.testing.explorer.turns import turns_of
from dsp.testing.explorer.view import View

__all__ = ["Engine", "Flaw", "Successor"]

Successor = tuple[Action, tuple[int, ...], int]
"""What happened, the state after it, that state's fingerprint."""


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault that a search came upon, before its trace is known.

    Attributes:
        kind: what sort.
        message: what exactly.
        action: the step that cannot be completed, or None if the state itself is at fault.
    """

    kind: Kind
    message: str
    action: Action | None = None


class Engine:
    """Expands states of one model, fast where steps are plain, in full where they are not.

    Attributes:
        flaws: faults met by the last call of ``successors``.
        cut: whether the last call left out a time-out beyond the budget.
        blocked: whether the last call left out a step that a full channel holds up.
    """

    def __init__(self, model: AnyModel) -> None:
        self.space = Space(model)
        self.model = model
        self.flaws: list[Flaw] = []
        self.cut = False
        self.blocked = False
        kind = type(model)
        self._canonical = Canonical(self.space) if kind.canonical is not Model.canonical else None
        self._invariant = (
            self.space.remember(_faultless(model.invariant))
            if kind.invariant is not Model.invariant
            else None
        )
        self._quiet = self.space.remember(_faultless(model.quiet))
        self._finished = self.space.remember(model.finished)
        self._known_channels: list[Channel] | None = None
        self._contents: Callable[[tuple[int, ...]], tuple[int, ...]] = tuple
        self._turns = [*turns_of(self.space)]
        self._keeps = model.absent is Absent.KEEP

    def initial(self) -> tuple[tuple[int, ...], int]:
        """The state at the start, and its fingerprint.

        Raises:
            Broken: a machine's own invariant does not hold at the start.
        """
        state = self.space.initial()
        fingerprint = sum(node.digests[state[node.slot]] for node in self.space.nodes) & MASK64
        if self._canonical is not None:
            return self._canonical(state, fingerprint)
        return state, fingerprint

    # -- successors ---------------------------------------------------------------------------

    def successors(self, state: tuple[int, ...], fingerprint: int) -> list[Successor]:
        """Every step that is possible in a state, in an order that is always the same."""
        space = self.space
        if self.flaws:
            self.flaws = []
        self.cut = self.blocked = False
        if len(state) < space.width:
            state = (*state, *([0] * (space.width - len(state))))
        found: list[Successor] = []
        # Components that appear from here on are replaced lists, and cannot hold anything here.
        channels, nodes = space.channels, space.nodes
        for turn in self._turns:
            if turn.slot is None:
                self._script(turn.parts[0], state, fingerprint, found)
            elif state[turn.slot]:
                for part in turn.enabled(state):
                    self._stimulate(part, 0, state, fingerprint, found)
        if channels is not self._known_channels:
            self._known_channels = channels
            # Most channels are empty: they are passed over without a look at each.
            slots = [channel.slot for channel in channels]
            self._contents = itemgetter(*slots, 0, 0)
        for channel in compress(channels, self._contents(state)):
            content = state[channel.slot]
            node = channel.node
            local = state[node.slot]
            if not local:
                continue
            if channel.lane is None:
                self._local_event(channel, state, fingerprint, found)
                continue
            head = channel.heads[content]
            outcome = channel.memory.get(local << 32 | head)
            if outcome is None:
                outcome = space.react(node, local, channel.event(head))
                channel.remember(local, head, outcome)
            digests = channel.digests
            tail = channel.tails[content]
            change = digests[tail] - digests[content]
            self._step(
                channel.deliver,
                state,
                fingerprint + change,
                channel.slot,
                tail,
                node,
                outcome,
                found,
                fingerprint,
            )
            if channel.faulty:
                self._faults(channel, state, fingerprint, found)
        for node in nodes:
            if node.deadlines[state[node.slot]] is not None:
                self._tick(node, state, fingerprint, found)
        if self._canonical is not None:
            canonical = self._canonical
            found = [(action, *canonical(after, total)) for action, after, total in found]
        return found

    def _step(
        self,
        action: Action,
        state: tuple[int, ...],
        total: int,
        slot: int,
        value: int,
        node: Node,
        outcome: Outcome,
        found: list[Successor],
        fingerprint: int,
    ) -> None:
        """Change one cell and one machine and send frames; the long way if there is more to do."""
        after, sends, detail = outcome
        if detail is None:
            cells = [*state]
            width = self.space.width
            if len(cells) < width:
                cells.extend([0] * (width - len(cells)))
            cells[slot] = value
            digests = node.digests
            total += digests[after] - digests[cells[node.slot]]
            cells[node.slot] = after
            for channel, message in sends:
                if not cells[channel.node.slot] and not self._keeps:
                    break
                content = cells[channel.slot]
                longer = channel.appended.get(content << 32 | message)
                if longer is None:
                    longer = channel.append(content, message)
                if longer < 0:
                    break
                digests = channel.digests
                total += digests[longer] - digests[content]
                cells[channel.slot] = longer
            else:
                found.append((action, tuple(cells), total & MASK64))
                return
        self._perform(action, state, fingerprint, found)

    def _script(
        self,
        part: ScriptPart,
        state: tuple[int, ...],
        fingerprint: int,
        found: list[Successor],
    ) -> None:
        position = state[part.slot]
        if position == len(part.drives):
            return
        drive = part.drives[position]
        if drive.node is not None and not state[drive.node.slot]:
            return
        if drive.guard is None or drive.guard(state):
            self._stimulate(part, position, state, fingerprint, found)

    def _stimulate(
        self,
        part: ScriptPart,
        position: int,
        state: tuple[int, ...],
        fingerprint: int,
        found: list[Successor],
    ) -> None:
        """Do a step of a script that is possible."""
        drive = part.drives[position]
        node = drive.node
        if node is None or drive.stimulus.act is not None:
            self._perform(part.action, state, fingerprint, found)
            return
        local = state[node.slot]
        outcome = drive.memory.get(local)
        if outcome is None:
            outcome = drive.memory[local] = self.space.react(node, local, drive.stimulus.event)
        after = part.after(position)
        digests = part.counter.digests
        total = fingerprint + digests[after] - digests[position]
        self._step(part.action, state, total, part.slot, after, node, outcome, found, fingerprint)

    def _tick(
        self, node: Node, state: tuple[int, ...], fingerprint: int, found: list[Successor]
    ) -> None:
        local = state[node.slot]
        outcome = node.ticks.get(local)
        budget = self.space.tick_budget
        if budget is not None and state[budget.slot] + 1 >= len(budget.digests):
            self.cut = True
            return
        if outcome is None:
            outcome = node.ticks[local] = self.space.react(node, local, Tick(), tick=True)
        if budget is None:
            # Cell 0 is written with what it holds: a tick without a budget changes no other cell.
            self._step(
                node.tick, state, fingerprint, 0, state[0], node, outcome, found, fingerprint
            )
            return
        used = state[budget.slot]
        total = fingerprint + budget.digests[used + 1] - budget.digests[used]
        self._step(
            node.tick, state, total, budget.slot, used + 1, node, outcome, found, fingerprint
        )

    def _faults(
        self, channel: Channel, state: tuple[int, ...], fingerprint: int, found: list[Successor]
    ) -> None:
        for kind, reach in self.space.faults_of(channel, state):
            for index in range(*reach):
                self._perform(channel.action(kind, index), state, fingerprint, found)

    def _local_event(
        self, channel: Channel, state: tuple[int, ...], fingerprint: int, found: list[Successor]
    ) -> None:
        if channel.sender == channel.receiver:
            self._perform(channel.action(ActionKind.POSTED), state, fingerprint, found)
            return
        if self.model.notice is Notice.LAST:
            before = self.space.channels_between(channel.sender, channel.receiver)
            if any(state[other.slot] for other in before if other.slot < len(state)):
                return
        self._perform(channel.action(ActionKind.NOTICE), state, fingerprint, found)

    def _perform(
        self, action: Action, state: tuple[int, ...], fingerprint: int, found: list[Successor]
    ) -> None:
        """The long way."""
        transition = Transition(self.space, state, fingerprint)
        try:
            transition.act(action)
        except Blocked:
            self.blocked = True
        except Broken as broken:
            self.flaws.append(Flaw(broken.kind, broken.message, action))
        else:
            found.append((action, tuple(transition.cells), transition.fingerprint))

    # -- checks -------------------------------------------------------------------------------

    def flaw_in(self, state: tuple[int, ...]) -> Flaw | None:
        """What the model's invariant has against a state."""
        if self._invariant is None:
            return None
        message = self._invariant(state)
        return None if message is None else Flaw(Kind.INVARIANT, message)

    def flaw_at_end(self, state: tuple[int, ...]) -> Flaw | None:
        """What is wrong with a state in which nothing more can happen.

        To be called after ``successors`` gave none, and only if ``cut`` is false.
        """
        if self.blocked:
            return Flaw(Kind.DEADLOCK, "every step waits for room in a full channel")
        state = (*state, *([0] * (self.space.width - len(state))))
        gone = self.space.roster.values[state[self.space.roster.slot]][1]
        for part in self.space.scripts:
            position = state[part.slot]
            if part.script.endless or position == len(part.drives):
                continue
            stimulus = part.drives[position].stimulus
            if stimulus.node is None or stimulus.node not in gone:
                text = f"script {part.script.name!r} can never take its step {position + 1}"
                return Flaw(Kind.DEADLOCK, f"{text}: {stimulus.label}")
        if not self._finished(state):
            return Flaw(Kind.DEADLOCK, "nothing can happen any more, and it is not finished")
        message = self._quiet(state)
        return None if message is None else Flaw(Kind.QUIET, message)

    # -- for traces ---------------------------------------------------------------------------

    def explain(
        self, state: tuple[int, ...], fingerprint: int, action: Action
    ) -> tuple[Step, tuple[int, ...], int]:
        """Take one step and write it down.

        Returns:
            The step, the state after it and its fingerprint; the same state if the step breaks.
        """
        transition = Transition(self.space, state, fingerprint)
        try:
            transition.act(action)
        except (Broken, Blocked):
            return transition.step(action), state, fingerprint
        after, total = tuple(transition.cells), transition.fingerprint
        if self._canonical is not None:
            after, total = self._canonical(after, total)
        return transition.step(action), after, total

    def snapshot(self, state: tuple[int, ...]) -> Snapshot:
        """A state in plain values."""
        return take_snapshot(self.space, state)


def _faultless(check: Callable[[View[Any]], None]) -> Callable[[View[Any]], str | None]:
    """Turn a check that raises into one that returns its complaint, which can be remembered."""

    def run(view: View[Any]) -> str | None:
        try:
            check(view)
        except (InvariantError, AssertionError) as exc:
            return complaint(exc)
        return None

    return run
