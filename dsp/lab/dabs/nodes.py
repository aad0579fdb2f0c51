"""One instance of the simulation: a queue, a body that takes its time, and parts of the engine.

Metrics, observer, exchange of estimates and trigger are the engine's own. The protocol is not: an
instance is there when its time to start is over, and one that leaves works off what it has. What
that leaves out is checked on the real engine (``dsp.lab.dabs.real``).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, cast

from dsp.balance.events import Request
from dsp.config.scaling import ScaleRules
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.lab.dabs.setting import Setting
from dsp.lab.dabs.topologies import Stage, passes
from dsp.lab.dabs.ways import Meter, Tuple, Way
from dsp.scaling.deciders import configured_decider, proactive_settings
from dsp.scaling.deciders.base import Observation
from dsp.scaling.events import Member
from dsp.scaling.service import ScaleRequest, ScaleTrigger
from dsp.scaling.usable import CpuUse
from dsp.stream.foresight import Foresight, foreseer
from dsp.stream.metrics import MetricCollector
from dsp.stream.observing import Observer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Node", "Around"]

# As in the engine: what a newcomer was quick with says little about what comes next.
SLOW_START = 4


@dataclass(slots=True)
class Around:
    """What a node needs of the simulation.

    Attributes:
        clock: gives the time.
        later: calls a function in so many seconds.
        post: brings an envelope to an instance.
        names: gives the instances of an operator that tuples go to.
        begin: carries out what a node decided.
        retire: asks an instance to leave.
        finished: a tuple has come to the end of the topology.
    """

    clock: Callable[[], float]
    later: Callable[[float, Callable[[], None]], None]
    post: Callable[[NodeId, NodeId, Envelope], None]
    names: Callable[[str], tuple[NodeId, ...]]
    begin: Callable[["Node", ScaleRequest], None]
    retire: Callable[[NodeId], None]
    finished: Callable[[str, Tuple], None]


class _Neighbours:
    def __init__(self, names: Callable[[str], tuple[NodeId, ...]]) -> None:
        self._names = names

    def eldest(self, operator: str) -> Member:
        # The first instance of an operator is its keeper, and never leaves.
        return Member(operator, 0, self._names(operator)[0])

    def side(self, operators: "Iterable[str]") -> list[Member]:
        return [Member(each, 0, name) for each in operators for name in self._names(each)]


@dataclass(slots=True)
class _Place:
    upstream: tuple[str, ...]
    downstream: tuple[str, ...]


class Node:
    """An instance.

    Args:
        name: of the instance.
        stage: whose instance it is; None for the source.
        downstream: the operators after it, each with the way to it.
        costs: seconds by value.
        rules: of its decider; None if it decides nothing.
        keeper: whether it never leaves.
    """

    def __init__(
        self,
        name: NodeId,
        stage: Stage | None,
        setting: Setting,
        downstream: dict[str, Way],
        costs: list[float],
        rules: ScaleRules | None,
        around: Around,
        random: Random,
        *,
        keeper: bool,
    ) -> None:
        self.name = self.me = name
        self.stage = stage
        self.keeper = keeper
        self.ways = downstream
        self.leaving = self.spawning = False
        self.queue: deque[tuple[Way, Tuple, Request | None]] = deque()
        self.backlog: deque[Tuple] = deque()
        self.meter: Meter | None = None
        self.busy_seconds = 0.0
        self._setting = setting
        self._costs = costs
        self._around = around
        self._working = self._blocked = False
        self.place = _Place(stage.parents if stage is not None else (), tuple(downstream))
        self.neighbours = _Neighbours(around.names)
        self.metrics = MetricCollector(1, None, around.clock())
        decider = configured_decider(rules, random) if rules is not None else None
        foresight = Foresight(
            proactive_settings(rules or ScaleRules(period=setting.period)),
            foreseer(decider),
            is_source=stage is None,
        )
        # The observer asks this node what it asks a host, a machine and an outlet of the engine.
        part: Any = self
        self.observer = Observer(
            part,
            part,
            self.metrics,
            part,
            by_key=False,
            foresight=foresight,
            behind=(lambda: len(self.backlog)) if stage is None else (lambda: None),
        )
        self.trigger = (
            ScaleTrigger(
                self,
                decider,
                period=rules.period,
                random=random,
                observe=self._observe,
                begin=lambda request: around.begin(self, request),
                retire=around.retire,
            )
            if decider is not None and rules is not None
            else None
        )
        self._by_cpu = rules is not None and rules.decider == "threshold"
        self._reported = around.clock()
        for way in downstream.values():
            way.on_room = self.resume

    # -- what the engine's parts ask ------------------------------------------------------

    @property
    def may_scale(self) -> bool:
        """Whether it may begin to change the number of instances."""
        return not self.leaving and not self.spawning

    @property
    def sent_records(self) -> dict[str, int]:
        """Tuples sent to each operator."""
        return {operator: way.sent for operator, way in self.ways.items()}

    def waiting(self, operator: str) -> int:
        """Tuples for an operator that nobody has begun to work on."""
        return self.ways[operator].waiting

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        """Where tuples may go."""
        return self.ways[operator].names

    def post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None:
        """Send a message."""
        self._around.post(source, to, envelope)

    def address(self, name: NodeId) -> str:
        """Nothing: names are enough here."""
        return ""

    def introduce(self, name: NodeId, address: str) -> None:
        """Nothing: names are enough here."""

    def cpu_use(self, busy: float) -> CpuUse:
        """A core of its own, as in a world."""
        return CpuUse(own=busy)

    def _observe(self, now: float) -> Observation | None:
        seen = self.observer.observe(now)
        figures = self.observer.figures
        if seen is None or figures is None or not self._by_cpu or seen.report is None:
            return seen
        # The incremental strategy looks at nothing but the CPU in use.
        used = figures.busy * seen.capacity * len(seen.report.siblings)
        return replace(seen, report=replace(seen.report, load=used))

    # -- tuples ---------------------------------------------------------------------------

    def room(self, sender: NodeId) -> int:
        """Tuples that one sender may have waiting here."""
        capacity = self.metrics.capacity
        if capacity is None:
            return 2
        senders = max(1, sum(len(self._around.names(each)) for each in self.place.upstream))
        window = int(capacity * self._setting.window_time) // senders
        return max(2, min(window, SLOW_START * self.metrics.total_worked))

    def put(self, sender: Way, entry: Tuple, request: Request | None) -> None:
        """Take a tuple."""
        self.metrics.arrived(1)
        self.queue.append((sender, entry, request))
        self.work()

    def arrive(self, entry: Tuple) -> None:
        """A tuple comes to the source."""
        self.backlog.append(entry)
        self.read()

    def read(self) -> None:
        """Send on what came to the source, as far as it is taken."""
        while self.backlog and not self._held_up():
            entry = self.backlog.popleft()
            self.metrics.arrived(1)
            self._give(entry)

    def work(self) -> None:
        """Begin with the next tuple, unless it works or waits for room."""
        if self._working or self._blocked or not self.queue:
            return
        sender, entry, request = self.queue.popleft()
        self._working = True
        seconds = self._costs[entry.value]
        self._around.later(seconds, lambda: self._done(sender, entry, request, seconds))
        sender.begun(self.name)

    def _done(self, sender: Way, entry: Tuple, request: Request | None, seconds: float) -> None:
        now = self._around.clock()
        self._working = False
        self.busy_seconds += seconds
        self.metrics.worked(1, seconds)
        sender.worked(self.name)
        if self.meter is not None:
            self.meter.executed(sender.sender, entry.value, seconds, request, now)
        stage = cast("Stage", self.stage)
        if not self.ways:
            self._around.finished(sender.sender, entry)
        elif passes(stage, entry.number):
            self._give(entry)
        if self._held_up():
            self._blocked = True
            self.metrics.blocked(now)
        self.work()

    def _give(self, entry: Tuple) -> None:
        self.metrics.gave(1)
        for way in self.ways.values():
            way.pending.append(entry)
            way.pump()

    def _held_up(self) -> bool:
        return any(way.held_up for way in self.ways.values())

    def resume(self) -> None:
        """There is room again at a successor."""
        if self.stage is None:
            self.read()
        elif self._blocked and not self._held_up():
            self._blocked = False
            self.metrics.unblocked(self._around.clock())
            self.work()

    @property
    def idle(self) -> bool:
        """Whether nothing is left to do here."""
        return not (self._working or self.queue or self._blocked or self._held_up())

    def report(self) -> None:
        """End a period of monitoring."""
        now = self._around.clock()
        self.observer.period(now, len(self.queue), now - self._reported)
        self._reported = now
