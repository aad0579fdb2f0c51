"""A sink around another one that notes what came when."""

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dsp.stream.signatures import is_async
from dsp.stream.sinks.base import Sink

__all__ = ["TimedSink", "longest_gap"]


class TimedSink(Sink):
    """Hands everything to another sink. For runs in real time.

    Args:
        inner: the sink that takes the records.

    Attributes:
        arrivals: (monotonic time, records) of each write.
        ids: identities of all records that came.
        repeats: how many came again.
    """

    def __init__(self, inner: Sink) -> None:
        self.inner = inner
        self.columnar = inner.columnar
        self.blocking = inner.blocking
        self.remembers = inner.remembers
        self.arrivals: list[tuple[float, int]] = []
        self.ids: set[int] = set()
        self.repeats = 0
        if is_async(inner.write):
            self.write = self._write_async  # type: ignore[method-assign]
        if is_async(inner.open):
            self.open = inner.open  # type: ignore[method-assign]
        if is_async(inner.close):
            self.close = inner.close  # type: ignore[method-assign]

    def check(self) -> None:
        self.inner.check()

    def open(self) -> Any:  # noqa: ANN401
        return self.inner.open()

    def write(self, values: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401
        self.inner.write(values, ids)
        self._note(ids)

    async def _write_async(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        await self.inner.write(values, ids)
        self._note(ids)

    def close(self) -> Any:  # noqa: ANN401
        return self.inner.close()

    def _note(self, ids: Sequence[int]) -> None:
        self.arrivals.append((time.monotonic(), len(ids)))
        before = len(self.ids)
        self.ids.update(ids)
        self.repeats += len(ids) - (len(self.ids) - before)


def longest_gap(arrivals: Sequence[tuple[float, int]]) -> float:
    """The longest time in seconds between two records that came one after the other."""
    return max((after - before for (before, _), (after, _) in pairwise(arrivals)), default=0.0)
