"""The data plane of an instance that reads a source."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from dsp.stream.batch import Batch, origin
from dsp.stream.graph import DEAD_LETTERS, Edge, Operator
from dsp.stream.metrics import MetricCollector
from dsp.stream.offsets import OffsetStore, OffsetTracker, Pending
from dsp.stream.outlet import Outlet
from dsp.stream.runners import Runner
from dsp.stream.sources.base import Chunk, Source, SourceContext
from dsp.stream.tokens import Token
from dsp.stream.working import make_all

__all__ = ["Reader"]

logger = logging.getLogger(__name__)


class Reader:
    """Reads chunks, gives their records identities, sends them, and knows what is dealt with.

    Args:
        number: of the source in the graph.
        store: where to remember how far it is; None to begin anew each time.
        most_records: of one chunk.
        clock: gives the time on the clock that batches are born by.
        changed: called when something is dealt with, and when the source is over.
    """

    def __init__(
        self,
        operator: Operator,
        number: int,
        edges: list[Edge],
        outlet: Outlet,
        runner: Runner,
        metrics: MetricCollector,
        store: OffsetStore | None,
        *,
        most_records: int,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._source: Source = operator.body
        self._operator = operator
        self._number = number
        self._edges = [edge for edge in edges if edge.target != DEAD_LETTERS]
        self._outlet = outlet
        self._runner = runner
        self._metrics = metrics
        self._store = store
        self._most = most_records
        self._clock = clock
        self._changed = changed
        self._stopping = False
        self._waiting: asyncio.Task[Any] | None = None
        position, count = store.load(operator.name) if store else (None, 0)
        self._tracker = OffsetTracker(position, count)
        self._read = count
        self.over = False

    @property
    def done(self) -> bool:
        """Whether nothing more is read, and all that was is dealt with."""
        return self.over and not self._tracker.open

    @property
    def accepted(self) -> int:
        """Records that were read in this run."""
        return self._metrics.total_in

    def told_to_stop(self) -> bool:
        """Whether it was told to read no more."""
        return self._stopping

    def stop(self) -> None:
        """Read no more."""
        if self._stopping:
            return
        self._stopping = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def run(self) -> None:
        """Read until the source or the run is over."""
        source = self._source
        context = SourceContext(self._off_loop, self._operator.name)
        await source.open(context, self._tracker.position, self._tracker.count)
        try:
            while (chunk := await self._next()) is not None:
                await self._send(chunk)
        finally:
            await source.close()
        self.over = True
        self._changed()

    async def _off_loop(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        return await self._runner.call(lambda: function(*arguments), 0)

    async def _next(self) -> Chunk | None:
        """Read, in this task: a task for each chunk would cost as much as its records do."""
        if self.told_to_stop():
            return None
        task = self._waiting = asyncio.current_task()
        assert task is not None
        try:
            return await self._source.read(self._most)
        except asyncio.CancelledError:
            # Cancelled by stop, and by nobody else.
            if not self.told_to_stop() or task.cancelling() > 1:
                raise
            return None
        finally:
            self._waiting = None
            if self.told_to_stop():
                task.uncancel()

    async def _send(self, chunk: Chunk) -> None:
        count = len(chunk.values)
        offsets = chunk.offsets
        first = self._read
        self._read += count
        if offsets is None:
            start = origin(self._number, first)
            batch = Batch(chunk.values, range(start, start + count), self._clock())
        else:
            ids = [origin(self._number, offset) for offset in offsets]
            batch = Batch(chunk.values, ids, self._clock())
        position = first + count if chunk.position is None else chunk.position
        pending = self._tracker.read(count, position)
        token = Token(lambda: self._dealt_with(pending))
        self._metrics.arrived(count)
        self._metrics.gave(count)
        if any(self._outlet.wants_bytes(edge, count) or edge.key for edge in self._edges):
            made = await self._runner.call(
                lambda: make_all(self._outlet, self._edges, batch), count
            )
        else:
            made = make_all(self._outlet, self._edges, batch)
        for each in made:
            await self._outlet.emit(each, token)
        token.release()

    def _dealt_with(self, pending: Pending) -> None:
        if self._tracker.done(pending) and self._store is not None:
            self._store.save(self._operator.name, self._tracker.position, self._tracker.count)
        self._changed()
