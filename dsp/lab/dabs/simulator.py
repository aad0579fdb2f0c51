"""A run of one experiment: tuples one by one, in order of time, around the real deciders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import ceil

from dsp.core.envelope import Envelope
from dsp.core.randomness import derive_random
from dsp.core.types import NodeId
from dsp.errors import SimulationError
from dsp.lab.dabs.nodes import Around, Node
from dsp.lab.dabs.setting import Setting, rules_of
from dsp.lab.dabs.streams import arrivals, draw_values, weights_of
from dsp.lab.dabs.topologies import SOURCE, Stage, costs_of, passes, topology
from dsp.lab.dabs.ways import Tuple, Way, make_meter, make_way
from dsp.scaling.deciders import Thresholds
from dsp.scaling.events import ScaleOutRequested
from dsp.scaling.service import ScaleRequest

__all__ = ["Trace", "Simulation", "Input", "make_input", "static_instances", "expected_of"]

# How long a backlog may take after the stream is over, in multiples of its duration.
PATIENCE = 40.0
FIRST_PHASE = 0.1


@dataclass(frozen=True, slots=True)
class Input:
    """What comes: the same for every strategy and grouping.

    Attributes:
        tuples: in order of time.
        costs: seconds by value, for each stage.
    """

    tuples: Sequence[Tuple]
    costs: dict[str, list[float]]


def make_input(setting: Setting, seed: int) -> Input:
    """Make the stream of an experiment.

    Raises:
        ConfigError: there is no such stream or distribution.
    """
    weights = weights_of(setting.values, setting.distinct)
    times = arrivals(
        setting.stream, setting.duration, setting.low, setting.high,
        derive_random(seed, "times"),
    )  # fmt: skip
    values = draw_values(weights, len(times), derive_random(seed, "values"))
    tuples = [
        Tuple(n, value, time) for n, (time, value) in enumerate(zip(times, values, strict=True))
    ]
    costs = {
        stage.name: costs_of(stage, setting.cost, weights, derive_random(seed, "costs", stage.name))
        for stage in topology(setting.topology)
    }
    return Input(tuples, costs)


def static_instances(setting: Setting, what: Input, stage: Stage) -> int:
    """Give how many instances of an operator the static strategy has."""
    if setting.static_instances:
        return setting.static_instances
    stages = {each.name: each for each in topology(setting.topology)}
    rate = len(what.tuples) / setting.duration
    above = stage.parents[0]
    while above != SOURCE:
        rate *= stages[above].selectivity
        above = stages[above].parents[0]
    return max(1, ceil(rate * stage.cost * setting.cost / Thresholds().target))


def expected_of(setting: Setting, what: Input) -> list[int]:
    """Give how often each tuple has to come to the end: once on every way that lets it pass."""
    stages = {each.name: each for each in topology(setting.topology)}
    (last,) = (each for each in stages.values() if not each.scales)
    ways: list[list[Stage]] = []
    for parent in last.parents:
        way: list[Stage] = []
        above = parent
        while above != SOURCE:
            way.append(stages[above])
            above = stages[above].parents[0]
        ways.append(way)
    return [
        sum(all(passes(stage, entry.number) for stage in way) for way in ways)
        for entry in what.tuples
    ]


@dataclass(slots=True)
class Trace:
    """What happened.

    Attributes:
        times: at the end of each period of monitoring.
        instances: of the critical operator, then.
        running: of all operators that scale, then.
        latencies: mean latency of what came to the end in that period; None if nothing did.
        late: late tuples so far, then.
        ended: tuples that came to the end.
        expected: as many as had to.
        doubled: that came more than once.
        all_late: late tuples.
        total_latency: of all tuples.
        seconds: instance-seconds of all operators that scale.
        actions: instances created or sent away.
    """

    times: list[float] = field(default_factory=list)
    instances: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    latencies: list[float | None] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    ended: int = 0
    expected: int = 0
    doubled: int = 0
    all_late: int = 0
    total_latency: float = 0.0
    seconds: float = 0.0
    actions: int = 0

    @property
    def late_share(self) -> float:
        """Late tuples by tuples; those that never came to the end are late too."""
        lost = self.expected - self.ended
        return (self.all_late + lost) / self.expected if self.expected else 0.0


class Simulation:
    """One run.

    Args:
        setting: the parameters.
        seed: of everything that is drawn.
        what: the input, if it was made already.
    """

    def __init__(self, setting: Setting, seed: int, what: Input | None = None) -> None:
        self.setting = setting
        self.trace = Trace()
        self._seed = seed
        self._input = what or make_input(setting, seed)
        self._stages = {stage.name: stage for stage in topology(setting.topology)}
        self._critical = max(self._stages.values(), key=lambda stage: stage.cost).name
        self._rules = rules_of(setting)
        self._keys = [value.to_bytes(4, "big") for value in range(setting.distinct)]
        self._now = 0.0
        self._order = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._nodes: dict[NodeId, Node] = {}
        self._members: dict[str, dict[NodeId, Node]] = {n: {} for n in (SOURCE, *self._stages)}
        self._born = 0
        self._period_latency = [0.0, 0]
        self._seen: set[tuple[str, int]] = set()
        self._around = Around(
            clock=lambda: self._now,
            later=self._later,
            post=self._post,
            names=lambda operator: tuple(self._members[operator]),
            begin=self._begin,
            retire=self._retire,
            finished=self._finished,
        )
        for stage in reversed(self._stages.values()):
            for number in range(self._first_instances(stage)):
                self._create(stage.name, keeper=number == 0)
        self._source = self._create(SOURCE, keeper=True)
        self.trace.expected = sum(expected_of(setting, self._input))

    def run(self) -> Trace:
        """Simulate until the last tuple is dealt with.

        Raises:
            SimulationError: tuples were lost or doubled, or are still there after a long time.
        """
        setting, trace = self.setting, self.trace
        agenda, end = self._agenda, self.setting.duration
        tuples = self._input.tuples
        self._later(setting.period, self._monitor)
        place = 0
        limit = end * (1 + PATIENCE)
        while place < len(tuples) or trace.ended < trace.expected:
            if place < len(tuples) and (not agenda or tuples[place].born <= agenda[0][0]):
                entry = tuples[place]
                place += 1
                self._now = entry.born
                self._source.arrive(entry)
                continue
            self._now, _, act = heappop(agenda)
            if self._now > limit:
                raise SimulationError(
                    f"{trace.expected - trace.ended} tuples are left at {self._now:g} s"
                )
            act()
        self._monitor()
        if trace.doubled:
            raise SimulationError(f"{trace.doubled} tuples came twice")
        return trace

    # -- the agenda -----------------------------------------------------------------------

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._order += 1
        heappush(self._agenda, (self._now + seconds, self._order, act))

    def _post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None:
        node = self._nodes.get(to)
        if node is None:
            return
        if envelope.HasField("engine_demand"):
            node.observer.told(source, envelope.engine_demand)
        else:
            node.observer.heard(source, envelope.engine_share)

    def _monitor(self) -> None:
        trace, (total, count) = self.trace, self._period_latency
        scaling = [len(self._members[name]) for name, one in self._stages.items() if one.scales]
        span = self._now - (trace.times[-1] if trace.times else 0.0)
        if span <= 0:
            return
        trace.times.append(self._now)
        trace.instances.append(len(self._members[self._critical]))
        trace.running.append(sum(scaling))
        trace.latencies.append(total / count if count else None)
        trace.late.append(trace.all_late)
        trace.seconds += sum(scaling) * span
        self._period_latency = [0.0, 0]
        self._later(self.setting.period, self._monitor)

    def _report(self, node: Node) -> None:
        if node.name in self._nodes:
            node.report()
            self._later(self.setting.report_every, lambda: self._report(node))

    def _turn(self, node: Node) -> None:
        if node.name in self._nodes and node.trigger is not None:
            node.trigger.turn(self._now)
            self._later(self.setting.period, lambda: self._turn(node))

    # -- instances ------------------------------------------------------------------------

    def _first_instances(self, stage: Stage) -> int:
        if not stage.scales or self._rules is not None:
            return 1
        return static_instances(self.setting, self._input, stage)

    def _create(self, operator: str, *, keeper: bool) -> Node:
        setting = self.setting
        stage = self._stages.get(operator)
        self._born += 1
        name = NodeId(f"{operator}-{self._born:05}")
        random = derive_random(self._seed, "instance", name)
        ways: dict[str, Way] = {}
        for after in self._stages.values():
            if operator in after.parents:
                # What costs nothing is not worth choosing for.
                grouping = setting.grouping if after.scales else "round-robin"
                way = ways[after.name] = make_way(
                    grouping, setting.osg_window, name, self._keys, self._around.clock
                )
                for target in self._members[after.name].values():
                    way.appear(target)
        node = self._nodes[name] = Node(
            name, stage, setting, ways,
            self._input.costs[operator] if stage is not None else [],
            self._rules if stage is not None and stage.scales else None,
            self._around, random, keeper=keeper,
        )  # fmt: skip
        if stage is not None and stage.scales:
            node.meter = make_meter(
                setting.grouping, setting.osg_window, self._keys,
                lambda to, message: self._tell(name, operator, to, message),
            )  # fmt: skip
        self._members[operator][name] = node
        for parent in stage.parents if stage is not None else ():
            for before in self._with_leavers(parent):
                before.ways[operator].appear(node)
                before.ways[operator].changed()
        self._later(
            FIRST_PHASE + random.random() * setting.report_every, lambda: self._report(node)
        )
        if node.trigger is not None:
            self._later(random.random() * setting.period, lambda: self._turn(node))
        return node

    def _with_leavers(self, operator: str) -> list[Node]:
        return [
            node
            for node in self._nodes.values()
            if (node.stage.name if node.stage is not None else SOURCE) == operator
        ]

    def _tell(self, sender: NodeId, operator: str, to: NodeId, message: object) -> None:
        node = self._nodes.get(to)
        if node is not None:
            node.ways[operator].hear(sender, message)

    def _begin(self, node: Node, request: ScaleRequest) -> None:
        assert node.stage is not None
        if isinstance(request, ScaleOutRequested):
            self.trace.actions += request.count
            node.spawning = True
            self._later(self.setting.start_time, lambda: self._spawned(node, request.count))
            return
        self._leave(node)

    def _spawned(self, node: Node, count: int) -> None:
        node.spawning = False
        assert node.stage is not None
        for _ in range(count):
            self._create(node.stage.name, keeper=False)

    def _retire(self, name: NodeId) -> None:
        node = self._nodes.get(name)
        if node is not None and node.may_scale and not node.keeper:
            self._leave(node)

    def _leave(self, node: Node) -> None:
        assert node.stage is not None
        operator = node.stage.name
        self.trace.actions += 1
        node.leaving = True
        del self._members[operator][node.name]
        for parent in node.stage.parents:
            for before in self._with_leavers(parent):
                before.ways[operator].leave(node.name)
                before.ways[operator].changed()
        self._drain(node)

    def _drain(self, node: Node) -> None:
        if not node.idle or any(way.waiting > len(way.pending) for way in node.ways.values()):
            self._later(self.setting.report_every, lambda: self._drain(node))
            return
        del self._nodes[node.name]
        for after in self._nodes.values():
            after.observer.forget(node.name)

    # -- the end of the topology ----------------------------------------------------------

    def _finished(self, sender: str, entry: Tuple) -> None:
        trace = self.trace
        branch = sender.rpartition("-")[0]
        trace.ended += 1
        if (branch, entry.number) in self._seen:
            trace.doubled += 1
        self._seen.add((branch, entry.number))
        latency = self._now - entry.born
        trace.total_latency += latency
        trace.all_late += latency > self.setting.late
        self._period_latency[0] += latency
        self._period_latency[1] += 1
