"""Models of two groups that enter and leave, for the explorer."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from dsp.core.machine import Cancelled, Machine, Reject
from dsp.core.types import NodeId
from dsp.mutex.events import Ack, Admit, EnterRequested, ExitRequested, MutexEffect, MutexEvent, Req
from dsp.mutex.seat import Groups, Seat
from dsp.mutex.status import Status
from dsp.mutex.two_fgme import TwoFGME
from dsp.testing.explorer import Model, Run, Script, Snapshot, Stimulus, View, tell

__all__ = ["Algorithm", "GroupsModel", "EndlessGroups", "groups_of", "names"]


class Algorithm(Machine[MutexEvent, MutexEffect], Protocol):
    """What all algorithms have in common."""

    @property
    def status(self) -> Status: ...


def names(count: int) -> tuple[NodeId, ...]:
    """The first so many names."""
    return tuple(NodeId(name) for name in "abcdefghijkl"[:count])


def groups_of(order: Sequence[NodeId], first: int) -> Groups:
    """The first so many names are group 0, the rest group 1."""
    return tuple(order[:first]), tuple(order[first:])


class GroupsModel(Model[Algorithm]):
    """Two groups whose members enter and leave so many times each.

    Args:
        groups: who takes part.
        entries: of each member.
        make: the algorithm.
        cancels: members that first make a request which they withdraw.
    """

    def __init__(
        self,
        groups: Groups,
        *,
        entries: int = 1,
        make: Callable[[Seat], Algorithm] = TwoFGME,
        cancels: Sequence[NodeId] = (),
    ) -> None:
        self.groups = groups
        self.entries = entries
        self.make = make
        self.cancels = tuple(cancels)

    def __repr__(self) -> str:
        sizes = "+".join("".join(group) for group in self.groups)
        return f"{getattr(self.make, '__name__', 'machine')} {sizes}, {self.entries} entries"

    def machines(self) -> Mapping[NodeId, Algorithm]:
        everybody = (*self.groups[0], *self.groups[1])
        return {name: self.make(Seat(name, self.groups)) for name in everybody}

    def scripts(self) -> Sequence[Script]:
        everybody = (*self.groups[0], *self.groups[1])
        scripts = []
        for name in everybody:
            steps = self.visit(name) * self.entries
            if name in self.cancels:
                steps = self.withdrawal(name) + steps
            scripts.append(Script(name, steps))
        return scripts

    def visit(self, name: NodeId) -> tuple[Stimulus, ...]:
        return (tell(name, EnterRequested(), when=idle(name)), exit_of(name))

    def withdrawal(self, name: NodeId) -> tuple[Stimulus, ...]:
        """Ask, and withdraw at any later moment; once inside that is leaving."""

        def asked(view: View[Algorithm]) -> bool:
            return view.machine(name).status is not Status.IDLE

        return (
            tell(name, EnterRequested(), when=idle(name)),
            tell(name, Cancelled(None), when=asked),
        )

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        match effect:
            case Admit():
                pass
            case Reject(sender, reason):
                run.violate(f"{node} rejects a message of {sender}: {reason}")
            case _:
                run.violate(f"{node} gives {effect}")

    def invariant(self, view: View[Algorithm]) -> None:
        inside = [
            [name for name in group if view.machine(name).status is Status.INSIDE]
            for group in self.groups
        ]
        assert not (inside[0] and inside[1]), f"{inside[0]} and {inside[1]} are inside"


def idle(name: NodeId) -> Callable[[View[Any]], bool]:
    return lambda view: view.machine(name).status is Status.IDLE


def exit_of(name: NodeId) -> Stimulus:
    return tell(name, ExitRequested(), when=lambda view: view.machine(name).status is Status.INSIDE)


class EndlessGroups(GroupsModel):
    """The same for ever, of the corrected algorithm. Nobody has to ask; who is inside has to leave.

    Logical clocks grow for ever, so they are counted from the least one, and one that is further
    behind than ``gap`` counts as just so far behind.
    """

    def __init__(self, groups: Groups, *, gap: int = 3) -> None:
        super().__init__(groups)
        self.gap = gap

    def scripts(self) -> Sequence[Script]:
        everybody = (*self.groups[0], *self.groups[1])
        return [
            Script(
                name,
                (tell(name, EnterRequested(), when=idle(name), fair=False), exit_of(name)),
                endless=True,
            )
            for name in everybody
        ]

    def canonical(self, snapshot: Snapshot) -> Snapshot:
        times: set[int] = set()
        for state in snapshot.states.values():
            parts = cast("tuple[Any, ...]", state)
            times |= {parts[1], *([parts[2]] if parts[2] else [])}
        for messages in snapshot.channels.values():
            times |= {time for message in messages if (time := time_of(message))}
        new: dict[int, int] = {}
        at = previous = 0
        for time in sorted(times):
            at += min(time - previous, self.gap if new else 1)
            new[time], previous = at, time
        new.setdefault(0, 0)
        states: dict[NodeId, Hashable] = {}
        for name, state in snapshot.states.items():
            parts = cast("tuple[Any, ...]", state)
            states[name] = (parts[0], new[parts[1]], new[parts[2]], *parts[3:])
        channels = {
            key: tuple(with_time(message, new[time_of(message)]) for message in messages)
            for key, messages in snapshot.channels.items()
        }
        return replace(snapshot, states=states, channels=channels)


def time_of(message: Hashable) -> int:
    match message:
        case Req(ts):
            return ts
        case Ack(renew):
            return renew
        case _:
            raise AssertionError(message)


def with_time(message: Hashable, time: int) -> Hashable:
    return Req(time) if isinstance(message, Req) else replace(cast("Ack", message), renew=time)
