"""The data plane of an instance that has a body: take, process, send, and let go."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import compress
from time import perf_counter
from typing import TYPE_CHECKING

from dsp.errors import CodecError
from dsp.stream.batch import Batch, child, chosen
from dsp.stream.bodies import BulkBody
from dsp.stream.graph import DEAD_LETTERS, Edge, Kind, Operator
from dsp.stream.groupings.owners import rows_of
from dsp.stream.inlet import Arrival, Inlet
from dsp.stream.joining import join
from dsp.stream.letters import DeadLetters
from dsp.stream.metering import Metering
from dsp.stream.metrics import MetricCollector
from dsp.stream.opening import Opening
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Made
from dsp.stream.preparing import make_fitting
from dsp.stream.runners import Runner
from dsp.stream.seen import Seen
from dsp.stream.steps import Failure, Outcome, Step
from dsp.stream.tokens import Token

if TYPE_CHECKING:
    from dsp.stream.sinks.base import Sink

__all__ = ["Worker"]

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Measured:
    """What the records of a batch took.

    Attributes:
        keys: of the records.
        seconds: what each took; empty if only the sum is known.
        total: the sum.
    """

    keys: list[bytes]
    seconds: list[float] = field(default_factory=list)
    total: float = 0.0


@dataclass(slots=True)
class _Call:
    """A call of the body that is under way."""

    since: float
    reported: bool = False


# What came out of a batch: records for edges, those that failed, and what they took.
Result = tuple[list[Made], list[Failure], Measured | None]


class Worker:
    """Moves batches from the inlet through the body to the outlet.

    Args:
        name: of the instance.
        operator: whose body it is.
        edges: from this operator; and the codec of each edge to it, by operator.
        metering: tells what records cost; None if nobody wants to know.
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
        metering: Metering | None,
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
        self.letters = DeadLetters(name, operator.name, edges, outlet, metrics)
        self._incoming = incoming
        self._inlet = inlet
        self._outlet = outlet
        self._step = step
        self._runner = runner
        self._metrics = metrics
        self._metering = metering
        self._batch_time = batch_time
        self._most = most_records
        self._hang_after = hang_after
        self._drop_repeats = drop_repeats
        self._clock = clock
        self._changed = changed
        self._seen = Seen() if operator.kind is Kind.SINK else None
        self._sink: Sink | None = operator.body if operator.kind is Kind.SINK else None
        self._bulk = operator.body if isinstance(operator.body, BulkBody) else None
        self.opening = Opening(name, self._sink, self._bulk, runner, drop_repeats=drop_repeats)
        self._dropped = 0
        self._calls: dict[int, _Call] = {}
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
        await self.opening.open()
        while True:
            arrivals = await self._inlet.take(self._records_at_once())
            self.busy += 1
            try:
                await self._take_through(arrivals)
            finally:
                self.busy -= 1
            self._changed()
            if not self._inlet.empty:
                await asyncio.sleep(0)  # others have their turn, as they have while it waits

    async def close(self) -> None:
        """Close the sink or the body, if it is one to be closed, once no call is under way."""
        await self.opening.close()

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
        declared = self._declared(arrivals)
        seconds = None if declared is None else sum(map(sum, declared))
        started = loop.time()
        call = _Call(started)
        self._calls[id(call)] = call
        try:
            if self._step.is_async:
                results = [await self._process_async(arrival) for arrival in arrivals]
            else:
                # The owners of keys may change meanwhile; then records are split again.
                work = self._process_one_by_one if self._bulk is None else self._process_joined
                arrivals, results = await self._runner.call(lambda: work(taken), records, seconds)
        finally:
            del self._calls[id(call)]
        seconds = loop.time() - started
        self._metrics.worked(records, seconds)
        if self._bulk is not None:
            self._metrics.rated(self._bulk.capacity)
        for arrival in arrivals:
            self._inlet.worked(arrival)
        if self._metering is not None:
            for place, (arrival, result) in enumerate(zip(arrivals, results, strict=True)):
                self._measured(arrival, result, None if declared is None else declared[place])
        for arrival, (made, failures, _) in zip(arrivals, results, strict=True):
            for each in made:
                self._metrics.gave(len(each.batch))
                if not self._outlet.emit_at_once(each, arrival.token):
                    await self._outlet.emit(each, arrival.token)
            if failures:
                await self.letters.bury(failures, arrival.born, arrival.token)
            if self._operator.kind is Kind.SINK:
                self._metrics.latencies.append(self._clock() - arrival.born)
            arrival.forget()
            arrival.token.release()

    def _declared(self, arrivals: list[Arrival]) -> list[list[float]] | None:
        """What each record takes in a world, if that differs or somebody wants to know it."""
        if self._bulk is not None:
            return None  # batches are put together: what each took is not known
        if self._metering is None and not callable(self._operator.service_time):
            return None
        declared: list[list[float]] = []
        for arrival in arrivals:
            try:
                batch = arrival.decoded(self._incoming[arrival.operator].codec)
            except CodecError:
                declared.append([])  # it is found again where failures are dealt with
                continue
            seconds = self._runner.declared(rows_of(batch))
            if seconds is None:
                return None
            declared.append(seconds)
        return declared

    def _measured(self, arrival: Arrival, result: Result, declared: list[float] | None) -> None:
        metering, measured = self._metering, result[2]
        assert metering is not None
        if measured is None:
            return
        if declared is not None:
            metering.executed(arrival, measured.keys, declared, sum(declared))
        else:
            metering.executed(arrival, measured.keys, measured.seconds, measured.total)

    # -- at once --------------------------------------------------------------------------

    def may_relay(self, records: int) -> bool:
        """Whether a batch of an instance of this process may be processed before that goes on.

        This instance waits for work, its body is quick, and there is room for what comes of it and
        of what came before. Records then go through several instances while they are in the caches
        of the processor, and nothing about them has to be remembered if they come to an end there.
        """
        return (
            self._inlet.is_awaited
            and not self._step.is_async
            and self._bulk is None
            and self._metering is None
            and self._runner.is_short(self._inlet.waiting + records)
            and self._outlet.takes_more
        )

    def catch_up(self) -> Iterator[tuple[Arrival, list[Failure]]]:
        """Process what waits: little, as ``may_relay`` tells. Failures are still to be buried."""
        while (arrival := self._inlet.take_at_once()) is not None:
            work = partial(self._process, arrival)
            failures = self._here(work, arrival.records, arrival.born, arrival.token)
            self._inlet.worked(arrival)
            arrival.forget()
            yield arrival, failures

    def relay(self, source: str, batch: Batch, token: Token) -> list[Failure]:
        """Process a batch of an operator now; hold the token for what came of it.

        Returns:
            Records on which the body failed: they are still to be buried.
        """
        self._metrics.arrived(len(batch))
        work = partial(self._through, source, batch)
        return self._here(work, len(batch), batch.born, token)

    def _here(
        self, work: Callable[[], Result], records: int, born: float, token: Token
    ) -> list[Failure]:
        started = perf_counter()
        made, failures, _ = self._runner.here(work, records)
        self._metrics.worked(records, perf_counter() - started)
        for each in made:
            self._metrics.gave(len(each.batch))
            self._outlet.emit_anyway(each, token)
        if self._sink is not None:
            self._metrics.latencies.append(self._clock() - born)
        return failures

    async def bury(self, failures: list[Failure], born: float, token: Token) -> None:
        """Send records on which the body failed to the dead letters; release the token.

        Who asks has made the worker busy for it.
        """
        try:
            await self.letters.bury(failures, born, token)
            token.release()
        finally:
            self.busy -= 1
        self._changed()

    def report_hanging(self, now: float) -> None:
        """Report calls that do not return. To be asked now and then: a timer for each costs more.

        Args:
            now: on the clock of the loop.
        """
        for call in list(self._calls.values()):
            if not call.reported and now - call.since >= self._hang_after:
                call.reported = True
                self.hanging += 1
                logger.warning(
                    "%s: a call of the body has not returned for %g s", self._name, self._hang_after
                )

    # -- in a worker thread ---------------------------------------------------------------

    def _process_one_by_one(self, arrivals: list[Arrival]) -> tuple[list[Arrival], list[Result]]:
        return arrivals, [self._process(arrival) for arrival in arrivals]

    def _process(self, arrival: Arrival) -> Result:
        try:
            batch = arrival.decoded(self._incoming[arrival.operator].codec)
        except CodecError as error:
            return [], [_unreadable(arrival, error)], None
        if self._metering is None:
            return self._through(arrival.operator, batch)
        batch = self._fresh(arrival.operator, batch)
        measured = self._measuring(arrival, batch)
        started = perf_counter()
        seconds = None if measured is None else measured.seconds
        outcome = self._step.run(batch, seconds) if len(batch) else Outcome()
        if measured is not None:
            measured.total = perf_counter() - started
        return *self._finish(batch, outcome), measured

    def _process_joined(self, arrivals: list[Arrival]) -> tuple[list[Arrival], list[Result]]:
        whole = join(arrivals, self._read)
        results: list[Result] = []
        for each in whole:
            if isinstance(each.batch, CodecError):
                results.append(([], [_unreadable(each.arrival, each.batch)], None))
            else:
                results.append(self._ran(each.batch))
        return [each.arrival for each in whole], results

    def _read(self, arrival: Arrival) -> Batch:
        batch = arrival.decoded(self._incoming[arrival.operator].codec)
        return self._fresh(arrival.operator, batch)

    def _through(self, source: str, batch: Batch) -> Result:
        return self._ran(self._fresh(source, batch))

    def _ran(self, batch: Batch) -> Result:
        outcome = self._step.run(batch) if len(batch) else Outcome()
        return *self._finish(batch, outcome), None

    async def _process_async(self, arrival: Arrival) -> Result:
        try:
            batch = arrival.decoded(self._incoming[arrival.operator].codec)
        except CodecError as error:
            return [], [_unreadable(arrival, error)], None
        batch = self._fresh(arrival.operator, batch)
        measured = self._measuring(arrival, batch)
        clock = asyncio.get_running_loop().time
        started = clock()
        outcome = await self._step.run_async(batch) if len(batch) else Outcome()
        if measured is not None:
            measured.total = clock() - started
        return *self._finish(batch, outcome), measured

    def _measuring(self, arrival: Arrival, batch: Batch) -> Measured | None:
        keys = None if self._metering is None else self._metering.keys(arrival, batch)
        return None if keys is None else Measured(keys)

    def _fresh(self, source: str, batch: Batch) -> Batch:
        """Give the records with the identities that they have here, without what came again."""
        edge = self._incoming[source]
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

    def _finish(self, batch: Batch, outcome: Outcome) -> tuple[list[Made], list[Failure]]:
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


def _unreadable(arrival: Arrival, error: CodecError) -> Failure:
    return Failure(0, f"{arrival.records} records of {arrival.sender}", str(error), "")
