"""One operator alone, between a source whose rate is turned and a sink that keeps nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dsp.config import Config
from dsp.errors import ConfigError
from dsp.stream.app import App
from dsp.stream.codecs import JsonCodec, to_columns
from dsp.stream.graph import Edge, Graph, Grouping, Kind, Operator
from dsp.stream.sinks.base import Sink
from dsp.stream.sources.base import Chunk, Source
from dsp.stream.spawners import LocalSpawner

__all__ = ["PacedSource", "alone", "check_measurable", "sample_of", "settings_of"]

# Records come this many seconds apart at least: together then, as a network would bring them.
TICK = 0.001
# A source that is behind gives what came in so many seconds at once, not all that it owes: a stream
# at that rate comes in such pieces, and several threads can share them.
PIECE = 0.01
# Values to choose slices from; a shorter sample is repeated.
LEAST_VALUES = 4096
POLL = 0.01


class PacedSource(Source):
    """Gives a sample of values over and over, at a rate that may be changed while it runs.

    Args:
        values: to give, at least one.
        columnar: whether they are given as columns.
    """

    def __init__(self, values: Sequence[Any], *, columnar: bool = False) -> None:
        rows = [*values] * -(-LEAST_VALUES // len(values))
        self.columnar = columnar
        self._values: Any = to_columns(rows) if columnar else rows
        self._size = len(rows)
        self._at = 0
        self._rate = 0.0
        self._began = 0.0
        self._given = 0
        self._owed = 0
        self._wake = asyncio.Event()

    def flow(self, rate: float) -> None:
        """From now on give so many records per second; what was owed before is forgotten."""
        self._rate = rate
        self._began = asyncio.get_running_loop().time()
        self._given = self._owed = 0
        self._wake.set()

    def give(self, records: int) -> None:
        """Give so many records as fast as they are taken."""
        self._owed += records
        self._wake.set()

    async def read(self, most: int) -> Chunk | None:
        while not (due := self._due()):
            self._wake.clear()
            pause = max(TICK, 1 / self._rate) if self._rate else None
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue
        if self._rate:
            most = min(most, max(1, int(self._rate * PIECE)))
        count = min(most, due, self._size - self._at)
        start, self._at = self._at, (self._at + count) % self._size
        if self._owed:
            self._owed -= count
        else:
            self._given += count
        if self.columnar:
            return Chunk(self._values.slice(start, count))
        return Chunk(self._values[start : start + count])

    def _due(self) -> int:
        if self._owed:
            return self._owed
        passed = asyncio.get_running_loop().time() - self._began
        return int(passed * self._rate + 1e-9) - self._given


class _Nowhere(Sink):
    """Lets go of everything."""

    blocking = False

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        pass


class _Sampler(Sink):
    """Keeps the first values."""

    blocking = False

    def __init__(self, most: int) -> None:
        self.values: list[Any] = []
        self._most = most

    @property
    def full(self) -> bool:
        return len(self.values) >= self._most

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.values += values[: self._most - len(self.values)]


def check_measurable(graph: Graph, name: str) -> None:
    """Make sure that the capacity of an operator can be measured.

    Raises:
        ConfigError: there is no such operator, or it is a source or a sink.
    """
    operator = graph.operators.get(name)
    if operator is None:
        known = ", ".join(_with_bodies(graph)) or "none that have a body"
        raise ConfigError(f"pipeline {graph.name!r} has no operator {name!r}; there are {known}")
    if operator.kind in (Kind.SOURCE, Kind.SINK):
        raise ConfigError(
            f"{name} is a {operator.kind.value}: only operators with a body can be calibrated"
        )


def _with_bodies(graph: Graph) -> list[str]:
    ends = (Kind.SOURCE, Kind.SINK)
    return [each.name for each in graph.operators.values() if each.kind not in ends]


def settings_of(config: Config) -> Config:
    """The settings of a measurement: in this process, and with no trace of it kept.

    Args:
        config: of the application, whose ``[stream]`` table counts.
    """
    stream = config.stream.model_copy(update={"state_directory": None})
    return Config(stream=stream)


async def sample_of(
    graph: Graph, config: Config, name: str, *, most: int, patience: float
) -> list[Any]:
    """Take records that come to an operator: run what is before it until there are enough.

    Args:
        graph: the application.
        config: settings, as ``settings_of`` gives them.
        name: of the operator.
        most: records to take.
        patience: seconds after which those that came have to be enough.

    Raises:
        ConfigError: none came.
    """
    sampler = _Sampler(most)
    before = _before(graph, name)
    operators = [_single(graph.operators[each]) for each in before]
    operators.append(Operator(name, Kind.SINK, sampler, JsonCodec(), elastic=False))
    edges = [edge for edge in graph.edges.values() if edge.target in {*before, name}]
    app = App(Graph.check(graph.name, operators, edges), config, LocalSpawner(), None, None, None)
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    async with app:
        while app.running and not sampler.full and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(POLL)
    if not sampler.values:
        raise ConfigError(
            f"no record came to {name} within {patience:g} s: nothing to measure with"
        )
    return sampler.values


def alone(graph: Graph, name: str, threads: int, source: PacedSource) -> Graph:
    """Put one instance of an operator between a paced source and a sink that keeps nothing."""
    # What is declared of the capacity is what is asked here.
    operator = replace(_single(graph.operators[name]), threads=threads, capacity=None)
    feed, drain = f"{name[:58]}-feed", f"{name[:58]}-end"
    incoming = next(edge.codec for edge in graph.edges.values() if edge.target == name)
    return Graph.check(
        graph.name,
        [
            Operator(feed, Kind.SOURCE, source, incoming, elastic=False),
            operator,
            Operator(drain, Kind.SINK, _Nowhere(), JsonCodec(), elastic=False),
        ],
        [
            Edge(feed, name, Grouping.ROUND_ROBIN, incoming),
            Edge(name, drain, Grouping.ROUND_ROBIN, operator.codec),
        ],
    )


def _before(graph: Graph, name: str) -> set[str]:
    found: set[str] = set()
    new = {*graph.upstream(name)}
    while new:
        found |= new
        new = {above for each in new for above in graph.upstream(each)} - found
    return found


def _single(operator: Operator) -> Operator:
    return replace(operator, elastic=False, instances=1, minimum=1, maximum=None)
