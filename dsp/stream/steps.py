"""A body, ready to be called on batches: conversion, identities, retries and failures.

A body that raises is called again with each record alone, as often as the configuration says;
a record on which it still raises becomes a ``Failure``, and the others go on.
"""

import asyncio
import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from time import perf_counter
from typing import Any

from dsp.errors import CodecError
from dsp.stream.batch import Batch, Picked, children, composed, descendants
from dsp.stream.bodies import BatchFailed, BulkBody, Traced
from dsp.stream.codecs import to_columns, to_rows
from dsp.stream.graph import Kind, Operator
from dsp.stream.signatures import is_async
from dsp.stream.sinks.base import PartlyWritten, SinkBroken

__all__ = ["Failure", "Outcome", "Step"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """A record on which a body failed for good."""

    id: int
    value: Any
    error: str
    traceback: str


@dataclass(slots=True)
class Outcome:
    """What came out of a batch."""

    batches: list[Batch] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Take in what came out of a part of the batch."""
        self.batches += other.batches
        self.failures += other.failures


class Step:
    """The body of one instance.

    Args:
        operator: whose body it is.
        retries: how often a record is tried again, alone.
    """

    def __init__(self, operator: Operator, retries: int) -> None:
        self.operator = operator
        self._retries = retries
        self._salt = operator.salt
        body = operator.body
        self._call: Callable[..., Any] = body.write if operator.kind is Kind.SINK else body
        self._bulk = isinstance(body, BulkBody)
        if self._bulk:
            self._call = body.process
        self.is_async = is_async(self._call)
        self._columnar = operator.columnar
        self._attempt = {
            Kind.MAP: self._map,
            Kind.FILTER: self._filter,
            Kind.FLAT_MAP: self._flat_map,
            Kind.BATCHES: self._batches,
            Kind.COLUMNS: self._columns,
            Kind.SINK: self._sink,
        }[operator.kind]
        self._timed = {
            Kind.MAP: self._timed_map,
            Kind.FILTER: self._timed_filter,
            Kind.FLAT_MAP: self._timed_flat_map,
        }.get(operator.kind)

    # -- sync -----------------------------------------------------------------------------

    def run(self, batch: Batch, seconds: list[float] | None = None) -> Outcome:
        """Call the body on a batch.

        Args:
            batch: for the body.
            seconds: gets what each record took, where the body is called for each and raises on
                none; stays empty otherwise.
        """
        try:
            if seconds is not None and self._timed is not None:
                return Outcome(self._timed(self._converted(batch), seconds))
            return Outcome(self._attempt(self._converted(batch)))
        except SinkBroken:
            raise
        except PartlyWritten as partly:
            return self._from(batch, partly)
        except BatchFailed as failed:
            return self._again(batch, failed, self._retries if failed.retryable else 0)
        except Exception as error:
            if seconds:
                seconds.clear()
            if len(batch) > 1:
                return self._halves(batch) if self._bulk else self._one_by_one(batch)
            return self._again(batch, error, self._retries)

    def _halves(self, batch: Batch) -> Outcome:
        """Look for the records that a dear body fails on in few calls."""
        middle = len(batch) // 2
        outcome = self.run(batch.part(0, middle))
        outcome.add(self.run(batch.part(middle, len(batch))))
        return outcome

    def _from(self, batch: Batch, partly: PartlyWritten) -> Outcome:
        """Go on with the record that a sink stumbled over: those before it must not come again."""
        outcome = Outcome()
        place = 0
        while place < len(batch):
            place += partly.taken
            single = batch.part(place, place + 1)
            outcome.add(self._again(single, _cause(partly), self._retries))
            place += 1
            try:
                self._attempt(self._converted(batch.part(place, len(batch))))
                break
            except PartlyWritten as another:
                partly = another
        return outcome

    def _one_by_one(self, batch: Batch) -> Outcome:
        outcome = Outcome()
        for each in _singles(batch):
            outcome.add(self.run(each))
        # Records that come of one batch go on together.
        outcome.batches = _together(outcome.batches)
        return outcome

    def _again(self, batch: Batch, error: Exception, retries: int) -> Outcome:
        for _ in range(retries):
            try:
                return Outcome(self._attempt(self._converted(batch)))
            except SinkBroken:
                raise
            except PartlyWritten as partly:
                error = _cause(partly)
            except Exception as again:
                error = again
        return Outcome(failures=[_failure(each, error) for each in _singles(batch)])

    def _converted(self, batch: Batch) -> Batch:
        """Turn rows into columns or back, if the edge brings the other kind."""
        is_rows = isinstance(batch.values, list)
        if is_rows is not self._columnar:
            return batch
        values = to_columns(batch.values) if is_rows else to_rows(batch.values)
        return Batch(values, batch.ids, batch.born)

    def _map(self, batch: Batch) -> list[Batch]:
        return [Batch(list(map(self._call, batch.values)), batch.ids, batch.born)]

    def _filter(self, batch: Batch) -> list[Batch]:
        return self._kept(batch, list(map(self._call, batch.values)))

    def _kept(self, batch: Batch, kept: list[Any]) -> list[Batch]:
        if all(kept):
            return [batch]
        values = list(compress(batch.values, kept))
        return [Batch(values, Picked(batch.ids, kept, len(values)), batch.born)] if values else []

    def _flat_map(self, batch: Batch) -> list[Batch]:
        return self._flattened(batch, map(self._call, batch.values))

    def _flattened(self, batch: Batch, made: Iterable[Iterable[Any]]) -> list[Batch]:
        values: list[Any] = []
        ids: list[int] = []
        for parent, several in zip(batch.ids, made, strict=True):
            start = len(values)
            values.extend(several)
            ids.extend(children(parent, self._salt, len(values) - start))
        return [Batch(values, ids, batch.born)] if values else []

    def _timed_map(self, batch: Batch, seconds: list[float]) -> list[Batch]:
        values = list(_timing(self._call, batch.values, seconds))
        return [Batch(values, batch.ids, batch.born)]

    def _timed_filter(self, batch: Batch, seconds: list[float]) -> list[Batch]:
        return self._kept(batch, list(_timing(self._call, batch.values, seconds)))

    def _timed_flat_map(self, batch: Batch, seconds: list[float]) -> list[Batch]:
        # A generator works while it is read.
        made = _timing(lambda value: list(self._call(value)), batch.values, seconds)
        return self._flattened(batch, made)

    def _batches(self, batch: Batch) -> list[Batch]:
        return self._batched(batch, self._call(batch.values))

    def _batched(self, batch: Batch, made: Any) -> list[Batch]:  # noqa: ANN401
        values = made if isinstance(made, list) else list(made)
        return [Batch(values, self._ids(batch, len(values)), batch.born)] if values else []

    def _columns(self, batch: Batch) -> list[Batch]:
        return self._columned(batch, self._call(batch.values))

    def _columned(self, batch: Batch, made: Any) -> list[Batch]:  # noqa: ANN401
        parents = None
        if isinstance(made, Traced):
            made, parents = made.values, made.parents
        if not hasattr(made, "num_rows"):
            raise TypeError(
                f"{self.operator.name} gave {type(made).__name__}, not a pyarrow.RecordBatch"
            )
        if hasattr(made, "to_batches"):  # a Table: compute functions like to give one
            made = made.combine_chunks().to_batches()
            made = made[0] if made else None
        if made is None or not made.num_rows:
            return []
        if parents is not None:
            return [Batch(made, descendants(batch.ids, parents, self._salt), batch.born)]
        return [Batch(made, self._ids(batch, made.num_rows), batch.born)]

    def _ids(self, batch: Batch, count: int) -> Sequence[int]:
        if count == len(batch):
            return batch.ids
        # They come of the batch as a whole: put together of other records, it gives others.
        return children(batch.ids[0], self._salt + composed(batch.ids), count)

    def _sink(self, batch: Batch) -> list[Batch]:
        self._call(batch.values, batch.ids)
        return []

    # -- async ----------------------------------------------------------------------------

    async def run_async(self, batch: Batch) -> Outcome:
        """Await the body on a batch: by record, as many at the same time as there are threads."""
        kind = self.operator.kind
        try:
            batch = self._converted(batch)
        except CodecError:
            return self.run(batch)  # finds the guilty rows one by one
        if kind in (Kind.MAP, Kind.FILTER, Kind.FLAT_MAP):
            return await self._by_record(batch)
        try:
            return Outcome(await self._whole(batch))
        except SinkBroken:
            raise
        except PartlyWritten as partly:
            return await self._from_async(batch, partly)
        except Exception as error:
            if len(batch) > 1:
                outcome = Outcome()
                for each in _singles(batch):
                    outcome.add(await self.run_async(each))
                outcome.batches = _together(outcome.batches)
                return outcome
            return await self._again_async(batch, error)

    async def _from_async(self, batch: Batch, partly: PartlyWritten) -> Outcome:
        outcome = Outcome()
        place = 0
        while place < len(batch):
            place += partly.taken
            single = batch.part(place, place + 1)
            outcome.add(await self._again_async(single, _cause(partly)))
            place += 1
            try:
                await self._whole(batch.part(place, len(batch)))
                break
            except PartlyWritten as another:
                partly = another
        return outcome

    async def _again_async(self, single: Batch, error: Exception) -> Outcome:
        for _ in range(self._retries):
            try:
                return Outcome(await self._whole(single))
            except SinkBroken:
                raise
            except PartlyWritten as partly:
                error = _cause(partly)
            except Exception as again:
                error = again
        return Outcome(failures=[_failure(single, error)])

    async def _whole(self, batch: Batch) -> list[Batch]:
        match self.operator.kind:
            case Kind.BATCHES:
                return self._batched(batch, await self._call(batch.values))
            case Kind.COLUMNS:
                return self._columned(batch, await self._call(batch.values))
            case _:
                await self._call(batch.values, batch.ids)
                return []

    async def _by_record(self, batch: Batch) -> Outcome:
        gate = asyncio.Semaphore(self.operator.threads)
        failures: list[Failure] = []

        async def one(index: int, value: Any) -> tuple[bool, Any]:  # noqa: ANN401
            for left in range(self._retries, -1, -1):
                try:
                    async with gate:
                        return True, await self._call(value)
                except Exception as error:
                    if not left:
                        failures.append(_failure(Batch([value], [batch.ids[index]]), error))
            return False, None

        made = await asyncio.gather(*(one(i, v) for i, v in enumerate(batch.values)))
        fine = [ok for ok, _ in made]
        if not all(fine):
            values, ids = list(compress(batch.values, fine)), list(compress(batch.ids, fine))
            batch = Batch(values, ids, batch.born)
        results = [result for ok, result in made if ok]
        match self.operator.kind:
            case Kind.MAP:
                batches = [Batch(results, batch.ids, batch.born)] if results else []
            case Kind.FILTER:
                batches = self._kept(batch, results) if results else []
            case _:
                batches = self._flattened(batch, results)
        return Outcome(batches, failures)


def _timing(call: Callable[..., Any], values: Iterable[Any], seconds: list[float]) -> Iterable[Any]:
    """Call for each value, and note how long it took."""
    before = perf_counter()
    for value in values:
        yield call(value)
        after = perf_counter()
        seconds.append(after - before)
        before = after


def _cause(partly: PartlyWritten) -> Exception:
    cause = partly.__cause__
    return cause if isinstance(cause, Exception) else partly


def _singles(batch: Batch) -> Iterable[Batch]:
    values = batch.values
    for index, each in enumerate(batch.ids):
        one = [values[index]] if isinstance(values, list) else values.slice(index, 1)
        yield Batch(one, [each], batch.born)


def _together(batches: list[Batch]) -> list[Batch]:
    rows = [batch for batch in batches if isinstance(batch.values, list)]
    if len(rows) < 2 or len(rows) < len(batches):
        return batches
    values = [value for batch in rows for value in batch.values]
    return [Batch(values, [i for batch in rows for i in batch.ids], batches[0].born)]


def _failure(single: Batch, error: Exception) -> Failure:
    value = single.values[0] if isinstance(single.values, list) else single.values.to_pylist()[0]
    text = "".join(traceback.format_exception(error))
    return Failure(single.ids[0], value, f"{type(error).__name__}: {error}", text)
