"""The components of a model's states, and what machines and hooks do to them, remembered."""

from collections.abc import Callable, Hashable
from typing import Any, Final, cast

from dsp.core.machine import Machine, Send
from dsp.core.types import Lane, NodeId
from dsp.errors import ConfigError, InvariantError
from dsp.testing.explorer.actions import Action, ActionKind
from dsp.testing.explorer.components import Channel, Counter, Detail, Node, Outcome, Values
from dsp.testing.explorer.model import AnyModel, Model
from dsp.testing.explorer.result import Kind, complaint
from dsp.testing.explorer.run import Order, Run
from dsp.testing.explorer.script import LaneRules, Script, Stimulus
from dsp.testing.explorer.view import Remembered, View

__all__ = ["Space", "ScriptPart", "Drive", "Broken", "Roster"]

Roster = tuple[tuple[NodeId, ...], tuple[NodeId, ...]]
"""Nodes that exist, in order of appearance, and nodes that are gone, sorted."""

_MEMORY = 1_000_000
_RELIABLE = LaneRules()


def _channel_key(channel: Channel) -> tuple[str, str, str]:
    return (channel.sender, channel.receiver, "" if channel.lane is None else channel.lane.value)


class Broken(Exception):
    """Carries a violation from where it is seen to the action that is under way."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Drive:
    """One stimulus of a script, with the outcomes it had."""

    __slots__ = ("guard", "memory", "node", "stimulus")

    def __init__(self, stimulus: Stimulus, space: "Space") -> None:
        self.stimulus = stimulus
        self.node = None if stimulus.node is None else space.node(stimulus.node)
        self.guard = None if stimulus.when is None else space.remember(stimulus.when)
        self.memory: dict[int, Outcome] = {}


class ScriptPart:
    """A script: its component is the number of steps done."""

    __slots__ = ("action", "counter", "drives", "script", "slot")

    def __init__(self, script: Script, slot: int, space: "Space") -> None:
        self.script = script
        self.counter = Counter(slot, ("script", script.name), len(script.steps))
        self.slot = slot
        self.drives = [Drive(stimulus, space) for stimulus in script.steps]
        self.action: Final = Action(ActionKind.SCRIPT, script.name)

    def after(self, position: int) -> int:
        """The position after doing the step at ``position``."""
        following = position + 1
        return 0 if self.script.endless and following == len(self.drives) else following


class Space:
    """All components of a model, numbered as they appear, and the memory of what happens in them.

    Args:
        model: what to explore.
    """

    def __init__(self, model: AnyModel) -> None:
        self.model = model
        self.width = 0
        self.channels: list[Channel] = []
        self.nodes: list[Node] = []
        self.remembered: list[Remembered[Any]] = []
        self._node_by_name: dict[NodeId, Node] = {}
        self._channel_by_key: dict[tuple[NodeId, NodeId, Lane | None], Channel] = {}
        self._hooks: dict[tuple[Hashable, ...], tuple[int, tuple[Order, ...]]] = {}
        self.hears_effects = type(model).on_effect is not Model.on_effect
        self.hears_drops = type(model).on_undeliverable is not Model.on_undeliverable
        self.rebases = type(model).rebase is not Model.rebase
        machines = model.machines()
        first: Roster = (tuple(machines), ())
        self.roster: Values[Roster] = Values(self._allot(), "roster", first)
        self.ghost: Values[Hashable] = Values(self._allot(), "ghost", model.ghost())
        self.budgets: dict[tuple[Lane, ActionKind], Counter] = {}
        self.rules = {lane: model.lanes.get(lane, _RELIABLE) for lane in Lane}
        for lane, rules in self.rules.items():
            for kind, limit in (
                (ActionKind.LOSE, rules.losses),
                (ActionKind.DUPLICATE, rules.duplicates),
                (ActionKind.OVERTAKE, rules.overtakings),
            ):
                if limit:
                    counter = Counter(self._allot(), ("budget", lane, kind), limit)
                    self.budgets[lane, kind] = counter
        self.tick_budget: Counter | None = None
        if model.max_ticks is not None:
            self.tick_budget = Counter(self._allot(), "ticks", model.max_ticks)
        for name in machines:
            self.node(name)
        self.scripts: list[ScriptPart] = []
        for script in model.scripts():
            if not script.steps or script.name in {part.script.name for part in self.scripts}:
                raise ConfigError(f"script {script.name!r} is empty or not the only one so named")
            self.scripts.append(ScriptPart(script, self._allot(), self))
        # Taken now: these machines serve as scratch ones, and are in other states later.
        self._first = {name: (machine, machine.state()) for name, machine in machines.items()}

    def _allot(self) -> int:
        self.width += 1
        return self.width - 1

    def initial(self) -> tuple[int, ...]:
        """The state at the start. Its fingerprint is the sum of its digests.

        Raises:
            Broken: a machine's own invariant does not hold at the start.
        """
        state = [0] * self.width
        for name, (machine, first) in self._first.items():
            node = self.node(name)
            state[node.slot] = self.adopt(node, machine, first, None)
        return tuple(state)

    def counters(self) -> list[Counter]:
        """The components that are numbers by themselves."""
        scripts = [part.counter for part in self.scripts]
        ticks = [] if self.tick_budget is None else [self.tick_budget]
        return [*scripts, *self.budgets.values(), *ticks]

    def node(self, name: NodeId) -> Node:
        """The component of a node, which need not exist (yet)."""
        part = self._node_by_name.get(name)
        if part is None:
            part = self._node_by_name[name] = Node(self._allot(), name)
            self.nodes = sorted([*self.nodes, part], key=lambda node: node.name)
        return part

    def channel(self, sender: NodeId, receiver: NodeId, lane: Lane | None) -> Channel:
        """The component of a channel."""
        key = (sender, receiver, lane)
        part = self._channel_by_key.get(key)
        if part is None:
            rules = _RELIABLE if lane is None else self.rules[lane]
            node = self.node(receiver)
            part = Channel(self._allot(), sender, lane, node, rules.capacity)
            part.faulty = not (rules.losses == rules.duplicates == rules.overtakings == 0)
            self._channel_by_key[key] = part
            # A new list, because the old one may be under iteration; sorted, because the order of
            # successors must not depend on what was explored before.
            self.channels = sorted([*self.channels, part], key=_channel_key)
            for predicate in self.remembered:
                predicate.forget_broad()
        return part

    def channels_between(self, sender: NodeId, receiver: NodeId) -> list[Channel]:
        """The lanes from one node to another that were ever used."""
        keys = [(sender, receiver, lane) for lane in Lane]
        return [self._channel_by_key[key] for key in keys if key in self._channel_by_key]

    def channels_to(self, node: Node) -> list[Channel]:
        """The channels that end at a node, in an order that all worker processes share."""
        return [channel for channel in self.channels if channel.node is node]

    def faults_of(
        self, channel: Channel, state: tuple[int, ...]
    ) -> list[tuple[ActionKind, tuple[int, int]]]:
        """What may befall a channel that is not empty: kinds, each with a range of positions."""
        lane = channel.lane
        if lane is None:
            return []
        rules = self.rules[lane]
        length = len(channel.contents[state[channel.slot]])
        possible = []
        for kind, limit, reach in (
            (ActionKind.LOSE, rules.losses, (0, 1)),
            (ActionKind.DUPLICATE, rules.duplicates, (0, 1)),
            (ActionKind.OVERTAKE, rules.overtakings, (1, length)),
        ):
            if limit is None or (limit and state[self.budgets[lane, kind].slot] < limit):
                possible.append((kind, reach))
        return possible

    def script(self, name: str) -> ScriptPart:
        """The component of a script.

        Raises:
            KeyError: the model has no such script.
        """
        for part in self.scripts:
            if part.script.name == name:
                return part
        raise KeyError(name)

    def remember(self, predicate: Callable[[View[Any]], Any]) -> Remembered[Any]:
        """A predicate with a memory of its answers in this space."""
        memory: Remembered[Any] = Remembered(predicate, self)
        self.remembered.append(memory)
        return memory

    def adopt(
        self,
        node: Node,
        machine: Machine[object, object],
        state: Hashable,
        variant: Hashable,
    ) -> int:
        """Take a fresh machine for a node, and give its local state's number.

        Raises:
            Broken: the machine's own invariant does not hold.
        """
        known = node.prototypes.setdefault(variant, machine)
        known.restore(state)
        try:
            known.check_invariants()
        except (InvariantError, AssertionError) as exc:
            raise Broken(Kind.INVARIANT, f"{node.name}: {complaint(exc)}") from exc
        return node.number((variant, state, 0.0), known)

    def react(self, node: Node, local: int, event: Hashable, *, tick: bool = False) -> Outcome:
        """Have a machine take an event, for real. Callers remember what comes out."""
        variant, _, clock = node.locals[local]
        machine = node.machine_in(local)
        now = clock
        if tick:
            now = max(clock, cast("float", node.deadlines[local]))
        try:
            effects = tuple(machine.handle(event, now))
            machine.check_invariants()
        except (InvariantError, AssertionError) as exc:
            return local, (), Detail((), (Kind.INVARIANT, f"{node.name}: {complaint(exc)}"))
        except Exception as exc:  # whatever a machine raises is what we look for
            text = f"{node.name} on {event!r}: {type(exc).__name__}: {exc}"
            return local, (), Detail((), (Kind.EXCEPTION, text))
        state = machine.state()
        if tick and self.rebases:
            rebased = self.model.rebase(node.name, state, now)
            if rebased is not None:
                state, now = rebased, 0.0
                machine.restore(state)
        after = node.number((variant, state, now), machine)
        sends = []
        plain = True
        for effect in effects:
            if isinstance(effect, Send):
                channel = self.channel(node.name, effect.to, effect.lane)
                sends.append((channel, channel.message(effect.message)))
            else:
                plain = plain and not self.hears_effects
        return after, tuple(sends), None if plain else Detail(effects, None)

    def fed(self, node: Node, local: int, event: Hashable) -> Outcome:
        """Like ``react`` for a local event, from memory if possible."""
        outcome = node.fed.get((local, event))
        if outcome is None:
            outcome = node.fed[local, event] = self.react(node, local, event)
        return outcome

    def hook(
        self, key: tuple[Hashable, ...], ghost: int, act: Callable[[Run], None]
    ) -> tuple[int, tuple[Order, ...]]:
        """Run a hook of the model, or remember what it did with the same arguments.

        Args:
            key: the arguments.
            ghost: number of the ghost state.
            act: calls the hook.

        Returns:
            The number of the ghost state after it, and its orders.
        """
        known = self._hooks.get((ghost, *key))
        if known is None:
            run = Run(self.ghost.values[ghost])
            try:
                act(run)
            except (InvariantError, AssertionError) as exc:
                run.violate(complaint(exc))
            if len(self._hooks) >= _MEMORY:
                self._hooks.clear()
            known = self.ghost.number(run.ghost), tuple(run.orders)
            self._hooks[ghost, *key] = known
        return known
