"""Readers of sources on the driver: they turn what sources give into rows for Spark.

Of a source that workers can read by themselves a row names a part; of any other one it holds
records. Each source has a thread of its own, with an event loop.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from dsp.errors import CodecError
from dsp.spark.graph_plan import by_parts, chunk_codec
from dsp.spark.graph_readers import identities, part_payload
from dsp.spark.parcels import Parcel, pack_ids
from dsp.spark.staging import Staging
from dsp.stream.batch import Batch
from dsp.stream.codecs import encode
from dsp.stream.fitting import fit
from dsp.stream.graph import DEAD_LETTERS, Edge, Grouping, Operator
from dsp.stream.letters import letter
from dsp.stream.sources.base import Chunk, Source, SourceContext
from dsp.stream.sources.parts import Divisible
from dsp.stream.steps import Failure

__all__ = ["Feeder"]

logger = logging.getLogger(__name__)

PART_BYTES = 4 << 20
"""Bytes of a file that one task reads."""
CHUNK_RECORDS = 4096
FILE_RECORDS = 4 * CHUNK_RECORDS
"""Records that are put into one file of rows, at most."""
GATHER_TIME = 0.3
"""Seconds that records wait for others to go into the same file."""
MOST_AHEAD = 512
"""Rows that may wait for Spark."""


class Feeder:
    """Reads one source until it is over or told to stop.

    Args:
        operator: the source.
        staging: where rows go.
        wake: called when it ended.

    Attributes:
        name: of the source.
        error: what ended it, if that was not the end of the source.
        records: how many it read.
    """

    def __init__(self, operator: Operator, staging: Staging, wake: Callable[[], None]) -> None:
        self.name = operator.name
        self._operator = operator
        self._source: Source = operator.body
        self._staging = staging
        self._wake = wake
        self._codec = chunk_codec(operator)
        self._edge = Edge(operator.name, operator.name, Grouping.ROUND_ROBIN, self._codec)
        self._stopping = threading.Event()
        self._room = threading.Condition()
        self._ahead = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading: asyncio.Future[Chunk | None] | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"dsp-feeds-{operator.name}", daemon=True
        )
        self.error: BaseException | None = None
        self.records = 0

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Read no more, but what the source took in already, if it can tell."""
        self._stopping.set()
        with self._room:
            self._room.notify_all()
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._stop_reading)
            except RuntimeError:
                logger.debug("%s: its loop has ended by itself", self.name)

    def _stop_reading(self) -> None:
        if self._source.drains:
            self._source.stop()
        elif self._reading is not None:
            self._reading.cancel()

    def join(self, seconds: float) -> bool:
        """Wait for the thread; whether it ended."""
        self._thread.join(seconds)
        return self.over

    def taken(self, rows: int) -> None:
        """So many rows were dealt with."""
        with self._room:
            self._ahead -= rows
            self._room.notify_all()

    # -- in its thread --------------------------------------------------------------------

    def _run(self) -> None:
        try:
            if by_parts(self._source):
                assert isinstance(self._source, Divisible)
                self._feed_parts(self._source)
            else:
                asyncio.run(self._feed_chunks())
        except BaseException as error:  # told by whoever watches the run
            self.error = error
        finally:
            self._wake()

    def _put(self, parcels: list[Parcel], position: Any, count: int, records: int) -> None:  # noqa: ANN401
        with self._room:
            self._room.wait_for(lambda: self._ahead < MOST_AHEAD or self._stopping.is_set())
            self._ahead += sum(parcel.target == self.name for parcel in parcels)
        self._staging.put(parcels, position, count)
        self.records += records

    def _feed_parts(self, source: Divisible) -> None:
        staging = self._staging
        for part in source.parts(staging.position, staging.count, PART_BYTES):
            if self._stopping.is_set():
                return
            parcel = Parcel(self.name, 0, part.records, b"", part_payload(part))
            self._put([parcel], part.end, part.first + part.records, part.records)

    async def _feed_chunks(self) -> None:
        self._loop = asyncio.get_running_loop()
        source, staging = self._source, self._staging
        await source.open(
            SourceContext(asyncio.to_thread, self.name), staging.position, staging.count
        )
        try:
            while (chunks := await self._gather()) is not None:
                await asyncio.to_thread(self._put_chunks, chunks)
                # On disk here: the source need not keep it.
                source.dealt_with(staging.position)
        finally:
            await source.close()

    async def _gather(self) -> list[Chunk] | None:
        """Wait for records, and a little longer for more; None at the end."""
        chunks: list[Chunk] = []
        records = 0
        until: float | None = None
        loop = asyncio.get_running_loop()
        while records < FILE_RECORDS:
            if self._reading is None:
                if self._stopping.is_set() and not self._source.drains:
                    break
                self._reading = asyncio.ensure_future(self._source.read(CHUNK_RECORDS))
            left = None if until is None else max(0.0, until - loop.time())
            await asyncio.wait([self._reading], timeout=left)
            if not self._reading.done():
                break
            reading, self._reading = self._reading, None
            if reading.cancelled():
                break
            chunk = reading.result()
            if chunk is None:
                return chunks or None
            chunks.append(chunk)
            records += len(chunk.values) + len(chunk.failures)
            until = until if until is not None else loop.time() + GATHER_TIME
        return chunks or None

    def _put_chunks(self, chunks: list[Chunk]) -> None:
        parcels: list[Parcel] = []
        count = self._staging.count
        position = self._staging.position
        records = 0
        for chunk in chunks:
            numbered = _numbered(chunk, count)
            total = len(chunk.values) + len(chunk.failures)
            ids, failures = identities(self._operator.number, numbered)
            count += total
            records += total
            position = count if chunk.position is None else chunk.position
            parcels += self._parcels(Batch(chunk.values, ids), failures)
        self._put(parcels, position, count, records)

    def _parcels(self, batch: Batch, failures: list[Failure]) -> list[Parcel]:
        name = self.name
        parcels = []
        if len(batch):
            try:
                payload = encode(self._codec, batch.values)
            except CodecError:
                batch, unfit = fit(self._edge, batch)
                failures = [*failures, *unfit]
                payload = encode(self._codec, batch.values) if len(batch) else b""
            if len(batch):
                parcels.append(Parcel(name, 0, len(batch), pack_ids(batch.ids), bytes(payload)))
        if failures:
            import orjson

            letters = orjson.dumps([letter(name, f"{name}.spark", each) for each in failures])
            ids = pack_ids([failure.id for failure in failures])
            parcels.append(Parcel(DEAD_LETTERS, 0, len(failures), ids, letters))
        return parcels


def _numbered(chunk: Chunk, count: int) -> Chunk:
    """Give a chunk with offsets: first the values are counted, then the failures."""
    if chunk.offsets is not None:
        return chunk
    values = len(chunk.values)
    failures = [
        type(each)(each.value, each.error, count + values + place)
        for place, each in enumerate(chunk.failures)
    ]
    return Chunk(chunk.values, chunk.position, range(count, count + values), failures)
