"""What travels inside ZeroMQ messages.

A connection begins with a hello from the one who dials; the other answers with a welcome, or
refuses with a reason. After that a message of one part is a frame. Messages of two parts begin with
a head that says what they are: hello, welcome, refused, a piece of a frame that is too large for
one message, bye (all is sent) and the answer to it (all is received); or, with the start of a frame
behind the head, a frame whose rest is the second part. Neither end copies that rest to put it
together, which for a large one costs more than everything else.

Large frames go in pieces because libzmq's marks count messages, not bytes: only if messages have a
bound do the marks bound memory.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError
from dsp.transport.zmq.address import Address

__all__ = [
    "VERSION",
    "MAX_MESSAGE_BYTES",
    "MAX_HELLO_BYTES",
    "MAX_NAME_BYTES",
    "Kind",
    "Hello",
    "cut_up",
    "head",
    "read_head",
    "encode_hello",
    "decode_hello",
    "encode_refusal",
    "decode_refusal",
    "split_head",
    "read_split",
]

VERSION: Final = 1
MAX_MESSAGE_BYTES: Final = 512 * 1024
MAX_HELLO_BYTES: Final = 4 * 1024
MAX_NAME_BYTES: Final = 255
MAX_REFUSAL_BYTES: Final = 512
MAX_START_BYTES: Final = 256

_MAGIC: Final = b"dspZ"
_HEAD: Final = struct.Struct("!4sBBB")
_HELLO: Final = struct.Struct("!QHH")
_LANES: Final = tuple(Lane)


class Kind(IntEnum):
    """What a message of two parts is. The first three mean the same in every version."""

    HELLO = 1
    WELCOME = 2
    REFUSED = 3
    PIECE = 4
    LAST_PIECE = 5
    BYE = 6
    BYE_RECEIVED = 7
    SPLIT = 8


@dataclass(frozen=True, slots=True)
class Hello:
    """Who speaks, and the largest frame that they take."""

    peer: Peer
    max_frame_bytes: int


def head(kind: Kind, lane: Lane) -> bytes:
    """Make the first part of a message of two."""
    return _HEAD.pack(_MAGIC, VERSION, kind, _LANES.index(lane))


def cut_up(frame: bytes, lane: Lane) -> list[list[bytes]]:
    """Give the messages that a large frame travels in."""
    steps = range(0, len(frame), MAX_MESSAGE_BYTES)
    kinds = [Kind.PIECE] * (len(steps) - 1) + [Kind.LAST_PIECE]
    return [
        [head(kind, lane), frame[start : start + MAX_MESSAGE_BYTES]]
        for start, kind in zip(steps, kinds, strict=True)
    ]


def split_head(start: bytes, lane: Lane) -> bytes:
    """Make the first part of a frame that travels in two."""
    return head(Kind.SPLIT, lane) + start


def read_split(part: bytes, lane: Lane) -> bytes | None:
    """Give the start of a frame that travels in two parts, or None if this is no part of one."""
    if not _HEAD.size < len(part) <= _HEAD.size + MAX_START_BYTES:
        return None
    return part[_HEAD.size :] if part.startswith(_SPLIT_HEADS[lane]) else None


def read_head(part: bytes, lane: Lane) -> Kind:
    """Read the first part of a message of two.

    Raises:
        CodecError: it is not one of ours, or of another version or lane.
    """
    if len(part) != _HEAD.size or not part.startswith(_MAGIC):
        raise CodecError("it is not a message of dsp")
    _, version, kind, lane_index = _HEAD.unpack(part)
    if kind == Kind.REFUSED:
        return Kind.REFUSED
    if version != VERSION:
        raise CodecError(
            f"it speaks version {version} of the wire format, we speak {VERSION}: "
            f"run the same release of dsp at both ends"
        )
    if lane_index >= len(_LANES) or _LANES[lane_index] is not lane:
        raise CodecError(f"it is for another lane than {lane.value}: the ports are mixed up")
    try:
        return Kind(kind)
    except ValueError:
        raise CodecError(f"it is of the unknown kind {kind}") from None


def encode_hello(kind: Kind, lane: Lane, hello: Hello) -> list[bytes]:
    """Make a hello or a welcome."""
    name, address = hello.peer.id.encode(), hello.peer.address.encode()
    sizes = _HELLO.pack(hello.max_frame_bytes, len(name), len(address))
    return [head(kind, lane), sizes + name + address]


def decode_hello(body: bytes) -> tuple[Hello, Address]:
    """Read the second part of a hello or a welcome.

    Raises:
        CodecError: truncated, or its name or address is none.
    """
    if len(body) < _HELLO.size:
        raise CodecError("its hello is truncated")
    most, name_size, address_size = _HELLO.unpack_from(body)
    if len(body) != _HELLO.size + name_size + address_size or not 0 < name_size <= MAX_NAME_BYTES:
        raise CodecError("its hello is malformed")
    try:
        name = body[_HELLO.size : _HELLO.size + name_size].decode()
        text = body[_HELLO.size + name_size :].decode()
        address = Address.parse(text)
        address.check_reachable()
    except ValueError as error:  # UnicodeDecodeError is one
        raise CodecError(f"its hello is malformed: {error}") from error
    return Hello(Peer(NodeId(name), text), most), address


_SPLIT_HEADS: Final = {lane: head(Kind.SPLIT, lane) for lane in Lane}


def encode_refusal(lane: Lane, reason: str) -> list[bytes]:
    """Make the answer to a hello that is refused."""
    return [head(Kind.REFUSED, lane), reason.encode()[:MAX_REFUSAL_BYTES]]


def decode_refusal(body: bytes) -> str:
    """Read the reason of a refusal; a text for people, from a stranger."""
    return ascii(body[:MAX_REFUSAL_BYTES].decode(errors="replace"))[1:-1]
