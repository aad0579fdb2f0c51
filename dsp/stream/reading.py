"""The data plane of an instance that reads a source."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dsp.stream.batch import Batch, origin
from dsp.stream.graph import DEAD_LETTERS, Edge, Operator
from dsp.stream.letters import DeadLetters
from dsp.stream.metrics import MetricCollector
from dsp.stream.offsets import Ends, OffsetTracker, Pending, ends_of
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Made
from dsp.stream.preparing import make_fitting
from dsp.stream.runners import Runner
from dsp.stream.sources.base import Chunk, Source, SourceContext
from dsp.stream.steps import Failure
from dsp.stream.tokens import Token

if TYPE_CHECKING:
    from dsp.stream.offset_store import OffsetStore

__all__ = ["Reader"]

logger = logging.getLogger(__name__)

SETTLE_EVERY = 1 << 16


class Reader:
    """Reads chunks, gives their records identities, sends them, and knows what is dealt with.

    Args:
        number: of the source in the graph.
        store: where to remember how far it is; None to begin anew each time.
        most_records: of one chunk.
        clock: gives the time on the clock that batches are born by.
        changed: called when something is dealt with, and when the source is over.
        settled: told of records that will never be read again, and how to make sure of that.
    """

    def __init__(
        self,
        operator: Operator,
        number: int,
        edges: list[Edge],
        outlet: Outlet,
        runner: Runner,
        metrics: MetricCollector,
        store: "OffsetStore | None",
        *,
        most_records: int,
        clock: Callable[[], float],
        changed: Callable[[], None],
        settled: Callable[[Ends, Callable[[], None]], None] = lambda ends, sure: None,
    ) -> None:
        self._settled = settled
        self._ends: tuple[int, Ends] = (0, {})
        self._source: Source = operator.body
        self._operator = operator
        self._number = number
        self._edges = [edge for edge in edges if edge.target != DEAD_LETTERS]
        self.letters = DeadLetters(operator.name, operator.name, edges, outlet, metrics)
        self._outlet = outlet
        self._runner = runner
        self._metrics = metrics
        self._store = store
        self._most = most_records
        self._clock = clock
        self._changed = changed
        self._stopping = False
        self._waiting: asyncio.Task[Any] | None = None
        self._opened = False
        position, count = store.load(operator.name) if store else (None, 0)
        self._tracker = OffsetTracker(position, count)
        self._read = count
        self.over = False

    @property
    def done(self) -> bool:
        """Whether nothing more is read, and all that was is dealt with."""
        return self.over and not self._tracker.open

    @property
    def unfinished(self) -> int:
        """Records that were read and are not dealt with."""
        return self._tracker.unfinished

    @property
    def accepted(self) -> int:
        """Records that were read in this run."""
        return self._metrics.total_in

    def told_to_stop(self) -> bool:
        """Whether it was told to read no more."""
        return self._stopping

    def stop(self) -> None:
        """Read no more, but what the source took in already, if it can tell."""
        if self._source.drains:
            self._source.stop()
            return
        if self._stopping:
            return
        self._stopping = True
        if self._waiting is not None:
            self._waiting.cancel()

    async def run(self) -> None:
        """Read until the source or the run is over."""
        context = SourceContext(self._off_loop, self._operator.name)
        self._opened = True
        await self._source.open(context, self._tracker.position, self._tracker.count)
        while (chunk := await self._next()) is not None:
            await self._send(chunk)
            # Who comes after has its turn: records are dealt with while they are at hand.
            await asyncio.sleep(0)
        self.over = True
        self._changed()

    async def close(self) -> None:
        """Close the source, after all that it could be told of what is dealt with."""
        if self._opened:
            self._opened = False
            await self._source.close()

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
        batch = Batch(chunk.values, self._ids(chunk, count), self._clock())
        failures = self._failures(chunk, count)
        total = count + len(failures)
        self._read += total
        position = self._read if chunk.position is None else chunk.position
        read = [*batch.ids, *(each.id for each in failures)] if failures else batch.ids
        pending = self._tracker.read(total, position, ends_of(read))
        token = Token(lambda: self._dealt_with(pending))
        self._metrics.arrived(total)
        self._metrics.gave(count)
        made, unfit = await self._made(batch) if count else ([], [])
        for each in made:
            if not self._outlet.emit_at_once(each, token):
                await self._outlet.emit(each, token)
        if failures or unfit:
            await self.letters.bury([*failures, *unfit], batch.born, token)
        token.release()

    def _ids(self, chunk: Chunk, count: int) -> Sequence[int]:
        offsets = range(self._read, self._read + count) if chunk.offsets is None else chunk.offsets
        if isinstance(offsets, range) and offsets.step == 1:
            first = origin(self._number, offsets.start)
            return range(first, first + count)
        return [origin(self._number, offset) for offset in offsets]

    def _failures(self, chunk: Chunk, count: int) -> list[Failure]:
        if not chunk.failures:
            return []
        after = self._read + count
        return [
            Failure(
                origin(self._number, after + place if chunk.offsets is None else each.offset),
                each.value,
                each.error,
                "",
            )
            for place, each in enumerate(chunk.failures)
        ]

    async def _made(self, batch: Batch) -> tuple[list[Made], list[Failure]]:
        edges = self._edges
        if any(self._outlet.prepares(edge, len(batch)) for edge in edges):
            return await self._runner.call(
                lambda: make_fitting(self._outlet, edges, batch), len(batch)
            )
        return make_fitting(self._outlet, edges, batch)

    def _dealt_with(self, pending: Pending) -> None:
        if self._tracker.done(pending):
            tracker = self._tracker
            if self._store is not None:
                self._store.save(self._operator.name, tracker.position, tracker.count)
                self._settle(self._store)
            self._source.dealt_with(tracker.position)
        self._changed()

    def _settle(self, store: "OffsetStore") -> None:
        """Tell, once in a while, which records no restart will bring again."""
        before, ends = self._ends
        if self._tracker.count - before >= SETTLE_EVERY:
            # Those of the last time: a copy that is still on its way is met by its identity.
            self._settled(ends, store.settle)
            self._ends = self._tracker.count, dict(self._tracker.ends)
