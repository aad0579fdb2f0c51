"""How many records an instance can take, for 1 to n threads (paper 000, section 4.3.1).

The input rate is raised until the output falls behind; what comes out then is the capacity. With
bodies that release the interpreter's lock it grows with the threads until the cores are used up, or
for ever if they wait; with bodies in plain Python it does not.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from dsp.config import Config
from dsp.errors import DspError
from dsp.lab.following import require_matplotlib
from dsp.lab.paced import PacedSource, alone, check_measurable, sample_of, settings_of
from dsp.stream.app import App
from dsp.stream.graph import Graph
from dsp.stream.metrics import MetricCollector
from dsp.stream.spawners import LocalSpawner

__all__ = ["Capacity", "Effort", "Reading", "calibrate", "draw_capacities"]

POLL = 0.005
# Batches that are waited for at each rate, however long they take.
LEAST_MARKS = 5
# Where the rise begins, as a share of a first guess.
START = 0.5


@dataclass(frozen=True, slots=True)
class Effort:
    """How exactly to measure.

    Attributes:
        seconds: for which each input rate is held, at least.
        growth: factor from one rate to the next.
        behind: share of the input; an output below it has fallen behind.
        records: that a rate is held for, at least: fewer say little.
        sample: records of the application to measure with, at most.
        patience: seconds to wait for them.
    """

    seconds: float = 1.0
    growth: float = 1.25
    behind: float = 0.95
    records: int = 20
    sample: int = 1024
    patience: float = 10.0


@dataclass(frozen=True, slots=True)
class Reading:
    """What one input rate gave.

    Attributes:
        offered: records per second that were sent to the instance.
        taken: records per second that its body was through with.
    """

    offered: float
    taken: float


@dataclass(frozen=True, slots=True)
class Capacity:
    """What an instance with so many threads can do.

    Attributes:
        capacity: records per second.
        readings: at each input rate; the output fell behind at the last one.
    """

    operator: str
    threads: int
    capacity: float
    readings: tuple[Reading, ...]


async def calibrate(
    graph: Graph,
    operators: Sequence[str],
    threads: int,
    config: Config,
    effort: Effort | None = None,
    on_reading: Callable[[str, int, Reading], None] | None = None,
) -> list[Capacity]:
    """Measure the capacity of one instance of each operator, with 1 to so many threads.

    Args:
        graph: the application; what is before an operator runs shortly, to give it records.
        operators: names.
        threads: to go up to.
        config: settings; those of ``[stream]`` count.
        effort: how exactly to measure.
        on_reading: called with operator, threads and what was read, while it goes on.

    Raises:
        ConfigError: there is no such operator, or no record comes to it.
        DspError: the body fails on records that come to it.
    """
    effort = effort or Effort()
    config = settings_of(config)
    for name in operators:
        check_measurable(graph, name)
    found: list[Capacity] = []
    for name in operators:
        values = await sample_of(graph, config, name, most=effort.sample, patience=effort.patience)
        found += [
            await _capacity(graph, config, name, count, values, effort, on_reading)
            for count in range(1, threads + 1)
        ]
    return found


async def _capacity(
    graph: Graph,
    config: Config,
    name: str,
    threads: int,
    values: list[Any],
    effort: Effort,
    on_reading: Callable[[str, int, Reading], None] | None,
) -> Capacity:
    columnar = all(graph.operators[above].columnar for above in graph.upstream(name))
    source = PacedSource(values, columnar=columnar)
    app = App(alone(graph, name, threads, source), config, LocalSpawner(), None, None, None)
    async with app:
        gauge = _Gauge(app, name, source, effort)
        readings: list[Reading] = []
        rate = START * await gauge.guess(threads)
        behind = 0
        while behind < 2:  # once may be the machine's other work
            reading = await gauge.read(rate)
            readings.append(reading)
            if on_reading is not None:
                on_reading(name, threads, reading)
            if reading.taken < effort.behind * reading.offered:
                behind += 1
            else:
                behind = 0
                rate *= effort.growth
        source.flow(0.0)
    capacity = sum(reading.taken for reading in readings[-behind:]) / behind
    return Capacity(name, threads, capacity, tuple(readings))


class _Gauge:
    """Offers records to the instance of an application, and sees how many its body takes."""

    def __init__(self, app: App, name: str, source: PacedSource, effort: Effort) -> None:
        self._app = app
        self._name = name
        self._source = source
        self._effort = effort
        self._loop = asyncio.get_running_loop()
        self._metrics = self._find()

    def _find(self) -> MetricCollector:
        instances = self._app.host.instances.values()
        return next(each.metrics for each in instances if each.operator.name == self._name)

    async def guess(self, threads: int) -> float:
        """Tell roughly how many records per second are taken: more and more, until that lasts."""
        records = threads
        while True:
            started = self._loop.time()
            wanted = await self._taken() + records
            self._source.give(records)
            while await self._taken() < wanted:  # noqa: ASYNC110
                await asyncio.sleep(POLL)
            seconds = self._loop.time() - started
            if seconds >= self._effort.seconds / 4:
                return records / seconds
            records *= 2

    async def read(self, rate: float) -> Reading:
        """Offer records at a rate for a while."""
        self._source.flow(rate)
        await asyncio.sleep(self._effort.seconds / 4)
        until = self._loop.time() + max(self._effort.seconds, self._effort.records / rate)
        # Bodies are through with batches: from the end of one to the end of another one is exact.
        total = await self._taken()
        marks: list[tuple[float, int]] = []
        while self._loop.time() < until or len(marks) < LEAST_MARKS:
            await asyncio.sleep(POLL)
            if (now := await self._taken()) != total:
                total = now
                marks.append((self._loop.time(), total))
        (first, before), (last, after) = marks[0], marks[-1]
        return Reading(rate, (after - before) / (last - first))

    async def _taken(self) -> int:
        if not self._app.running:
            await self._app.join()
            raise DspError(f"{self._name} ended while it was measured")
        if self._metrics.failed:
            raise DspError(f"{self._name} fails on records that come to it: see the log for why")
        return self._metrics.total_worked


def draw_capacities(path: Path, capacities: Sequence[Capacity]) -> None:
    """Draw capacity over threads, a line for each operator, as figure 4.6 of paper 000.

    Args:
        path: where to; its suffix decides the format.
        capacities: those of an operator next to each other.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    for name, several in groupby(capacities, key=lambda each: each.operator):
        line = [(each.threads, each.capacity) for each in several]
        axes.plot(*zip(*line, strict=True), marker="o", label=name)
    axes.set_xlabel("threads")
    axes.set_ylabel("records/s of one instance")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
