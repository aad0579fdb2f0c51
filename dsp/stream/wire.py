"""Batches and the engine's own messages as envelopes, and back.

What is written here is protobuf, and any protobuf library reads it. But it would copy the records
of a batch three times on their way in and as often on their way out, so large ones are put behind
the rest of the message by hand, and found there again.
"""

from array import array
from collections.abc import Sequence
from sys import byteorder
from typing import Final

from google.protobuf.message import DecodeError

from dsp._pb.engine_pb2 import EngineBatch
from dsp.core.envelope import WIRE_VERSION, Envelope, encode_envelope
from dsp.errors import CodecError
from dsp.stream.batch import BRANCH
from dsp.stream.codecs import Payload

__all__ = ["decode_batch", "encode_batch", "pack_batch", "unpack_ids"]

WIDE = 16
# From this size on doing it by hand is cheaper than protobuf's copies.
LARGE: Final = 4096
# Tag and kind of the fields that are written by hand.
BATCH_FIELD: Final = Envelope.DESCRIPTOR.fields_by_name["engine_batch"].number << 3 | 2
PAYLOAD_FIELD: Final = EngineBatch.DESCRIPTOR.fields_by_name["payload"].number << 3 | 2
FIXED: Final = {1: 8, 5: 4}


def pack_batch(sequence: int, operator: str, ids: Sequence[int], born: float) -> EngineBatch:
    """Put all that is known of a batch into a message, but for its records."""
    message = EngineBatch(sequence=sequence, operator=operator, records=len(ids), born=born)
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


def encode_batch(source: str, destination: str, message: EngineBatch, payload: Payload) -> bytes:
    """Give the bytes of an envelope with a batch.

    Args:
        source: the instance that sends it.
        destination: the one that gets it.
        message: all of it but the records.
        payload: the records.
    """
    if len(payload) < LARGE:
        message.payload = bytes(payload)
        return encode_envelope(
            Envelope(source=source, destination=destination, engine_batch=message)
        )
    head = Envelope(version=WIRE_VERSION, source=source, destination=destination)
    rest = message.SerializeToString() + _varint(PAYLOAD_FIELD) + _varint(len(payload))
    size = _varint(BATCH_FIELD) + _varint(len(rest) + len(payload))
    return b"".join((head.SerializeToString(), size, rest, payload))


def decode_batch(data: bytes) -> tuple[Envelope, Payload] | None:
    """Read an envelope with a batch, as it is usually written, and the records apart from it.

    Returns:
        None if it has to be looked at closely: it may be anything else, or garbage.
    """
    if len(data) < LARGE:
        return None
    begin, at = _find(data, 0, BATCH_FIELD)
    size, start = _read_varint(data, at)
    if not at or start + size != len(data):
        return None
    end, at = _find(data, start, PAYLOAD_FIELD)
    size, first = _read_varint(data, at)
    if not at or first + size != len(data):
        return None
    view = memoryview(data)
    try:
        envelope = Envelope.FromString(data[:begin])
        envelope.engine_batch.MergeFromString(data[start:end])
    except DecodeError:
        return None
    if envelope.version != WIRE_VERSION:
        return None
    return envelope, view[first:]


def _find(data: bytes, at: int, wanted: int) -> tuple[int, int]:
    """Look for a field among those of a message; give where its tag begins and ends, or 0, 0."""
    while at < len(data):
        begin = at
        field, at = _read_varint(data, at)
        if field == wanted:
            return begin, at
        kind = field & 7
        if kind == 0:
            _, at = _read_varint(data, at)
        elif kind == 2:
            size, at = _read_varint(data, at)
            at += size
        elif kind in FIXED:
            at += FIXED[kind]
        else:
            break
    return 0, 0


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number; give it and where it ends. A bad one ends behind everything."""
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, len(data) + 1
