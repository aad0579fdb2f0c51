"""The driver's side of sinks: what a micro-batch of Spark brings is written once.

Spark runs a batch again whose end it did not see, with the same number and the same records. A sink
that takes many records in one step remembers the batch, not each record; another one that remembers
does so by the identities of records, as on the mesh.
"""

import asyncio
import logging
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from dsp.stream.batch import Batch, chosen
from dsp.stream.codecs import to_columns, to_rows
from dsp.stream.graph import Operator
from dsp.stream.signatures import is_async
from dsp.stream.sinks.base import Sink, SinkBroken, TakesTogether
from dsp.stream.steps import Failure, Step

__all__ = ["SinkWriter", "batch_identity"]

logger = logging.getLogger(__name__)


def batch_identity(query: str, sink: str, number: int) -> int:
    """Give the identity of what a batch brings to a sink.

    Args:
        query: names the stream of batches; a new stream has a new name.
        sink: the operator.
        number: of the batch in the stream.
    """
    text = f"{query} {sink} {number}".encode()
    # As long as identities may be, and beyond those that records of files and lists have.
    return int.from_bytes(blake2b(text, digest_size=15).digest(), "big") | 1 << 126


class SinkWriter:
    """Writes to one sink. One thread at a time.

    Args:
        operator: the sink.
        retries: how often a record is tried again that cannot be written.
        loop: for sinks with coroutine functions.
    """

    def __init__(self, operator: Operator, retries: int, loop: asyncio.AbstractEventLoop) -> None:
        self.operator = operator
        self._sink: Sink = operator.body
        self._step = Step(operator, retries)
        self._loop = loop
        self._opened = False
        self.records_in = 0
        self.records_out = 0
        self.repeats = 0

    def open(self) -> None:
        """Open the sink.

        Raises:
            DspError: it cannot begin.
        """
        self._sink.drop_repeats = self._sink.remembers
        self._call(self._sink.open)
        self._opened = True

    def close(self) -> None:
        """Close the sink, if it is open."""
        if self._opened:
            self._opened = False
            self._call(self._sink.close)

    def _call(self, method: Any) -> None:  # noqa: ANN401
        if is_async(method):
            self._loop.run_until_complete(method())
        else:
            method()

    def write(self, batches: Sequence[Batch], identity: int) -> list[Failure]:
        """Write what came of a batch of Spark; give the records that cannot be written.

        Args:
            batches: all that it brings.
            identity: of all of it together.

        Raises:
            SinkBroken: no record is to blame.
        """
        count = sum(map(len, batches))
        self.records_in += count
        if isinstance(self._sink, TakesTogether):
            return self._together(self._sink, batches, identity)
        failures: list[Failure] = []
        before = self._sink.dropped
        for batch in batches:
            if self._step.is_async:
                outcome = self._loop.run_until_complete(self._step.run_async(batch))
            else:
                outcome = self._step.run(batch)
            failures += outcome.failures
        repeats = self._sink.dropped - before
        self.repeats += repeats
        self.records_out += count - repeats - len(failures)
        return failures

    def _together(
        self, sink: TakesTogether, batches: Sequence[Batch], identity: int
    ) -> list[Failure]:
        failures: list[Failure] = []
        fitting = [batch for batch in map(self._converted, batches) if batch is not None]
        converted = sum(map(len, fitting))
        if converted < sum(map(len, batches)):
            fitting, failures = self._tried(sink, batches)
        try:
            taken = sink.take_together([batch.values for batch in fitting], identity)
        except SinkBroken:
            raise
        except Exception:
            fitting, failures = self._tried(sink, batches)
            taken = sink.take_together([batch.values for batch in fitting], identity)
        written = sum(map(len, fitting))
        if taken:
            self.records_out += written
        else:
            self.repeats += written
        return failures

    def _converted(self, batch: Batch) -> Batch | None:
        """Give rows as columns or back, as the sink wants them; None where that fails."""
        is_rows = isinstance(batch.values, list)
        if is_rows is not self.operator.columnar:
            return batch
        try:
            values = to_columns(batch.values) if is_rows else to_rows(batch.values)
        except Exception:
            logger.debug("%s: rows are tried one by one", self.operator.name, exc_info=True)
            return None
        return Batch(values, batch.ids, batch.born)

    def _tried(
        self, sink: TakesTogether, batches: Sequence[Batch]
    ) -> tuple[list[Batch], list[Failure]]:
        """Find the records that cannot be written."""
        fitting: list[Batch] = []
        failures: list[Failure] = []
        for batch in batches:
            good = []
            for place in range(len(batch)):
                single = batch.part(place, place + 1)
                try:
                    values = single.values
                    if isinstance(values, list) is self.operator.columnar:
                        values = to_columns(values) if isinstance(values, list) else to_rows(values)
                    sink.try_values(values)
                except Exception as error:
                    failures.append(_failure(single, error))
                else:
                    good.append(place)
            if good:
                ids = [batch.ids[place] for place in good]
                kept = self._converted(Batch(chosen(batch.values, good), ids, batch.born))
                # Rows that differ do not become columns together, each for itself does.
                fitting += [kept] if kept is not None else self._singly(batch, good)
        return fitting, failures

    def _singly(self, batch: Batch, places: Sequence[int]) -> list[Batch]:
        singles = (self._converted(batch.part(place, place + 1)) for place in places)
        return [single for single in singles if single is not None]


def _failure(single: Batch, error: Exception) -> Failure:
    import traceback

    value = single.values[0] if isinstance(single.values, list) else single.values.to_pylist()[0]
    text = "".join(traceback.format_exception(error))
    return Failure(single.ids[0], value, f"{type(error).__name__}: {error}", text)
