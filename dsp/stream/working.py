"""The data plane of an instance that has a body: take, process, send, and let go."""

import asyncio
import logging
from collections.abc import Callable
from itertools import compress
from typing import TYPE_CHECKING

from dsp.errors import CodecError
from dsp.stream.batch import Batch, child, chosen
from dsp.stream.bodies import BulkBody
from dsp.stream.codecs import encode
from dsp.stream.fitting import fit
from dsp.stream.graph import DEAD_LETTERS, Edge, Grouping, Kind, Operator
from dsp.stream.groupings import split
from dsp.stream.inlet import Arrival, Inlet
from dsp.stream.joining import join
from dsp.stream.letters import DeadLetters
from dsp.stream.metrics import MetricCollector
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Made
from dsp.stream.runners import Runner
from dsp.stream.seen import Seen
from dsp.stream.signatures import is_async
from dsp.stream.steps import Failure, Outcome, Step

if TYPE_CHECKING:
    from dsp.stream.sinks.base import Sink

__all__ = ["Worker", "make_fitting"]

logger = logging.getLogger(__name__)

# Seconds that the end of an instance waits for its sink to let go.
CLOSE_PATIENCE = 10.0

# What came out of a batch: records for edges, and those that failed.
Result = tuple[list[Made], list[Failure]]


class Worker:
    """Moves batches from the inlet through the body to the outlet.

    Args:
        name: of the instance.
        operator: whose body it is.
        edges: from this operator; and the codec of each edge to it, by operator.
        hang_after: seconds after which a call that does not return is reported.
        drop_repeats: whether a sink leaves out records that were here before.
        clock: gives the time on the clock that batches are born by.
        changed: called whenever a batch is through.
    """

    def __init__(
        self,
        name: str,
        operator: Operator,
        edges: list[Edge],
        incoming: dict[str, Edge],
        inlet: Inlet,
        outlet: Outlet,
        step: Step,
        runner: Runner,
        metrics: MetricCollector,
        *,
        batch_time: float,
        most_records: int,
        hang_after: float,
        drop_repeats: bool,
        clock: Callable[[], float],
        changed: Callable[[], None],
    ) -> None:
        self._name = name
        self._operator = operator
        self._edges = [edge for edge in edges if edge.target != DEAD_LETTERS]
        self._letters = DeadLetters(name, operator.name, edges, outlet, metrics)
        self._incoming = incoming
        self._inlet = inlet
        self._outlet = outlet
        self._step = step
        self._runner = runner
        self._metrics = metrics
        self._batch_time = batch_time
        self._most = most_records
        self._hang_after = hang_after
        self._drop_repeats = drop_repeats
        self._clock = clock
        self._changed = changed
        self._seen = Seen() if operator.kind is Kind.SINK else None
        self._sink: Sink | None = operator.body if operator.kind is Kind.SINK else None
        self._bulk = operator.body if isinstance(operator.body, BulkBody) else None
        self._opening = asyncio.Lock()
        self._opened = False
        self._dropped = 0
        self.busy = 0
        self.hanging = 0
        self._counted_repeats = 0

    @property
    def repeats(self) -> int:
        """Records that came to a sink again: noticed here, or by a sink that remembers."""
        known = self._sink.dropped if self._sink is not None else 0
        return self._counted_repeats + known

    async def run(self) -> None:
        """Work. Ends by cancellation."""
        async with self._opening:  # of several workers the first
            if not self._opened:
                await self._open()
        while True:
            arrivals = await self._inlet.take(self._records_at_once())
            self.busy += 1
            try:
                await self._take_through(arrivals)
            finally:
                self.busy -= 1
            self._changed()

    async def _open(self) -> None:
        if self._bulk is not None:
            await self._runner.call(self._bulk.open, 0)
            self._opened = True
        if (sink := self._sink) is None:
            return
        self._opened = True
        sink.drop_repeats = self._drop_repeats
        if is_async(sink.open):
            await sink.open()
        else:
            await self._runner.call(sink.open, 0)

    async def close(self) -> None:
        """Close the sink or the body, if it is one to be closed, once no call is under way."""
        body: Sink | BulkBody | None = self._bulk if self._sink is None else self._sink
        if body is None or not self._opened:
            return
        self._opened = False
        if self._sink is not None and is_async(self._sink.close):
            await self._sink.close()
            return
        # In the worker thread, after the call that may still be there. One that hangs is not
        # waited for.
        closing = asyncio.ensure_future(self._runner.call(body.close, 0))
        await asyncio.wait([closing], timeout=CLOSE_PATIENCE)
        if closing.done():
            closing.result()
        else:
            closing.cancel()
            what = "sink" if self._sink is not None else "body"
            logger.error("%s: the %s hangs, and is not closed", self._name, what)

    def _records_at_once(self) -> int:
        if self._bulk is not None:
            return self._bulk.records_at_once
        capacity = self._metrics.capacity
        if capacity is None:
            return 1
        return self._runner.at_once(max(1, min(self._most, int(capacity * self._batch_time))))

    async def _take_through(self, taken: list[Arrival]) -> None:
        arrivals = taken
        loop = asyncio.get_running_loop()
        records = sum(arrival.records for arrival in arrivals)
        watch = loop.call_later(self._hang_after, self._report_hanging)
        started = loop.time()
        try:
            if self._step.is_async:
                results = [await self._process_async(arrival) for arrival in arrivals]
            else:
                # The owners of keys may change meanwhile; then records are split again.
                work = self._process_one_by_one if self._bulk is None else self._process_joined
                arrivals, results = await self._runner.call(lambda: work(taken), records)
        finally:
            watch.cancel()
        seconds = loop.time() - started
        self._metrics.worked(records, seconds)
        if self._bulk is not None:
            self._metrics.rated(self._bulk.capacity)
        for arrival, (made, failures) in zip(arrivals, results, strict=True):
            for each in made:
                self._metrics.gave(len(each.batch))
                await self._outlet.emit(each, arrival.token)
            await self._letters.bury(failures, arrival.born, arrival.token)
            if self._operator.kind is Kind.SINK:
                self._metrics.latencies.append(self._clock() - arrival.born)
            arrival.batch = arrival.message = None
            arrival.token.release()

    def _report_hanging(self) -> None:
        self.hanging += 1
        logger.warning(
            "%s: a call of the body has not returned for %g s", self._name, self._hang_after
        )

    # -- in a worker thread ---------------------------------------------------------------

    def _process_one_by_one(self, arrivals: list[Arrival]) -> tuple[list[Arrival], list[Result]]:
        return arrivals, [self._process(arrival) for arrival in arrivals]

    def _process(self, arrival: Arrival) -> Result:
        try:
            batch = self._read(arrival)
        except CodecError as error:
            return [], [_unreadable(arrival, error)]
        return self._ran(batch)

    def _process_joined(self, arrivals: list[Arrival]) -> tuple[list[Arrival], list[Result]]:
        whole = join(arrivals, self._read)
        results: list[Result] = []
        for each in whole:
            if isinstance(each.batch, CodecError):
                results.append(([], [_unreadable(each.arrival, each.batch)]))
            else:
                results.append(self._ran(each.batch))
        return [each.arrival for each in whole], results

    def _ran(self, batch: Batch) -> Result:
        outcome = self._step.run(batch) if len(batch) else Outcome()
        return self._finish(batch, outcome)

    async def _process_async(self, arrival: Arrival) -> Result:
        try:
            batch = self._read(arrival)
        except CodecError as error:
            return [], [_unreadable(arrival, error)]
        outcome = await self._step.run_async(batch) if len(batch) else Outcome()
        return self._finish(batch, outcome)

    def _read(self, arrival: Arrival) -> Batch:
        edge = self._incoming[arrival.operator]
        batch = arrival.decoded(edge.codec)
        if edge.tag:  # the same record may come another way too
            ids = [child(each, edge.tag, 0) for each in batch.ids]
            batch = Batch(batch.values, ids, batch.born)
        fresh = self._seen.fresh(batch.ids) if self._seen is not None else None
        if fresh is None:
            return batch
        self._counted_repeats += len(fresh) - sum(fresh)
        if not self._drop_repeats:
            return batch
        kept = chosen(batch.values, [place for place, new in enumerate(fresh) if new])
        return Batch(kept, list(compress(batch.ids, fresh)), batch.born)

    def _finish(self, batch: Batch, outcome: Outcome) -> Result:
        if self._seen is not None:
            self._seen.add(batch.ids)
            assert self._sink is not None
            dropped, self._dropped = self._sink.dropped - self._dropped, self._sink.dropped
            self._metrics.gave(len(batch) - len(outcome.failures) - dropped)
        made: list[Made] = []
        failures = list(outcome.failures)
        for each in outcome.batches:
            ready, unfit = make_fitting(self._outlet, self._edges, each)
            made += ready
            failures += unfit
        return made, failures


def make_fitting(
    outlet: Outlet, edges: list[Edge], batch: Batch
) -> tuple[list[Made], list[Failure]]:
    """Prepare a batch for every edge; tell apart what the codec of an edge cannot hold."""
    try:
        return make_all(outlet, edges, batch), []
    except CodecError:
        failures: list[Failure] = []
        for edge in edges:
            batch, unfit = fit(edge, batch)
            failures += unfit
        return (make_all(outlet, edges, batch) if len(batch) else []), failures


def make_all(outlet: Outlet, edges: list[Edge], batch: Batch) -> list[Made]:
    """Prepare a batch for every edge: split by key, or encoded if it goes to another process.

    Meant for a worker thread: it only reads what the loop changes, and the loop checks again.
    """
    made = []
    for edge in edges:
        if edge.grouping is Grouping.KEY:
            assert edge.key is not None
            owners = outlet.owners(edge)
            parts = split(batch, edge.key, owners)
            made.append(Made(edge, batch, owners=owners, parts=parts))
        elif outlet.wants_bytes(edge, len(batch)):
            made.append(Made(edge, batch, encode(edge.codec, batch.values)))
        else:
            made.append(Made(edge, batch))
    return made


def _unreadable(arrival: Arrival, error: CodecError) -> Failure:
    return Failure(0, f"{arrival.records} records of {arrival.sender}", str(error), "")
