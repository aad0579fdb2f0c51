"""One step in full generality: effects for the model, nodes that come and go, fed events.

The engine has short cuts for steps that do nothing but change one machine and send frames. This is
the long way, which every step can take, and which also writes down what happens for a trace.
"""

from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Protocol

from dsp.core.machine import PeerLost, Send, Tick
from dsp.core.types import NodeId
from dsp.testing.explorer.actions import Action, ActionKind, Reaction, Step
from dsp.testing.explorer.components import Channel, Counter, Node, Outcome
from dsp.testing.explorer.digest import MASK64
from dsp.testing.explorer.result import Kind
from dsp.testing.explorer.run import Feed, Order, Remove, Run, Spawn, Violate
from dsp.testing.explorer.script import Absent, Notice
from dsp.testing.explorer.space import Broken, Drive, Space

__all__ = ["Transition", "Blocked", "Component"]


_WORDS = {
    ActionKind.DELIVER: "{node} receives {message!r} from {peer} on {lane}",
    ActionKind.LOSE: "{message!r} from {peer} to {node} on {lane} is lost",
    ActionKind.DUPLICATE: "{node} receives a copy of {message!r} from {peer} on {lane}",
    ActionKind.OVERTAKE: "{node} receives {message!r} from {peer} on {lane}, out of order",
    ActionKind.NOTICE: "{node} learns that {peer} is lost",
    ActionKind.POSTED: "{node} takes {message!r}, posted before",
}


class Blocked(Exception):
    """The step would overfill a bounded channel, so it cannot happen now."""


class Component(Protocol):
    """Anything with a place in a state and digests of its values."""

    @property
    def slot(self) -> int: ...

    @property
    def digests(self) -> list[int]: ...


class Transition:
    """A state on its way to the next one.

    Args:
        space: the components.
        state: where the step starts.
        fingerprint: of that state.
    """

    __slots__ = ("_queue", "cells", "fingerprint", "notes", "reactions", "space", "what")

    def __init__(self, space: Space, state: tuple[int, ...], fingerprint: int) -> None:
        self.space = space
        self.cells = [*state, *([0] * (space.width - len(state)))]
        self.fingerprint = fingerprint
        self.what = ""
        self.reactions: list[Reaction] = []
        self.notes: list[str] = []
        self._queue: deque[tuple[Node, Hashable]] = deque()

    def _get(self, component: Component) -> int:
        cells = self.cells
        if component.slot >= len(cells):
            cells.extend([0] * (self.space.width - len(cells)))
        return cells[component.slot]

    def _set(self, component: Component, value: int) -> None:
        digests = component.digests
        change = digests[value] - digests[self._get(component)]
        self.fingerprint = (self.fingerprint + change) & MASK64
        self.cells[component.slot] = value

    def _spend(self, budget: Counter | None) -> None:
        if budget is not None:
            self._set(budget, self._get(budget) + 1)

    def act(self, action: Action) -> None:
        """Do an action that is possible here.

        Raises:
            Broken: the step breaks a rule.
            Blocked: the step has to wait for room in a channel.
        """
        space = self.space
        if action.kind is ActionKind.SCRIPT:
            part = space.script(action.subject)
            position = self._get(part.counter)
            drive = part.drives[position]
            self.what = drive.stimulus.label
            self._stimulate(part.counter, part.after(position), drive)
        elif action.kind is ActionKind.TICK:
            self.what = f"{action.subject}: its time-out fires"
            self._tick(space.node(NodeId(action.subject)))
        else:
            assert action.peer is not None
            self._receive(space.channel(action.peer, NodeId(action.subject), action.lane), action)

    def step(self, action: Action) -> Step:
        """What happened, for a trace."""
        return Step(action, self.what, tuple(self.reactions), tuple(self.notes))

    # -- what happens -------------------------------------------------------------------------

    def _receive(self, channel: Channel, action: Action) -> None:
        kind, index = action.kind, action.index
        content = channel.contents[self._get(channel)]
        event = channel.event(content[index])
        message = channel.message_values[content[index]]
        self.what = _WORDS[kind].format(
            node=channel.receiver,
            peer=channel.sender,
            lane=channel.lane and channel.lane.name,
            message=message,
        )
        if kind in (ActionKind.LOSE, ActionKind.DUPLICATE, ActionKind.OVERTAKE):
            assert channel.lane is not None
            self._spend(self.space.budgets.get((channel.lane, kind)))
        if kind is not ActionKind.DUPLICATE:
            rest = (*content[:index], *content[index + 1 :])
            self._set(channel, channel.number(rest))
        if kind is ActionKind.LOSE:
            return
        if kind is ActionKind.NOTICE and self.space.model.notice is Notice.CUT:
            for cut in self.space.channels_between(channel.sender, channel.receiver):
                self._discard(cut, "is lost with its sender")
        node = channel.node
        key = self._get(node) << 32 | content[index]
        outcome = channel.memory.get(key)
        if outcome is None:
            outcome = self.space.react(node, self._get(node), event)
            channel.remember(self._get(node), content[index], outcome)
        self._finish(node, event, outcome)

    def _tick(self, node: Node) -> None:
        self._spend(self.space.tick_budget)
        local = self._get(node)
        outcome = node.ticks.get(local)
        if outcome is None:
            outcome = node.ticks[local] = self.space.react(node, local, Tick(), tick=True)
        self._finish(node, Tick(), outcome)

    def _stimulate(self, script: Counter, position: int, drive: Drive) -> None:
        self._set(script, position)
        stimulus = drive.stimulus
        if stimulus.act is None:
            assert drive.node is not None
            local = self._get(drive.node)
            outcome = drive.memory.get(local)
            if outcome is None:
                outcome = self.space.react(drive.node, local, stimulus.event)
                drive.memory[local] = outcome
            self._finish(drive.node, stimulus.event, outcome)
            return
        self._call(("stimulus", script.slot, stimulus), stimulus.act)
        self._drain()

    # -- consequences -------------------------------------------------------------------------

    def _finish(self, node: Node, event: Hashable, outcome: Outcome) -> None:
        self._take(node, event, outcome)
        self._drain()

    def _drain(self) -> None:
        while self._queue:
            node, event = self._queue.popleft()
            local = self._get(node)
            if not local:
                raise Broken(Kind.ABSENT, f"{event!r} is fed to {node.name}, which does not exist")
            self._take(node, event, self.space.fed(node, local, event))

    def _take(self, node: Node, event: Hashable, outcome: Outcome) -> None:
        local, sends, detail = outcome
        if detail is not None and detail.error is not None:
            self.reactions.append(Reaction(node.name, event, ()))
            raise Broken(*detail.error)
        self._set(node, local)
        if detail is None:
            effects: list[object] = [
                Send(channel.receiver, channel.message_values[message], channel.lane)
                for channel, message in sends
                if channel.lane is not None
            ]
            self.reactions.append(Reaction(node.name, event, tuple(effects)))
            for channel, message in sends:
                self._send(channel, message)
            return
        self.reactions.append(Reaction(node.name, event, detail.effects))
        frames = iter(sends)
        for effect in detail.effects:
            if isinstance(effect, Send):
                self._send(*next(frames))
            else:
                hook = partial(self._on_effect, node.name, effect)
                self._call(("effect", node.name, effect), hook)

    def _on_effect(self, node: NodeId, effect: object, run: Run) -> None:
        self.space.model.on_effect(run, node, effect)

    def _call(self, key: tuple[Hashable, ...], act: Callable[[Run], None]) -> None:
        ghost, orders = self.space.hook(key, self._get(self.space.ghost), act)
        self._set(self.space.ghost, ghost)
        self._obey(orders)

    def _send(self, channel: Channel, message: int) -> None:
        absent = self.space.model.absent
        if not self._get(channel.node) and absent is not Absent.KEEP and channel.lane is not None:
            text = f"{channel.message_values[message]!r} from {channel.sender} to"
            if absent is Absent.VIOLATION:
                raise Broken(Kind.ABSENT, f"{text} {channel.receiver}, which does not exist")
            self._drop(channel, message, "has no receiver")
            return
        content = channel.append(self._get(channel), message)
        if content < 0:
            raise Blocked
        self._set(channel, content)

    def _drop(self, channel: Channel, message: int, why: str) -> None:
        value = channel.message_values[message]
        self.notes.append(f"{value!r} from {channel.sender} to {channel.receiver} {why}")
        if not self.space.hears_drops or channel.lane is None:
            return
        lane = channel.lane
        frame = (channel.sender, channel.receiver, value, lane)
        self._call(("drop", *frame), lambda run: self.space.model.on_undeliverable(run, *frame))

    def _discard(self, channel: Channel, why: str) -> None:
        messages = channel.contents[self._get(channel)]
        self._set(channel, 0)
        for message in messages:
            self._drop(channel, message, why)

    def _obey(self, orders: tuple[Order, ...]) -> None:
        for order in orders:
            match order:
                case Violate(message):
                    raise Broken(Kind.INVARIANT, message)
                case Feed(name, event, later):
                    node = self.space.node(name)
                    if later:
                        if not self._get(node):
                            text = f"{event!r} is posted to {name}, which does not exist"
                            raise Broken(Kind.ABSENT, text)
                        posted = self.space.channel(name, name, None)
                        self._send(posted, posted.message(event))
                    else:
                        self._queue.append((node, event))
                case Spawn():
                    self._spawn(order)
                case Remove(name, crashed):
                    self._remove(self.space.node(name), crashed=crashed)

    def _spawn(self, order: Spawn) -> None:
        node = self.space.node(order.node)
        if self._get(node):
            raise Broken(Kind.INVARIANT, f"{node.name} is created while it exists")
        self.notes.append(f"{node.name} joined")
        self._set(node, self.space.adopt(node, order.machine, order.state, order.variant))
        roster = self.space.roster
        alive, gone = roster.values[self._get(roster)]
        gone = tuple(other for other in gone if other != node.name)
        self._set(roster, roster.number(((*alive, node.name), gone)))

    def _remove(self, node: Node, *, crashed: bool) -> None:
        name = node.name
        if not self._get(node):
            raise Broken(Kind.INVARIANT, f"{name} is removed while it does not exist")
        self.notes.append(f"{name} {'crashed' if crashed else 'left'}")
        self._set(node, 0)
        roster = self.space.roster
        alive, gone = roster.values[self._get(roster)]
        alive = tuple(other for other in alive if other != name)
        self._set(roster, roster.number((alive, tuple(sorted({*gone, name})))))
        absent = self.space.model.absent
        for channel in self.space.channels_to(node):
            if not self._get(channel):
                continue
            if channel.lane is None or crashed or absent is Absent.DROP:
                self._discard(channel, "goes down with its receiver")
            elif absent is Absent.VIOLATION:
                first = channel.messages(self._get(channel))[0]
                text = f"{first!r} from {channel.sender} is in flight to {name}, which leaves"
                raise Broken(Kind.ABSENT, text)
        if crashed:
            for watcher in self.space.model.watchers(name, alive):
                notice = self.space.channel(name, watcher, None)
                self._send(notice, notice.message(PeerLost(name)))
