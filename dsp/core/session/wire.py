"""Segments as bytes, and back with every check that keeps a bad peer from harming us.

The bytes are those of ``SessionSegment`` in proto/, always. Payloads that are alone or large are
put in and taken out by hand, because protobuf's own code is slower there and copies them twice.
"""

import struct
from typing import Final

from google.protobuf.message import DecodeError

from dsp._pb.session_pb2 import SessionSegment, SessionWindow
from dsp.core.envelope import WIRE_VERSION
from dsp.core.session.segments import Segment, SegmentKind, Window
from dsp.errors import CodecError

__all__ = ["SegmentCodec", "SEGMENT_OVERHEAD", "PAYLOAD_OVERHEAD", "split"]

SEGMENT_OVERHEAD: Final = 64
"""Bytes that a segment with one payload is larger than the payload, at most."""

PAYLOAD_OVERHEAD: Final = 6
"""Bytes that each further payload adds to its own, at most."""

LANES: Final = 2

_KINDS: Final[dict[int, SegmentKind]] = {kind.value: kind for kind in SegmentKind}

# The start of a DATA segment as protobuf writes it: tags and values of version and kind, the tag
# of epoch and its value, the same of peer_epoch, then the tag of the sequence number.
_START: Final = struct.Struct("<5sQBQB")
_FIRST: Final = bytes((0x08, WIRE_VERSION, 0x10, SegmentKind.DATA.value, 0x19))
_PEER_TAG: Final = 0x21
_SEQUENCE_TAG: Final = 0x28
_PAYLOAD_TAG: Final = 0x32
# From this size on doing it by hand is cheaper than protobuf's copies.
_LARGE: Final = 4096


class SegmentCodec:
    """Maps segments to bytes and back."""

    def encode(self, message: Segment) -> bytes:
        """Give the bytes of a segment."""
        kind, epoch, peer_epoch, sequence, payloads, windows = message
        if kind is SegmentKind.DATA:
            if peer_epoch and (len(payloads) == 1 or len(payloads[0]) >= _LARGE):
                return _encode_by_hand(epoch, peer_epoch, sequence, payloads)
            wire = SessionSegment(
                version=WIRE_VERSION,
                kind=kind.value,  # type: ignore[arg-type]  # the numbers are the enum's
                epoch=epoch,
                peer_epoch=peer_epoch,
                sequence=sequence,
                payloads=payloads,
            )
        else:
            wire = SessionSegment(
                version=WIRE_VERSION,
                kind=kind.value,  # type: ignore[arg-type]  # the numbers are the enum's
                epoch=epoch,
                peer_epoch=peer_epoch,
                windows=[SessionWindow(received=r, items=i, size=s) for r, i, s in windows],
            )
        return wire.SerializeToString()

    def decode(self, data: bytes | memoryview) -> Segment:
        """Read a segment; its payloads are bytes of their own.

        Raises:
            CodecError: garbage, another version, or a segment that no correct peer makes.
        """
        if len(data) > _START.size and data[3] == SegmentKind.DATA:
            segment = _decode_by_hand(data)
            if segment is not None:
                return segment
        try:
            wire = SessionSegment.FromString(bytes(data))
        except DecodeError as error:
            raise CodecError(f"{len(data)} bytes that are not a session segment") from error
        if wire.version != WIRE_VERSION:
            raise CodecError(
                f"session segment of wire version {wire.version}, this process speaks "
                f"{WIRE_VERSION}: run the same release of dsp on both ends"
            )
        kind = _KINDS.get(wire.kind)
        if kind is None:
            raise CodecError(f"session segment of unknown kind {wire.kind}")
        payloads = tuple(wire.payloads)
        windows = tuple(Window(each.received, each.items, each.size) for each in wire.windows)
        if wire.epoch == 0:
            raise CodecError("session segment without an epoch")
        if kind is SegmentKind.DATA and (not payloads or wire.sequence == 0):
            raise CodecError("data segment without number or payload")
        if kind in (SegmentKind.STATUS, SegmentKind.BYE) and len(windows) != LANES:
            raise CodecError(f"{kind.name} segment with {len(windows)} windows instead of {LANES}")
        return Segment(kind, wire.epoch, wire.peer_epoch, wire.sequence, payloads, windows)

    def decode_split(self, start: bytes, payload: bytes) -> Segment:
        """Read a segment that comes as ``split`` made it; its payload is not copied.

        Raises:
            CodecError: as ``decode``.
        """
        if len(start) > _START.size and start[3] == SegmentKind.DATA:
            head, sequence, at = _read_start(start)
            if head is not None and at < len(start) and start[at] == _PAYLOAD_TAG:
                size, at = _read_varint(start, at + 1)
                if size == len(payload) and at == len(start) and sequence:
                    return Segment(SegmentKind.DATA, *head, sequence, (payload,))
        return self.decode(start + payload)


def split(segment: Segment, least: int) -> tuple[bytes, bytes] | None:
    """Give the bytes of a segment as two parts, the second of which is its payload, uncopied.

    None unless it is a DATA segment with a single payload of ``least`` bytes or more.
    """
    payloads = segment.payloads
    if len(payloads) != 1 or len(payloads[0]) < least or not segment.peer_epoch:
        return None
    (payload,) = payloads
    start = _start(segment.epoch, segment.peer_epoch, segment.sequence)
    return start + b"\x32" + _varint(len(payload)), payload


def _start(epoch: int, peer_epoch: int, sequence: int) -> bytes:
    return _START.pack(_FIRST, epoch, _PEER_TAG, peer_epoch, _SEQUENCE_TAG) + _varint(sequence)


def _encode_by_hand(
    epoch: int, peer_epoch: int, sequence: int, payloads: tuple[bytes, ...]
) -> bytes:
    parts = [_start(epoch, peer_epoch, sequence)]
    for payload in payloads:
        parts.append(b"\x32" + _varint(len(payload)))
        parts.append(payload)
    return b"".join(parts)


def _decode_by_hand(data: bytes | memoryview) -> Segment | None:
    """Read a DATA segment as it is usually written; None if it has to be looked at closely."""
    head, sequence, at = _read_start(data)
    if head is None:
        return None
    payloads: list[bytes] = []
    end = len(data)
    while at < end:
        if data[at] != _PAYLOAD_TAG:
            return None
        size, at = _read_varint(data, at + 1)
        if at + size > end or (size < _LARGE and at + size < end and not payloads):
            return None  # truncated; or many small ones, for which protobuf is faster
        payloads.append(bytes(data[at : at + size]))
        at += size
    if not payloads or sequence == 0:
        return None
    return Segment(SegmentKind.DATA, *head, sequence, tuple(payloads))


def _read_start(data: bytes | memoryview) -> tuple[tuple[int, int] | None, int, int]:
    """Read both epochs and the number, if they are as ``_start`` writes them, and where they end.

    The epochs are None if they are not.
    """
    first, epoch, peer_tag, peer_epoch, sequence_tag = _START.unpack_from(data)
    if first != _FIRST or peer_tag != _PEER_TAG or sequence_tag != _SEQUENCE_TAG or epoch == 0:
        return None, 0, 0
    sequence, at = _read_varint(data, _START.size)
    return (epoch, peer_epoch), sequence, at


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read a number of up to five bytes; give it and where it ends. A bad one reads as huge."""
    value = shift = 0
    for byte in data[at : at + 10]:
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    return len(data) + 1, at
