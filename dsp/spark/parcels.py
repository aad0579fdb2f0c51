"""Batches of records as rows of Spark: many records in one row, as their edge would send them.

A row has the operator that the records are for, a place (the partition, where they are grouped by
key), their number, their identities and their bytes. So Spark moves a few large rows instead of
many small ones, and what a batch is does not depend on how Spark cuts its own.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dsp.errors import CodecError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DDL", "Parcel", "rows_of", "parcels_of", "pack_ids", "unpack_ids"]

DDL: Final = "target string, place long, count long, ids binary, payload binary"
"""The columns, as Spark is told."""

_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Parcel:
    """Records on their way to an operator.

    Attributes:
        target: the operator.
        place: the partition that they belong to.
        count: how many they are.
        ids: their identities, packed.
        payload: the records, by the codec of the edge.
    """

    target: str
    place: int
    count: int
    ids: bytes
    payload: bytes


def schema() -> "pa.Schema":
    """Give the columns, as Arrow has them."""
    import pyarrow as pa

    return pa.schema(
        [
            ("target", pa.string()),
            ("place", pa.int64()),
            ("count", pa.int64()),
            ("ids", pa.binary()),
            ("payload", pa.binary()),
        ]
    )


def rows_of(parcels: Sequence[Parcel]) -> "pa.RecordBatch":
    """Give parcels as rows."""
    import pyarrow as pa

    columns = [
        [parcel.target for parcel in parcels],
        [parcel.place for parcel in parcels],
        [parcel.count for parcel in parcels],
        [parcel.ids for parcel in parcels],
        [parcel.payload for parcel in parcels],
    ]
    fields = schema()
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=fields)


def parcels_of(rows: "pa.RecordBatch | pa.Table") -> Iterable[Parcel]:
    """Read parcels of rows."""
    columns = (rows.column(name).to_pylist() for name in ("target", "place", "count", "ids"))
    for place, (target, where, count, ids) in enumerate(zip(*columns, strict=True)):
        yield Parcel(target, where, count, ids, rows.column("payload")[place].as_py())


def pack_ids(ids: Sequence[int]) -> bytes:
    """Give the bytes of identities: they have up to 128 bits, and often follow each other."""
    if isinstance(ids, range) and ids and ids.step > 0:
        return b"R" + ids.start.to_bytes(16, "little") + ids.step.to_bytes(16, "little")
    try:
        return b"Q" + array("Q", ids).tobytes()
    except OverflowError:
        low = array("Q", [each & _MASK for each in ids])
        high = array("Q", [each >> 64 for each in ids])
        return b"W" + low.tobytes() + high.tobytes()


def unpack_ids(data: bytes, count: int) -> Sequence[int]:
    """Read what ``pack_ids`` gave.

    Raises:
        CodecError: it is something else.
    """
    kind, rest = data[:1], data[1:]
    if kind == b"R" and len(rest) == 32:
        start, step = int.from_bytes(rest[:16], "little"), int.from_bytes(rest[16:], "little")
        return range(start, start + count * step, step)
    if kind == b"Q" and len(rest) == 8 * count:
        return array("Q", rest).tolist()
    if kind == b"W" and len(rest) == 16 * count:
        low, high = array("Q", rest[: 8 * count]), array("Q", rest[8 * count :])
        return [top << 64 | bottom for bottom, top in zip(low, high, strict=True)]
    raise CodecError(f"{len(data)} bytes that are not the identities of {count} records")
