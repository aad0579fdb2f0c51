"""States in plain values, there and back, for traces and for models that choose representatives."""

from typing import TYPE_CHECKING

from dsp.errors import ConfigError
from dsp.testing.explorer.digest import MASK64
from dsp.testing.explorer.script import Snapshot
from dsp.testing.explorer.space import Space

if TYPE_CHECKING:
    from collections.abc import Hashable

    from dsp.core.types import Lane, NodeId
    from dsp.testing.explorer.transition import Component

__all__ = ["Canonical", "take_snapshot"]

_MEMORY = 200_000


def take_snapshot(space: Space, state: tuple[int, ...]) -> Snapshot:
    """A state in plain values."""
    state = (*state, *([0] * (space.width - len(state))))
    alive, gone = space.roster.values[state[space.roster.slot]]
    states: dict[NodeId, Hashable] = {}
    for name in alive:
        node = space.node(name)
        states[name] = node.states[state[node.slot]]
    channels: dict[tuple[NodeId, NodeId, Lane | None], tuple[Hashable, ...]] = {}
    for channel in space.channels:
        if content := state[channel.slot]:
            key = (channel.sender, channel.receiver, channel.lane)
            channels[key] = channel.messages(content)
    scripts = {part.script.name: state[part.slot] for part in space.scripts}
    return Snapshot(states, channels, space.ghost.values[state[space.ghost.slot]], scripts, gone)


class Canonical:
    """Replaces states by the representatives that ``Model.canonical`` chooses."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._known: dict[int, tuple[tuple[int, ...], int]] = {}

    def __call__(self, state: tuple[int, ...], fingerprint: int) -> tuple[tuple[int, ...], int]:
        """The representative and its fingerprint."""
        known = self._known.get(fingerprint)
        if known is None:
            if len(self._known) >= _MEMORY:
                self._known.clear()
            known = self._known[fingerprint] = self._find(state, fingerprint)
        return known

    def _find(self, state: tuple[int, ...], fingerprint: int) -> tuple[tuple[int, ...], int]:
        space = self._space
        before = take_snapshot(space, state)
        after = space.model.canonical(before)
        if after == before:
            return state, fingerprint
        if list(after.states) != list(before.states):
            raise ConfigError("Model.canonical must keep the nodes and their order")
        values: dict[int, int] = {channel.slot: 0 for channel in space.channels}
        for (sender, receiver, lane), messages in after.channels.items():
            channel = space.channel(sender, receiver, lane)
            content = channel.number(tuple(channel.message(message) for message in messages))
            values[channel.slot] = content
        for name, value in after.states.items():
            node = space.node(name)
            variant, _, clock = node.locals[state[node.slot]]
            machine = node.prototypes[variant]
            machine.restore(value)
            values[node.slot] = node.number((variant, value, clock), machine)
        values[space.ghost.slot] = space.ghost.number(after.ghost)
        cells = [*state, *([0] * (space.width - len(state)))]
        total = fingerprint
        components: list[Component] = [*space.channels, *space.nodes, space.ghost]
        for component in components:
            slot = component.slot
            value = values.get(slot, cells[slot])
            total += component.digests[value] - component.digests[cells[slot]]
            cells[slot] = value
        return tuple(cells), total & MASK64
