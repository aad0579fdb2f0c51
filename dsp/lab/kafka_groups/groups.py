"""A job in the arrangement of thesis chapter 4: a topic for each operator, shared by a group.

Replicas are tasks of this process: that spares them the start of a process. They come and go as
they are told, because what is looked at is who shares out the records, not who decides.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dsp.errors import ConfigError, DspError
from dsp.lab.kafka_groups.flow import Flow
from dsp.lab.kafka_groups.replica import Replica
from dsp.lab.kafka_groups.stage import GroupSettings, Stage
from dsp.lab.timed import TimedSink
from dsp.stream.batch import origin
from dsp.stream.graph import DEAD_LETTERS, Graph, Kind, Operator
from dsp.stream.history import Line
from dsp.stream.sources.base import SourceContext

__all__ = ["run_groups", "line_of", "with_timed_sink"]

READ = 512
POLL = 0.02
RETRIES = 2

Progress = Callable[[int], None]


def line_of(graph: Graph) -> list[Operator]:
    """Give the operators of a graph that is a line, from the source to the sink.

    Raises:
        ConfigError: it is none, or an operator of it takes columns.
    """
    operators = [each for name, each in graph.operators.items() if name != DEAD_LETTERS]
    is_line = all(
        [name for name in graph.downstream(one.name) if name != DEAD_LETTERS] == [other.name]
        for one, other in pairwise(operators)
    )
    if not is_line or operators[0].kind is not Kind.SOURCE or len(operators) < 3:
        raise ConfigError(
            f"pipeline {graph.name!r} is no line of a source, bodies and a sink: choose one that is"
        )
    if columnar := next((each.name for each in operators if each.columnar), None):
        raise ConfigError(f"{columnar} takes columns, and records of a topic are rows")
    return operators


def with_timed_sink(graph: Graph) -> tuple[Graph, TimedSink]:
    """Give a graph like another, with a sink that notes what comes when."""
    sink = next(each for each in graph.sinks() if each.name != DEAD_LETTERS)
    timed = TimedSink(sink.body)
    operators = {**graph.operators, sink.name: replace(sink, body=timed)}
    return replace(graph, operators=operators), timed


async def run_groups(
    graph: Graph,
    operator: str,
    schedules: Mapping[str, Line],
    bootstrap: str,
    settings: GroupSettings | None = None,
    progress: Progress = lambda records: None,
) -> tuple[Flow, set[int]]:
    """Run a job once.

    Args:
        graph: the job; a line.
        operator: the one whose replicas are looked at.
        schedules: how many replicas operators have from when on, in seconds from the first record
            at the sink; one where nothing is said.
        bootstrap: the brokers.
        settings: of topics and groups.
        progress: told how many records have reached the sink.

    Returns:
        The run, and the identities of the records that had to reach the sink.

    Raises:
        ConfigError: the graph is no line.
        DspError: a replica failed.
    """
    graph, timed = with_timed_sink(graph)
    run = _Run(graph, bootstrap, settings or GroupSettings())
    async with run.topics(), _opened(timed):
        try:
            await run.start(schedules)
            await run.flow(schedules, timed, progress)
            await run.leave()
        finally:
            await run.abort()
    return run.outcome(operator, timed), run.stages[-2].made


class _Run:
    def __init__(self, graph: Graph, bootstrap: str, settings: GroupSettings) -> None:
        self._source, *rest = line_of(graph)
        self._bootstrap = bootstrap
        self._settings = settings
        prefix = f"{graph.name}-{uuid.uuid4().hex[:8]}"
        topics = [f"{prefix}-{each.name}" for each in rest]
        codecs = [before.codec for before in (self._source, *rest[:-1])]
        self.stages = [
            Stage(each, codec, topic, target, each.codec, RETRIES)
            for each, codec, topic, target in zip(
                rest, codecs, topics, [*topics[1:], None], strict=True
            )
        ]
        self._replicas: dict[str, list[Replica]] = {each.name: [] for each in rest}
        self._number = dict.fromkeys(self._replicas, 0)
        self._leaving: dict[asyncio.Task[None], None] = {}
        self._given: set[int] = set()
        self._input_rate: Line = []

    @asynccontextmanager
    async def topics(self) -> AsyncIterator[None]:
        """Create the data topics; delete them in the end."""
        names = [stage.topic for stage in self.stages]
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            new = [NewTopic(name, self._settings.partitions, 1) for name in names]
            answer = await admin.create_topics(new)
            if refused := [each for each in answer.topic_errors if each[1]]:
                raise DspError(f"topics cannot be created: {refused}")
            yield
            await admin.delete_topics(names)
        finally:
            await admin.close()

    async def start(self, schedules: Mapping[str, Line]) -> None:
        """Start the replicas that are there before the first record."""
        for stage in reversed(self.stages):
            name = stage.operator.name
            before = [count for at, count in schedules.get(name, ()) if at <= 0]
            await self._resize(stage, int(before[-1]) if before else 1)
        joined = [each.joined.wait() for some in self._replicas.values() for each in some]
        async with asyncio.timeout(self._settings.patience):
            await asyncio.gather(*joined)

    async def _resize(self, stage: Stage, count: int) -> None:
        name = stage.operator.name
        replicas = self._replicas[name]
        while len(replicas) < count:
            number = self._number[name] = self._number[name] + 1
            replicas.append(Replica(stage, number, self._bootstrap, self._settings))
        while len(replicas) > max(1, count):
            task = asyncio.ensure_future(replicas.pop().leave())
            self._leaving[task] = None

    async def flow(
        self, schedules: Mapping[str, Line], sink: TimedSink, progress: Progress
    ) -> None:
        """Give what the source has, and wait until it is through."""
        async with asyncio.TaskGroup() as group:
            aside = [group.create_task(self._watch(lambda: progress(len(sink.ids))))]
            for stage in self.stages:
                line = schedules.get(stage.operator.name, [])
                aside.append(group.create_task(self._follow(stage, line, sink)))
            await self._give()
            wanted: set[int] = self._given
            for stage in self.stages:
                await self._through(stage, len(wanted))
                wanted = stage.made
            for task in aside:
                task.cancel()

    async def _give(self) -> None:
        source, settings = self._source.body, self._settings
        first = self.stages[0]
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap, acks="all", enable_idempotence=True, linger_ms=0
        )
        await producer.start()
        try:
            await source.open(SourceContext(asyncio.to_thread, self._source.name), None, 0)
            before, since = 0, time.monotonic()
            while (chunk := await source.read(READ)) is not None:
                sending = []
                for value in chunk.values:
                    number = len(self._given)
                    identity = origin(0, number)
                    self._given.add(identity)
                    sent = await producer.send(
                        first.topic,
                        first.codec.encode([value]),
                        partition=number % settings.partitions,
                        headers=[("dsp-id", f"{identity:x}".encode())],
                    )
                    sending.append(sent)
                await asyncio.gather(*sending)
                now = time.monotonic()
                if now - since >= settings.sample:
                    self._input_rate.append((now, (len(self._given) - before) / (now - since)))
                    before, since = len(self._given), now
        finally:
            await source.close()
            await producer.stop()

    async def _follow(self, stage: Stage, line: Line, sink: TimedSink) -> None:
        """Let replicas come and go as the schedule says."""
        while not sink.arrivals:  # noqa: ASYNC110 - sinks tell nobody
            await asyncio.sleep(POLL)
        began = sink.arrivals[0][0]
        for at, count in line:
            if at > 0:
                await asyncio.sleep(began + at - time.monotonic())
                await self._resize(stage, int(count))

    async def _watch(self, tell: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._settings.sample)
            tell()
            for some in self._replicas.values():
                for each in some:
                    each.check()

    async def _through(self, stage: Stage, wanted: int) -> None:
        """Wait until an operator has processed so many records, or gets no further."""
        reached, until = -1, 0.0
        while len(stage.seen) < wanted:
            if len(stage.seen) > reached:
                reached, until = len(stage.seen), time.monotonic() + self._settings.patience
            elif time.monotonic() > until:
                return
            await asyncio.sleep(POLL)

    async def leave(self) -> None:
        """Let everybody leave in good order."""
        everybody = [each.leave() for some in self._replicas.values() for each in some]
        await asyncio.gather(*everybody, *self._leaving)

    async def abort(self) -> None:
        """End whoever is left."""
        for task in self._leaving:
            task.cancel()
        for some in self._replicas.values():
            for each in some:
                await each.abort()

    def outcome(self, operator: str, timed: TimedSink) -> Flow:
        """Give what was seen, in seconds from the first record at the sink on."""
        began = timed.arrivals[0][0] if timed.arrivals else 0.0
        watched = next(each for each in self.stages if each.operator.name == operator)
        shift = partial(_shifted, began=began)
        return Flow(
            name="Kafka groups",
            given=len(self._given),
            arrivals=[(at - began, count) for at, count in timed.arrivals],
            ids=timed.ids,
            repeats=timed.repeats,
            input_rate=shift(self._input_rate),
            instances={each.operator.name: shift(each.instances) for each in self.stages},
            rates={name: shift(line) for name, line in watched.rates.items()},
            rebalances=[(one - began, other - began) for one, other in watched.rebalances],
            # Those that were there before the first record waited for the group itself.
            joins=[
                wait
                for wait, (at, _) in zip(watched.joins, _came(watched), strict=True)
                if at > began
            ],
        )


@asynccontextmanager
async def _opened(sink: TimedSink) -> AsyncIterator[None]:
    if (opening := sink.open()) is not None:
        await opening
    try:
        yield
    finally:
        if (closing := sink.close()) is not None:
            await closing


def _came(stage: Stage) -> Line:
    """The changes by which a replica came."""
    counts = [0.0, *(count for _, count in stage.instances)]
    return [
        point for point, before in zip(stage.instances, counts, strict=False) if point[1] > before
    ]


def _shifted(line: Sequence[tuple[float, float]], began: float) -> Line:
    return [(at - began, value) for at, value in line]
