"""The pipeline that is measured: a line of slow operators under a load that goes up and down."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import CallableSink
from dsp.stream.sources.base import Chunk, Position, Source, SourceContext

__all__ = [
    "APPLICATION",
    "SETTING",
    "Setting",
    "Arrivals",
    "Waves",
    "arrivals_of",
    "line",
    "pipeline",
]

APPLICATION = "dsp.lab.coordination.application:pipeline"
SETTING = "DSP_LAB_COORDINATION"
"""Variable of the environment with the setting, for processes that import the pipeline."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is run.

    Attributes:
        operators: in the line, between source and sink; all of them scale.
        core: instances of each that the run starts with.
        service: seconds of work per record.
        low: records per second while the load is low.
        high: while it is high.
        wave: seconds of low, and then of high load.
        waves: how often.
        period: seconds between two decisions of an instance.
        latency: seconds that a message takes, at least, in virtual time.
        jitter: and at most this much more.
    """

    operators: int = 3
    core: int = 1
    service: float = 0.04
    low: float = 15.0
    high: float = 80.0
    wave: float = 6.0
    waves: int = 2
    period: float = 1.0
    latency: float = 0.001
    jitter: float = 0.004

    @property
    def seconds(self) -> float:
        """How long records come."""
        return 2 * self.wave * self.waves

    @property
    def records(self) -> int:
        """How many come."""
        return int(self.waves * self.wave * (self.low + self.high))

    def due(self, number: int) -> float:
        """When a record comes, in seconds after the first one."""
        whole, rest = divmod(number, self.wave * (self.low + self.high))
        quiet = self.wave * self.low
        began = 2 * self.wave * whole
        if rest < quiet:
            return began + rest / self.low
        return began + self.wave + (rest - quiet) / self.high


class Waves(Source):
    """Numbers from 0 on, at the rate of a setting. Replayable."""

    replayable = True

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._next = 0
        self._began = 0.0

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        self._next = int(position or 0)
        self._began = asyncio.get_running_loop().time() - self._setting.due(self._next)

    async def read(self, most: int) -> Chunk | None:
        setting, first = self._setting, self._next
        if first >= setting.records:
            return None
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._began + setting.due(first) - loop.time()))
        elapsed = loop.time() - self._began
        last = first + 1
        while last < min(first + most, setting.records) and setting.due(last) <= elapsed:
            last += 1
        self._next = last
        return Chunk(list(range(first, last)), last)


@dataclass
class Arrivals:
    """What reached the sink, and when."""

    clock: Callable[[], float] = time.monotonic
    values: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def take(self, value: int) -> None:
        """A record is here."""
        self.values.append(value)
        self.times.append(self.clock())


class _Here(CallableSink):
    """A sink that is found again in the graph of a run."""

    def __init__(self, arrivals: Arrivals) -> None:
        super().__init__(arrivals.take)
        self.arrivals = arrivals


def line(setting: Setting) -> Pipeline:
    """Describe the pipeline; its operators are called a, b, c and so on."""
    described = Pipeline("coordination")
    stream = described.source(Waves(setting), name="numbers")

    async def work(number: int) -> int:
        # As a look-up would wait: instances that burn CPU add no capacity on a small machine.
        await asyncio.sleep(setting.service)
        return number

    for place in range(setting.operators):
        stream = stream.map(work, name=chr(ord("a") + place), instances=setting.core)
    stream.sink(_Here(Arrivals()), name="out")
    return described


def arrivals_of(body: Any) -> Arrivals:  # noqa: ANN401
    """What reached a sink of ``line``."""
    assert isinstance(body, _Here)
    return body.arrivals


def pipeline() -> Pipeline:
    """The pipeline of the setting in the environment, for processes."""
    return line(Setting(**orjson.loads(os.environ[SETTING])))
