"""Batches and the engine's own messages as envelopes, and back."""

from array import array
from collections.abc import Sequence
from sys import byteorder

from dsp._pb.engine_pb2 import EngineBatch
from dsp.errors import CodecError
from dsp.stream.batch import BRANCH

__all__ = ["pack_batch", "unpack_ids"]

WIDE = 16


def pack_batch(
    sequence: int, operator: str, ids: Sequence[int], born: float, payload: bytes
) -> EngineBatch:
    """Put encoded records and their identities into a message."""
    message = EngineBatch(
        sequence=sequence, operator=operator, records=len(ids), born=born, payload=payload
    )
    if isinstance(ids, range) and ids.step == 1 and len(ids):
        message.first_id = ids[0]
    elif isinstance(ids, range) and ids.step == BRANCH and len(ids) > 1:
        message.id_bytes = WIDE
        message.ids = ids[0].to_bytes(WIDE, "little")
    elif ids and max(ids) >> 64:
        message.id_bytes = WIDE
        message.ids = b"".join([each.to_bytes(WIDE, "little") for each in ids])
    elif len(ids):
        packed = array("Q", ids)
        if byteorder == "big":
            packed.byteswap()
        message.id_bytes = 8
        message.ids = packed.tobytes()
    return message


def unpack_ids(message: EngineBatch) -> Sequence[int]:
    """Read identities.

    Raises:
        CodecError: another number of them than of records.
    """
    records, width = message.records, message.id_bytes
    if not width:
        return range(message.first_id, message.first_id + records)
    data = message.ids
    if width == WIDE == len(data) and records > 1:
        first = int.from_bytes(data, "little")
        return range(first, first + records * BRANCH, BRANCH)
    if width not in (8, WIDE) or len(data) != width * records:
        raise CodecError(f"{len(data)} bytes of identities for {records} records")
    if width == WIDE:
        return [int.from_bytes(data[i : i + WIDE], "little") for i in range(0, len(data), WIDE)]
    packed = array("Q", data)
    if byteorder == "big":
        packed.byteswap()
    return packed.tolist()
