"""Runs one stream through one way to choose: the machines of ``dsp.balance`` in virtual time."""

from dataclasses import replace
from heapq import heappop, heappush
from typing import Protocol, cast

from dsp.balance.events import (
    Assign,
    Departing,
    Executed,
    MeterEffect,
    MeterEvent,
    Offered,
    Piggyback,
    Request,
    SchedulerEffect,
    SchedulerEvent,
    Worked,
)
from dsp.balance.machine_adaptive import AdaptiveScheduler
from dsp.balance.machine_adaptive_meter import AdaptiveMeter
from dsp.balance.machine_osg import OsgScheduler, SchedulerState
from dsp.balance.machine_osg_meter import OsgMeter
from dsp.balance.settings import BalanceSettings
from dsp.core.machine import Machine, Received, Send
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.lab.balance.setting import Setting, Stream

__all__ = ["STRATEGIES", "Instances", "Outcome", "simulate"]

STRATEGIES = ("round-robin", "osg", "osg-quick", "adaptive", "omniscient")
"""Ways to choose; ``osg-quick`` is OSG with N 64 and mu .5, which leaves round-robin early."""

SCHEDULER = NodeId("scheduler")
# Records whose durations a meter gets at once; a divisor of its window, so that nothing is late.
TOGETHER = 16


class Outcome:
    """What became of a stream.

    Attributes:
        times: seconds from the arrival of each record to the end of its execution.
        left: number of the record at which OSG left round-robin; None if it never did.
    """

    def __init__(self, records: int) -> None:
        self.times = [0.0] * records
        self.left: int | None = None

    @property
    def mean(self) -> float:
        """Seconds that a record took."""
        return sum(self.times) / len(self.times)

    @property
    def p99(self) -> float:
        """Seconds that all but one in a hundred took at most."""
        return sorted(self.times)[int(0.99 * (len(self.times) - 1))]


class Chooser(Protocol):
    """Chooses an instance for each record."""

    def choose(self, number: int, now: float, value: int, cost: float) -> int:
        """Give the instance."""
        ...

    def executed(self, index: int, number: int, value: int, seconds: float, now: float) -> None:
        """An instance is through with a record."""
        ...


class Instances:
    """The instances: what a record takes each, and when it will be idle.

    Args:
        setting: of the run.
        stream: that runs.
    """

    def __init__(self, setting: Setting, stream: Stream) -> None:
        self._setting = setting
        self._middle = stream.middle
        self.free = [0.0] * setting.instances

    def takes(self, index: int, cost: float, number: int) -> float:
        """Give what a record takes an instance, in seconds."""
        slow = index == 0 and number >= self._middle
        return cost * self._setting.slows if slow else cost

    def end(self, index: int, cost: float, number: int, now: float) -> float:
        """Give when an instance would be through with a record that it is sent now."""
        start = max(now + self._setting.hop, self.free[index])
        return start + self.takes(index, cost, number)


class _RoundRobin:
    def __init__(self, instances: Instances) -> None:
        self._count = len(instances.free)

    def choose(self, number: int, now: float, value: int, cost: float) -> int:
        return number % self._count

    def executed(self, index: int, number: int, value: int, seconds: float, now: float) -> None:
        """Nothing is learnt."""


class _Omniscient(_RoundRobin):
    def __init__(self, instances: Instances) -> None:
        super().__init__(instances)
        self._instances = instances

    def choose(self, number: int, now: float, value: int, cost: float) -> int:
        end = self._instances.end
        return min(range(self._count), key=lambda index: end(index, cost, number, now))


class _Machines:
    """A scheduler machine, a meter machine for each instance, and what is on its way to it."""

    def __init__(
        self,
        scheduler: Machine[SchedulerEvent, SchedulerEffect],
        meters: list[Machine[MeterEvent, MeterEffect]],
        hop: float,
    ) -> None:
        self.scheduler = scheduler
        self._meters = meters
        self._names = [NodeId(str(index)) for index in range(len(meters))]
        self._hop = hop
        self._requests: dict[int, Request] = {}
        self._taken: list[tuple[list[bytes], list[float]]] = [([], []) for _ in meters]
        self._coming: list[tuple[float, int, SchedulerEvent]] = []
        self._number = 0

    def choose(self, number: int, now: float, value: int, cost: float) -> int:
        while self._coming and self._coming[0][0] <= now:
            at, _, event = heappop(self._coming)
            self.scheduler.handle(event, at)
        (effect,) = self.scheduler.handle(Offered((value.to_bytes(4, "little"),)), now)
        target = cast("Assign", effect).targets[0]
        for departing in self.scheduler.handle(Departing(target), now):
            self._requests[number] = cast("Piggyback", departing).request
        return int(target)

    def executed(self, index: int, number: int, value: int, seconds: float, now: float) -> None:
        self._will_hear(now, Worked(self._names[index], 1))
        keys, times = self._taken[index]
        keys.append(value.to_bytes(4, "little"))
        times.append(seconds)
        request = self._requests.pop(number, None)
        if request is None and len(keys) < TOGETHER:
            return
        self._taken[index] = ([], [])
        for effect in self._meters[index].handle(Executed(SCHEDULER, keys, times, request), now):
            message = cast("Send", effect).message
            self._will_hear(now, Received(self._names[index], message))

    def _will_hear(self, now: float, event: SchedulerEvent) -> None:
        self._number += 1
        heappush(self._coming, (now + self._hop, self._number, event))


def _make(strategy: str, instances: Instances, settings: BalanceSettings, hop: float) -> Chooser:
    names = [NodeId(str(index)) for index in range(len(instances.free))]
    match strategy:
        case "round-robin":
            return _RoundRobin(instances)
        case "omniscient":
            return _Omniscient(instances)
        case "osg" | "osg-quick":
            if strategy == "osg-quick":
                settings = replace(settings, window=64, tolerance=0.5)
            meters = [OsgMeter(settings) for _ in names]
            return _Machines(OsgScheduler(settings, names), [*meters], hop)
        case "adaptive":
            learning = [AdaptiveMeter(settings) for _ in names]
            return _Machines(AdaptiveScheduler(settings, names), [*learning], hop)
        case _:
            raise AssertionError(strategy)


def simulate(
    setting: Setting,
    strategy: str,
    stream: Stream,
    settings: BalanceSettings | None = None,
) -> Outcome:
    """Let a stream run.

    Args:
        setting: of the run.
        strategy: one of ``STRATEGIES``.
        stream: made for the setting.
        settings: of the machines.

    Raises:
        ConfigError: there is no such strategy.
    """
    if strategy not in STRATEGIES:
        raise ConfigError(f"no strategy {strategy!r}; there are {', '.join(STRATEGIES)}")
    instances = Instances(setting, stream)
    chooser = _make(strategy, instances, settings or BalanceSettings(), setting.hop)
    outcome = Outcome(len(stream.records))
    ends: list[tuple[float, int, int, int, float]] = []
    scheduler = chooser.scheduler if isinstance(chooser, _Machines) else None
    for number, (now, value, cost) in enumerate(stream.records):
        while ends and ends[0][0] <= now:
            end, done, index, its_value, seconds = heappop(ends)
            chooser.executed(index, done, its_value, seconds, end)
        index = chooser.choose(number, now, value, cost)
        end = instances.end(index, cost, number, now)
        instances.free[index] = end
        outcome.times[number] = end - now
        heappush(ends, (end, number, index, value, instances.takes(index, cost, number)))
        if (
            outcome.left is None
            and isinstance(scheduler, OsgScheduler)
            and scheduler.status is not SchedulerState.ROUND_ROBIN
        ):
            outcome.left = number
    return outcome
