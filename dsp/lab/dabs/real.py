"""The experiments of paper 002 on the engine itself: in a world, or as processes of this machine.

In a world tuples take their time in virtual time. On a machine they sleep for it: a few cores would
not do for as many instances as the experiments need. What is seen then is the engine, its processes
and its messages, not contention for the CPU.
"""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any

import orjson

from dsp.config import Config
from dsp.core.randomness import derive_seed
from dsp.errors import ConfigError, SimulationError
from dsp.lab.dabs.setting import Setting, rules_of
from dsp.lab.dabs.simulator import Input, Trace, expected_of, make_input, static_instances
from dsp.lab.dabs.topologies import SOURCE, Stage, passes, topology
from dsp.stream.app import App, run
from dsp.stream.pipeline import Pipeline, Stream
from dsp.stream.sinks.base import Sink
from dsp.stream.sources.base import Chunk, Position, Source, SourceContext
from dsp.stream.spawners import SpawnRequest
from dsp.testing import Host, LinkConditions, World
from dsp.testing.pipelines import WorldSpawner

__all__ = ["run_in_world", "run_on_processes", "application"]

ORDER = "DSP_LAB_DABS"
"""Environment variable by which processes of an experiment know which one it is."""

Value = list[float]
"""A tuple on its way: number, value, and when it was due."""


class _Due(Source):
    """Gives tuples when they are due, and knows how many wait."""

    replayable = True

    def __init__(self, what: Input) -> None:
        self._tuples = what.tuples
        self._given = 0
        self._known = 0
        self.began = 0.0
        self.clock: Callable[[], float] = lambda: 0.0

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        # Kept: the sink may be called in a thread, where no loop runs.
        self.clock = asyncio.get_running_loop().time
        self.began = self.clock()

    @property
    def waiting(self) -> int | None:
        now = asyncio.get_running_loop().time() - self.began
        while self._known < len(self._tuples) and self._tuples[self._known].born <= now:
            self._known += 1
        return max(0, self._known - self._given)

    async def read(self, most: int) -> Chunk | None:
        if self._given == len(self._tuples):
            return None
        due = self.began + self._tuples[self._given].born
        await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
        count = max(1, min(most, self.waiting or 0))
        some = self._tuples[self._given : self._given + count]
        self._given += len(some)
        return Chunk([list(each) for each in some], self._given)


class _End(Sink):
    """Notes when tuples come to the end."""

    blocking = False

    def __init__(self, setting: Setting, source: _Due, trace: Trace) -> None:
        self._setting = setting
        self._source = source
        self._trace = trace
        self._times: dict[int, int] = {}
        self.recent = [0.0, 0]

    def write(self, values: Sequence[Value], ids: Sequence[int]) -> None:
        now = self._source.clock() - self._source.began
        trace = self._trace
        for number, _, born in values:
            latency = now - born
            self._times[int(number)] = self._times.get(int(number), 0) + 1
            trace.ended += 1
            trace.total_latency += latency
            trace.all_late += latency > self._setting.late
            self.recent[0] += latency
            self.recent[1] += 1

    def doubled(self, expected: Callable[[int], int]) -> int:
        """Tuples that came more often than they should."""
        return sum(max(0, times - expected(number)) for number, times in self._times.items())


def _body(stage: Stage, costs: Sequence[float], real: bool, value: Value) -> list[Value]:
    if real:
        time.sleep(costs[int(value[1])])
    return [value] if passes(stage, int(value[0])) else []


def _key(value: Value) -> bytes:
    return int(value[1]).to_bytes(4, "big")


def _build(
    setting: Setting, what: Input, source: Source, sink: Sink | Callable[[Any], object], real: bool
) -> Pipeline:
    pipeline = Pipeline("dabs")
    streams: dict[str, Stream] = {SOURCE: pipeline.source(source, name=SOURCE)}
    for stage in topology(setting.topology):
        before = [streams[parent] for parent in stage.parents]
        stream = before[0] if len(before) == 1 else pipeline.merge(*before)
        if not stage.scales:
            stream.grouped("round-robin").sink(sink, name=stage.name)
            continue
        key = None if setting.grouping == "round-robin" else _key
        costs = what.costs[stage.name]
        least = static_instances(setting, what, stage) if rules_of(setting) is None else 1
        streams[stage.name] = stream.grouped(setting.grouping, key).flat_map(
            partial(_body, stage, costs, real),
            name=stage.name,
            instances=least,
            minimum=least,
            maximum=least if rules_of(setting) is None else setting.maximum,
            service_time=partial(_seconds, costs),
        )
    return pipeline


def _seconds(costs: Sequence[float], value: Value) -> float:
    return costs[int(value[1])]


def application() -> Pipeline:
    """The experiment that the environment names; what a process of it imports.

    Raises:
        ConfigError: the environment names none.
    """
    order = os.environ.get(ORDER)
    if order is None:
        raise ConfigError(f"{ORDER} is not set: dsp lab dabs sets it for its processes")
    given = orjson.loads(order)
    setting = Setting(**given["setting"])
    what = make_input(setting, given["seed"])
    source, sink = _ends.get(order) or (_Due(what), _nothing)
    return _build(setting, what, source, sink, real=True)


_ends: dict[str, tuple[_Due, _End]] = {}
"""Source and sink of the experiment that this process runs; they stay here."""


def _nothing(value: object) -> None:
    raise SimulationError("a tuple came to the end in a process that has none")


def _config(setting: Setting, url: str) -> Config:
    rules = rules_of(setting)
    return Config.model_validate(
        {
            "transport": {"url": url},
            "stream": {
                "report_every": setting.report_every,
                "window_time": setting.window_time,
                "drain_timeout": 3600.0,
            },
            "balance": {"osg_window": setting.osg_window},
            "scaling": rules.model_dump() if rules is not None else {},
        }
    )


async def _watch(app: App, setting: Setting, trace: Trace, sink: _End, source: _Due) -> None:
    """Take down how things are, in every period."""
    stages = [stage for stage in topology(setting.topology) if stage.scales]
    critical = max(stages, key=lambda stage: stage.cost).name
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(setting.period)
        operators = app.summary.operators
        total, count = sink.recent
        sink.recent = [0.0, 0]
        trace.times.append(loop.time() - source.began)
        trace.instances.append(operators[critical].instances)
        trace.running.append(sum(operators[stage.name].instances for stage in stages))
        trace.latencies.append(total / count if count else None)
        trace.late.append(trace.all_late)


async def _experiment(app: App, setting: Setting, trace: Trace, sink: _End, source: _Due) -> None:
    async with app:
        watching = asyncio.ensure_future(_watch(app, setting, trace, sink, source))
        try:
            summary = await app.join()
        finally:
            watching.cancel()
            await asyncio.wait([watching])
        end = asyncio.get_running_loop().time() - source.began
    trace.times.append(end)
    for series, value in ((trace.instances, 1), (trace.running, 1), (trace.late, trace.all_late)):
        series.append(series[-1] if series else value)
    trace.latencies.append(None)
    spans = [later - earlier for earlier, later in pairwise([0.0, *trace.times])]
    trace.seconds = sum(span * n for span, n in zip(spans, trace.running, strict=True))
    every = summary.operators.values()
    trace.actions = sum(operator.created + operator.left for operator in every)


def _checked(setting: Setting, what: Input, trace: Trace, sink: _End) -> Trace:
    expected = expected_of(setting, what)
    trace.expected = sum(expected)
    trace.doubled = sink.doubled(expected.__getitem__)
    return trace


class _SlowSpawner(WorldSpawner):
    """Creates instances of a world, which takes its time."""

    start_time = 0.0

    async def spawn(self, host: Any, request: SpawnRequest) -> Any:  # noqa: ANN401
        await asyncio.sleep(self.start_time)
        return await super().spawn(host, request)


def run_in_world(setting: Setting, seed: int) -> Trace:
    """Run an experiment on the engine, in virtual time."""
    what, trace = make_input(setting, seed), Trace()
    source = _Due(what)
    sink = _End(setting, source, trace)
    with World(seed, LinkConditions(latency=0.001, jitter=0.001)) as world:
        pipeline = _build(setting, what, source, sink, real=False)

        async def main(host: Host) -> None:
            config = _config(setting, host.url)
            spawner = _SlowSpawner(world, pipeline.graph(), config)
            spawner.start_time = setting.start_time
            app = run(pipeline, config, spawner=spawner, seed=seed)
            await _experiment(app, setting, trace, sink, source)

        host = world.add_host("app", main)
        world.run_until(lambda: host.finished, limit=100 * setting.duration)
    return _checked(setting, what, trace, sink)


def run_on_processes(setting: Setting, seed: int) -> Trace:
    """Run an experiment on this machine, each instance a process, over ZeroMQ."""
    what, trace = make_input(setting, seed), Trace()
    source = _Due(what)
    sink = _End(setting, source, trace)
    order = orjson.dumps({"setting": asdict(setting), "seed": seed}).decode()
    before = os.environ.get(ORDER)
    os.environ[ORDER] = order
    _ends[order] = source, sink
    try:
        config = _config(setting, "zmq://127.0.0.1:0")
        app = run(f"{__name__}:application", config, processes=True, seed=derive_seed(seed, "app"))
        asyncio.run(_experiment(app, setting, trace, sink, source))
    finally:
        del _ends[order]
        if before is None:
            del os.environ[ORDER]
        else:
            os.environ[ORDER] = before
    return _checked(setting, what, trace, sink)
