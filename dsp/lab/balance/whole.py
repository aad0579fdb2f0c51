"""Runs one stream through the groupings without a key: the classes of the engine in virtual time.

They send what comes to who has room, and hold it back where nobody has. So there is what they go
by: accounts of what is under way, and instances that tell when they take and have executed records
and how much room they have, by the engine's own rules.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, cast

from dsp.config.stream import StreamConfig
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.lab.balance.setting import Setting, Stream
from dsp.lab.balance.simulator import Instances, Outcome
from dsp.stream.codecs import JsonCodec
from dsp.stream.graph import Edge, Grouping
from dsp.stream.groupings.whole import LeastWork, RoundRobin
from dsp.stream.metrics import MetricCollector
from dsp.stream.parcels import Account
from dsp.stream.room import FIRST_ROOM, NO_NEWS, room_for

if TYPE_CHECKING:
    from dsp.stream.groupings.base import Ways

__all__ = ["WHOLE", "simulate_whole"]

WHOLE = {"keyless-turns": RoundRobin, "keyless": LeastWork}
"""Groupings of the engine without a key: ``round-robin``, and ``adaptive``, the default."""


class _Accounts:
    """What a grouping needs of the outlet: who is there, and what is under way."""

    def __init__(self, names: tuple[NodeId, ...]) -> None:
        self.edge = Edge("source", "work", Grouping.SHUFFLE, JsonCodec())
        self._names = names
        self._accounts = {name: Account(*FIRST_ROOM) for name in names}

    def routes(self) -> tuple[NodeId, ...]:
        return self._names

    def account(self, name: NodeId) -> Account:
        return self._accounts[name]

    def room(self, name: NodeId) -> int:
        account = self._accounts[name]
        return account.batch if account.records < account.window else 0


class _Run:
    """A stream on its way through the sender and the instances."""

    def __init__(self, setting: Setting, grouping: str, stream: Stream) -> None:
        self.outcome = Outcome(len(stream.records))
        self._stream = stream
        self._hop = setting.hop
        self._config = StreamConfig()
        self._instances = Instances(setting, stream)
        self._names = [NodeId(str(index)) for index in range(setting.instances)]
        self._ways = _Accounts(tuple(self._names))
        self._grouping = WHOLE[grouping](cast("Ways", self._ways))
        self._metrics = [MetricCollector(1, None, 0.0) for _ in self._names]
        self._queues: list[deque[int]] = [deque() for _ in self._names]
        self._busy = [False] * setting.instances
        self._held: deque[int] = deque()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._now = 0.0

    def run(self) -> Outcome:
        """Let all records come, and wait until all are executed."""
        agenda = self._agenda
        for number, (born, _, _) in enumerate(self._stream.records):
            while agenda and agenda[0][0] <= born:
                self._step()
            self._now = born
            self._held.append(number)
            self._send()
        while agenda:
            self._step()
        return self.outcome

    def _step(self) -> None:
        self._now, _, act = heappop(self._agenda)
        act()

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._agenda, (self._now + seconds, self._order, act))

    # -- the sender -----------------------------------------------------------------------

    def _send(self) -> None:
        while self._held and (name := self._grouping.next()) is not None:
            account = self._ways.account(name)
            account.records += 1
            account.unexecuted += 1
            self._later(self._hop, partial(self._put, int(name), self._held.popleft()))

    def _hear(self, index: int, taken: int, worked: int, window: int, batch: int) -> None:
        account = self._ways.account(self._names[index])
        account.records -= taken
        account.unexecuted -= worked
        if window and batch:
            account.window, account.batch = window, batch
        self._send()

    # -- the instances --------------------------------------------------------------------

    def _put(self, index: int, number: int) -> None:
        self._queues[index].append(number)
        if not self._busy[index]:
            self._begin(index)

    def _begin(self, index: int) -> None:
        self._busy[index] = True
        number = self._queues[index].popleft()
        seconds = self._instances.takes(index, self._stream.records[number][2], number)
        self._tell(index, taken=1)
        self._later(seconds, lambda: self._end(index, number, seconds))

    def _end(self, index: int, number: int, seconds: float) -> None:
        self.outcome.times[number] = self._now - self._stream.records[number][0]
        self._metrics[index].worked(1, seconds)
        self._tell(index, worked=1)
        self._busy[index] = False
        if self._queues[index]:
            self._begin(index)

    def _tell(self, index: int, *, taken: int = 0, worked: int = 0) -> None:
        metrics = self._metrics[index]
        window, batch = room_for(self._config, metrics.capacity, 1, NO_NEWS, metrics.total_worked)
        self._later(self._hop, lambda: self._hear(index, taken, worked, window, batch))


def simulate_whole(setting: Setting, grouping: str, stream: Stream) -> Outcome:
    """Let a stream run.

    Args:
        setting: of the run.
        grouping: one of ``WHOLE``.
        stream: made for the setting.

    Raises:
        ConfigError: there is no such grouping.
    """
    if grouping not in WHOLE:
        raise ConfigError(f"no grouping {grouping!r} without a key; there are {', '.join(WHOLE)}")
    return _Run(setting, grouping, stream).run()
