"""How rows of a source become batches again, on a worker of Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from dsp.spark.parcels import Parcel, unpack_ids
from dsp.stream.batch import Batch, origin
from dsp.stream.codecs import Codec
from dsp.stream.sources.base import Chunk
from dsp.stream.sources.lines import shown
from dsp.stream.sources.parts import Divisible, Part
from dsp.stream.steps import Failure

__all__ = ["Reader", "PartReader", "ChunkReader", "TopicReader", "part_payload", "identities"]

# Where the partition is in the offset of a record of Kafka, as in ``KafkaSource``.
RECORD_BITS = 36

Read = tuple[Batch, list[Failure]]


class Reader(Protocol):
    """Makes batches of the rows of one source."""

    def read(self, parcels: Sequence[Parcel]) -> Iterator[Read]:
        """Give the records of rows that follow each other, and those that are none."""
        ...


def identities(number: int, chunk: Chunk) -> tuple[Sequence[int], list[Failure]]:
    """Give the identities of the values of a chunk that has offsets, and its failures."""
    offsets = chunk.offsets
    assert offsets is not None
    ids: Sequence[int]
    if isinstance(offsets, range) and offsets.step == 1:
        first = origin(number, offsets.start)
        ids = range(first, first + len(offsets))
    else:
        ids = [origin(number, offset) for offset in offsets]
    failures = [
        Failure(origin(number, each.offset), each.value, each.error, "") for each in chunk.failures
    ]
    return ids, failures


def part_payload(part: Part) -> bytes:
    """Give a part as the payload of a row."""
    return orjson.dumps([part.start, part.end, part.first, part.records])


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads parts of a file that every worker can see.

    Attributes:
        number: of the source in the graph.
        source: that was not opened.
    """

    number: int
    source: Divisible

    def read(self, parcels: Sequence[Parcel]) -> Iterator[Read]:
        """Read the parts that rows name."""
        for parcel in parcels:
            for chunk in self.source.read_part(Part(*orjson.loads(parcel.payload))):
                ids, failures = identities(self.number, chunk)
                yield Batch(chunk.values, ids), failures


@dataclass(frozen=True, slots=True)
class ChunkReader:
    """Reads records that the driver put into rows.

    Attributes:
        codec: of the records.
    """

    codec: Codec

    def read(self, parcels: Sequence[Parcel]) -> Iterator[Read]:
        """Decode the records of rows."""
        for parcel in parcels:
            ids = unpack_ids(parcel.ids, parcel.count)
            yield Batch(self.codec.decode(parcel.payload), ids), []


@dataclass(frozen=True, slots=True)
class TopicReader:
    """Reads rows that Spark's Kafka connector made: a record each.

    Attributes:
        number: of the source in the graph.
        url: of the topic.
        load: makes a value of bytes.
    """

    number: int
    url: str
    load: Any

    def read(self, parcels: Sequence[Parcel]) -> Iterator[Read]:
        """Decode records."""
        values: list[Any] = []
        ids: list[int] = []
        failures: list[Failure] = []
        for parcel in parcels:  # place: the partition; count: the offset in it
            identity = origin(self.number, parcel.place << RECORD_BITS | parcel.count)
            try:
                data = parcel.payload
                values.append(None if data is None else self.load(data))
                ids.append(identity)
            except Exception as error:
                where = f"{self.url}, partition {parcel.place}, {parcel.count}"
                raw = shown(parcel.payload or b"")
                failures.append(Failure(identity, raw, f"{where}: {error}", ""))
        yield Batch(values, ids), failures
