"""Records that come at a rate which changes by steps."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from dsp.stream.sources.base import Chunk, Position, Source, SourceContext

__all__ = ["Load", "SteppedSource"]

THESIS = ((300.0, 200.0), (300.0, 500.0), (300.0, 100.0))


@dataclass(frozen=True, slots=True)
class Load:
    """What comes when.

    Attributes:
        steps: (seconds, records per second), one after the other.
    """

    steps: tuple[tuple[float, float], ...]

    @classmethod
    def of_the_thesis(cls, factor: float) -> Self:
        """200, then 500, then 100 records per second, for 300 s each, divided by a factor."""
        return cls(tuple((seconds / factor, rate) for seconds, rate in THESIS))

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return sum(seconds for seconds, _ in self.steps)

    @property
    def records(self) -> int:
        """How many records there are."""
        return self.due(self.seconds)

    def due(self, seconds: float) -> int:
        """How many records are due after so many seconds."""
        count = 0.0
        for span, rate in self.steps:
            count += rate * min(span, max(0.0, seconds))
            seconds -= span
        return int(count + 1e-6)

    def when(self, number: int) -> float:
        """After how many seconds a record is due, counted from 1."""
        began = 0.0
        for span, rate in self.steps:
            if number <= rate * span + 1e-6:
                return began + number / rate
            number -= int(rate * span + 1e-6)
            began += span
        return began


class SteppedSource(Source):
    """Values of an iterable, at the rate of a load. Replayable.

    Args:
        make: gives the values, the same ones each time.
        load: when they come.
    """

    replayable = True

    def __init__(self, make: Callable[[], Iterable[Any]], load: Load) -> None:
        self._make = make
        self._load = load
        self._left: Iterator[Any] = iter(())
        self._given = 0
        self._began = 0.0

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        self._left = iter(self._make())
        self._given = int(position or 0)
        for _ in islice(self._left, self._given):
            pass
        self._began = asyncio.get_running_loop().time() - self._load.when(self._given)

    async def read(self, most: int) -> Chunk | None:
        loop = asyncio.get_running_loop()
        wait = self._began + self._load.when(self._given + 1) - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        due = self._load.due(loop.time() - self._began) - self._given
        values = list(islice(self._left, max(1, min(most, due))))
        if not values:
            return None
        self._given += len(values)
        return Chunk(values, self._given)
