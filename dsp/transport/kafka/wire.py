"""What a record carries beside the payload: one header that says who sent it, and what it is.

The payload is the record's value, untouched: no byte of it is copied to add or remove a header.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dsp.core.types import NodeId, Peer
from dsp.errors import CodecError

__all__ = ["HEADER", "RECORD_OVERHEAD", "Kind", "Stamp", "Stamps"]

HEADER = "dsp"

RECORD_OVERHEAD = 8 * 1024
"""Bytes that a record and its batch may have beside the payload: header and Kafka's own."""

_VERSION = 1
_MOST_NAME_BYTES = 2048
# Version, kind, epoch of the sender, lengths of its id and its address, the two.
_STAMP = struct.Struct("!BBQHH")
_MOST_KNOWN = 4096


class Kind(Enum):
    """What a record is."""

    FRAME = 0
    HELLO = 1
    """Its owner opened this inbox: the later of two wins."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Who sent a record, in which incarnation, and what it is."""

    kind: Kind
    peer: Peer
    epoch: int

    def encode(self) -> bytes:
        """Give the value of the header.

        Raises:
            ValueError: id or address are too long.
        """
        name, address = self.peer.id.encode(), self.peer.address.encode()
        if max(len(name), len(address)) > _MOST_NAME_BYTES:
            raise ValueError(f"id and address take at most {_MOST_NAME_BYTES} bytes each")
        numbers = (self.kind.value, self.epoch, len(name), len(address))
        return _STAMP.pack(_VERSION, *numbers) + name + address


class Stamps:
    """Reads headers, and remembers what it read: a sender's header is always the same."""

    def __init__(self) -> None:
        self._known: dict[bytes, Stamp] = {}

    def read(self, headers: Sequence[tuple[str, bytes | None]]) -> Stamp:
        """Give the stamp of a record.

        Raises:
            CodecError: there is none, or not of this version.
        """
        if len(headers) != 1 or headers[0][0] != HEADER or headers[0][1] is None:
            raise CodecError("a record that is not from dsp")
        wire = headers[0][1]
        stamp = self._known.get(wire)
        if stamp is None:
            stamp = _decode(wire)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[wire] = stamp
        return stamp


def _decode(wire: bytes) -> Stamp:
    try:
        version, kind, epoch, *sizes = _STAMP.unpack_from(wire)
        if version != _VERSION:
            raise CodecError(f"a record of version {version}, this is version {_VERSION}")
        if not all(0 < size <= _MOST_NAME_BYTES for size in sizes):
            raise CodecError(f"a header with names of {sizes} bytes")
        middle = _STAMP.size + sizes[0]
        if len(wire) != middle + sizes[1]:
            raise CodecError("a header of the wrong length")
        name, address = wire[_STAMP.size : middle].decode(), wire[middle:].decode()
        return Stamp(Kind(kind), Peer(NodeId(name), address), epoch)
    except (struct.error, ValueError) as error:
        raise CodecError(f"a header that makes no sense: {error}") from error
