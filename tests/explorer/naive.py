"""An explorer without any of the explorer's tricks, to count states independently."""

from collections import deque
from collections.abc import Hashable

from dsp.core.machine import Received, Send, Tick
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer import Run
from dsp.testing.explorer.model import AnyModel

__all__ = ["count"]

Locals = tuple[tuple[NodeId, Hashable, float], ...]
Channels = tuple[tuple[tuple[NodeId, NodeId, Lane], tuple[Hashable, ...]], ...]
Budget = tuple[tuple[str, int], ...]
State = tuple[Locals, Channels, tuple[int, ...], Hashable, Budget]


def count(model: AnyModel) -> tuple[int, int, int]:
    """States, transitions and quiet states of a model with a fixed set of nodes.

    Guards of scripts must be ``None`` or read one machine, that of the stimulus.
    """
    scripts = model.scripts()
    machines = dict(model.machines())
    first: State = (
        tuple((name, machine.state(), 0.0) for name, machine in machines.items()),
        (),
        (0,) * len(scripts),
        model.ghost(),
        (),
    )

    class Glance:
        def __init__(self, state: State) -> None:
            self.states = {name: value for name, value, _ in state[0]}

        def machine(self, name: NodeId) -> object:
            machines[name].restore(self.states[name])
            return machines[name]

    def take(state: State, name: NodeId, event: object, *, tick: bool = False) -> State:
        locals_, channels, positions, ghost, budget = state
        queues = {key: list(frames) for key, frames in channels}
        after = []
        for node, value, clock in locals_:
            if node != name:
                after.append((node, value, clock))
                continue
            machine = machines[node]
            machine.restore(value)
            now = machine.next_deadline() if tick else clock
            for effect in machine.handle(event, now):
                if isinstance(effect, Send):
                    queues.setdefault((node, effect.to, effect.lane), []).append(effect.message)
                else:
                    run = Run(ghost)
                    model.on_effect(run, node, effect)
                    ghost = run.ghost
            value = machine.state()
            if tick and (rebased := model.rebase(node, value, now)) is not None:
                value, now = rebased, 0.0
            after.append((node, value, now))
        return (tuple(after), pack(queues), positions, ghost, budget)

    def pack(queues: dict[tuple[NodeId, NodeId, Lane], list[Hashable]]) -> Channels:
        rows = [(key, tuple(frames)) for key, frames in queues.items() if frames]
        return tuple(sorted(rows, key=lambda row: (row[0][0], row[0][1], row[0][2].value)))

    def spend(state: State, what: str, limit: int | None) -> State | None:
        spent = dict(state[4])
        if limit is None:
            return state
        if spent.get(what, 0) >= limit:
            return None
        spent[what] = spent.get(what, 0) + 1
        return (*state[:4], tuple(sorted(spent.items())))

    def without(state: State, key: tuple[NodeId, NodeId, Lane], index: int) -> State:
        queues = {other: list(frames) for other, frames in state[1]}
        del queues[key][index]
        return (state[0], pack(queues), *state[2:])

    def successors(state: State) -> list[State]:
        found = []
        for number, script in enumerate(scripts):
            position = state[2][number]
            if position == len(script.steps):
                continue
            step = script.steps[position]
            if step.when is not None and not step.when(Glance(state)):  # type: ignore[arg-type]
                continue
            following = position + 1
            if script.endless and following == len(script.steps):
                following = 0
            assert step.node is not None
            positions = (*state[2][:number], following, *state[2][number + 1 :])
            found.append(take((*state[:2], positions, *state[3:]), step.node, step.event))
        for key, frames in state[1]:
            sender, receiver, lane = key
            rules = model.lanes.get(lane)
            events = [Received(sender, frame, lane) for frame in frames]
            found.append(take(without(state, key, 0), receiver, events[0]))
            if rules is None:
                continue
            if paid := spend(state, f"lose {lane}", rules.losses):
                found.append(without(paid, key, 0))
            if paid := spend(state, f"double {lane}", rules.duplicates):
                found.append(take(paid, receiver, events[0]))
            if paid := spend(state, f"overtake {lane}", rules.overtakings):
                found += [
                    take(without(paid, key, index), receiver, events[index])
                    for index in range(1, len(frames))
                ]
        for name, value, _ in state[0]:
            machines[name].restore(value)
            if machines[name].next_deadline() is not None and (
                paid := spend(state, "tick", model.max_ticks)
            ):
                found.append(take(paid, name, Tick(), tick=True))
        return found

    seen = {first}
    waiting = deque([first])
    transitions = quiet = 0
    while waiting:
        found = successors(waiting.popleft())
        transitions += len(found)
        quiet += not found
        for state in found:
            if state not in seen:
                seen.add(state)
                waiting.append(state)
    return len(seen), transitions, quiet
