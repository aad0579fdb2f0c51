"""From one instance to the instances of one operator: choice, room, and what waits.

As in the engine, only so much may wait at an instance; the rest waits at the sender. What chooses
is the engine's own: turns, OSG's machine or the adaptive one, with their meters at the other end.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from dsp.balance.events import (
    Assign,
    Departing,
    Executed,
    Offered,
    Piggyback,
    Request,
    SchedulerEffect,
    SchedulerEvent,
    Worked,
)
from dsp.balance.machine_adaptive import AdaptiveScheduler
from dsp.balance.machine_adaptive_meter import AdaptiveMeter
from dsp.balance.machine_osg import OsgScheduler
from dsp.balance.machine_osg_meter import OsgMeter
from dsp.balance.settings import BalanceSettings
from dsp.core.machine import PeerAppeared, PeerLost, Received, Send
from dsp.core.types import NodeId

__all__ = ["Tuple", "Way", "Meter", "make_meter", "make_way"]

# Records that OSG has assigned and that find no room: beyond so many the sender waits.
MOST_HELD = 16
# Executed tuples are told to a meter in groups, as batches are in the engine.
GROUP = 8


class Tuple(NamedTuple):
    """One tuple: its number, its value, and when it came to the source."""

    number: int
    value: int
    born: float


class Scheduler(Protocol):
    """A machine that chooses."""

    def handle(self, event: SchedulerEvent, now: float) -> Sequence[SchedulerEffect]: ...


class Target(Protocol):
    """An instance at the other end of a way."""

    name: NodeId

    def room(self, sender: NodeId) -> int:
        """Tuples that one sender may have waiting here."""
        ...

    def put(self, sender: "Way", entry: Tuple, request: Request | None) -> None:
        """Take a tuple."""
        ...


class Way:
    """A way by turns: the next instance that has room.

    Args:
        sender: whose way it is.
        keys: the bytes of each value.
        clock: gives the time.
    """

    def __init__(self, sender: NodeId, keys: Sequence[bytes], clock: Callable[[], float]) -> None:
        self.sender = sender
        self.pending: deque[Tuple] = deque()
        self.sent = 0
        self.under_way: dict[NodeId, int] = {}
        self.on_room: Callable[[], None] = lambda: None
        self._targets: dict[NodeId, Target] = {}
        self._keys = keys
        self._clock = clock
        self._turn = 0

    @property
    def names(self) -> tuple[NodeId, ...]:
        """The instances that tuples may go to."""
        return tuple(self._targets)

    @property
    def held_up(self) -> bool:
        """Whether the sender has to wait."""
        return bool(self.pending)

    @property
    def waiting(self) -> int:
        """Tuples that are sent and not begun, or not sent."""
        return len(self.pending) + sum(self.under_way[name] for name in self._targets)

    def appear(self, target: Target) -> None:
        """An instance is there."""
        self._targets[target.name] = target
        self.under_way[target.name] = 0

    def leave(self, name: NodeId) -> None:
        """An instance gets no more tuples; what it has it works off."""
        del self._targets[name]

    def pump(self) -> None:
        """Send what can be sent."""
        while self.pending:
            names = list(self._targets)
            for step in range(len(names)):
                name = names[(self._turn + step) % len(names)]
                if self._room(name) > 0:
                    self._turn = (self._turn + step + 1) % len(names)
                    self._send(name, self.pending.popleft())
                    break
            else:
                return

    def begun(self, name: NodeId) -> None:
        """An instance has begun to work on a tuple: there is room again."""
        self.under_way[name] -= 1
        self.changed()

    def changed(self) -> None:
        """There may be room again."""
        self.pump()
        self.on_room()

    def worked(self, name: NodeId) -> None:
        """An instance is through with a tuple."""

    def hear(self, sender: NodeId, message: object) -> None:
        """A meter at the other end tells something."""

    def _room(self, name: NodeId) -> int:
        return self._targets[name].room(self.sender) - self.under_way[name]

    def _send(self, name: NodeId, entry: Tuple, request: Request | None = None) -> None:
        self.under_way[name] += 1
        self.sent += 1
        self._targets[name].put(self, entry, request)


class _Balanced(Way):
    """A way on which a machine chooses."""

    def __init__(
        self,
        sender: NodeId,
        keys: Sequence[bytes],
        clock: Callable[[], float],
        scheduler: Scheduler,
    ) -> None:
        super().__init__(sender, keys, clock)
        self._scheduler = scheduler

    def appear(self, target: Target) -> None:
        super().appear(target)
        self._tell(PeerAppeared(target.name))

    def leave(self, name: NodeId) -> None:
        super().leave(name)
        self._tell(PeerLost(name))

    def hear(self, sender: NodeId, message: object) -> None:
        self._tell(Received(sender, message))

    def _tell(self, event: SchedulerEvent) -> Sequence[SchedulerEffect]:
        return self._scheduler.handle(event, self._clock())

    def _offer(self, entry: Tuple, room: Sequence[int] | None) -> Assign:
        (assign,) = self._tell(Offered((self._keys[entry.value],), room))
        assert isinstance(assign, Assign)
        return assign


class _Adaptive(_Balanced):
    def pump(self) -> None:
        while self.pending and self._targets:
            room = [max(0, self._room(name)) for name in self._targets]
            if not any(room):
                return
            assign = self._offer(self.pending[0], room)
            self._send(assign.targets[0], self.pending.popleft())

    def worked(self, name: NodeId) -> None:
        self._tell(Worked(name, 1))


class _Osg(_Balanced):
    """OSG asks for no room: what finds none is held for its instance."""

    def __init__(
        self,
        sender: NodeId,
        keys: Sequence[bytes],
        clock: Callable[[], float],
        scheduler: Scheduler,
    ) -> None:
        super().__init__(sender, keys, clock, scheduler)
        self._held: dict[NodeId, deque[tuple[Tuple, float]]] = {}

    @property
    def waiting(self) -> int:
        return super().waiting + sum(map(len, self._held.values()))

    def appear(self, target: Target) -> None:
        super().appear(target)
        self._held[target.name] = deque()

    def leave(self, name: NodeId) -> None:
        super().leave(name)
        for entry, _ in reversed(self._held.pop(name)):
            self.pending.appendleft(entry)

    def pump(self) -> None:
        self._flush()
        while self.pending and self._targets and sum(map(len, self._held.values())) < MOST_HELD:
            entry = self.pending.popleft()
            assign = self._offer(entry, None)
            (target,) = assign.targets
            self._held[target].append((entry, assign.work[target]))
            self._flush()

    def _flush(self) -> None:
        for name, held in self._held.items():
            while held and self._room(name) > 0:
                entry, _ = held.popleft()
                request = None
                for effect in self._tell(Departing(name, sum(seconds for _, seconds in held))):
                    assert isinstance(effect, Piggyback)
                    request = effect.request
                self._send(name, entry, request)


class Meter:
    """What an instance tells those that send to it of what tuples cost.

    Args:
        inner: the machine.
        deliver: brings a message to a sender.
    """

    def __init__(
        self,
        inner: OsgMeter | AdaptiveMeter,
        keys: Sequence[bytes],
        deliver: Callable[[NodeId, object], None],
    ) -> None:
        self._inner = inner
        self._keys = keys
        self._deliver = deliver
        self._done: dict[NodeId, tuple[list[bytes], list[float]]] = {}

    def executed(
        self, sender: NodeId, value: int, seconds: float, request: Request | None, now: float
    ) -> None:
        """A tuple was worked on."""
        keys, spans = self._done.setdefault(sender, ([], []))
        keys.append(self._keys[value])
        spans.append(seconds)
        if request is None and len(keys) < GROUP:
            return
        self._done[sender] = ([], [])
        for effect in self._inner.handle(Executed(sender, keys, spans, request), now):
            if isinstance(effect, Send):
                self._deliver(NodeId(effect.to), effect.message)


def make_way(
    grouping: str,
    window: int,
    sender: NodeId,
    keys: Sequence[bytes],
    clock: Callable[[], float],
) -> Way:
    """Give a way on which tuples are grouped as asked."""
    settings = BalanceSettings(window=window)
    if grouping == "osg":
        return _Osg(sender, keys, clock, OsgScheduler(settings))
    if grouping == "adaptive":
        return _Adaptive(sender, keys, clock, AdaptiveScheduler(settings))
    return Way(sender, keys, clock)


def make_meter(
    grouping: str,
    window: int,
    keys: Sequence[bytes],
    deliver: Callable[[NodeId, object], None],
) -> Meter | None:
    """Give the meter that belongs to a grouping; None if it needs none."""
    settings = BalanceSettings(window=window)
    if grouping == "osg":
        return Meter(OsgMeter(settings), keys, deliver)
    if grouping == "adaptive":
        return Meter(AdaptiveMeter(settings), keys, deliver)
    return None
