"""What goes over a stream: a hello, an answer, packs of frames, and counts of what was taken.

A *pack* is one message of gRPC with one or more frames, each with its length in front: a message
costs far more than a frame, so small frames that wait travel together. A message that is too large
for a pack is one frame as it is, which saves copying it at both ends. An empty message is the end.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from dsp._pb.grpc_stream_pb2 import (
    StreamAnswer,
    StreamHello,
    StreamProgress,
    StreamRefusal,
    StreamWelcome,
)
from dsp.core.envelope import WIRE_VERSION
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError

__all__ = [
    "SERVICE",
    "METHOD",
    "MAX_NAME_BYTES",
    "PACK_BYTES",
    "PACK_OVERHEAD",
    "BARE_NEXT",
    "END",
    "Hello",
    "Welcome",
    "Refusal",
    "Progress",
    "Answer",
    "decode_hello",
    "decode_answer",
    "messages_of",
    "FrameReader",
]

SERVICE = "dsp.v1.FrameStream"
METHOD = "Open"

MAX_NAME_BYTES = 1024

PACK_BYTES = 320 * 1024
"""The largest pack. A larger message is a frame, without a length in front."""

END = b""
"""The message after which a stream has no more frames."""

BARE_NEXT = b"\0"
"""The next message is a frame, without a length in front, though it is as small as a pack."""

_LENGTH = struct.Struct("!I")
PACK_OVERHEAD = _LENGTH.size
"""Bytes that a pack has on top of each frame."""

_LANES = {Lane.CONTROL: StreamHello.LANE_CONTROL, Lane.DATA: StreamHello.LANE_DATA}
_LANE_OF = {number: lane for lane, number in _LANES.items()}


@dataclass(frozen=True, slots=True)
class Hello:
    """Who opens a stream, for which lane, and which earlier streams it continues."""

    peer: Peer
    lane: Lane
    max_frame_bytes: int
    sequence_id: int
    window_frames: int
    window_bytes: int

    def encode(self) -> bytes:
        """Give the bytes of this hello."""
        return StreamHello(
            version=WIRE_VERSION,
            node=self.peer.id,
            address=self.peer.address,
            lane=_LANES[self.lane],
            max_frame_bytes=self.max_frame_bytes,
            sequence_id=self.sequence_id,
            window_frames=self.window_frames,
            window_bytes=self.window_bytes,
        ).SerializeToString()


@dataclass(frozen=True, slots=True)
class Welcome:
    """Who answers, how large a frame it takes, and what it took of earlier streams."""

    peer: Peer
    max_frame_bytes: int
    resumed: bool
    received: int

    def encode(self) -> bytes:
        """Give the bytes of this answer."""
        welcome = StreamWelcome(
            version=WIRE_VERSION,
            node=self.peer.id,
            address=self.peer.address,
            max_frame_bytes=self.max_frame_bytes,
            resumed=self.resumed,
            received=self.received,
        )
        return StreamAnswer(welcome=welcome).SerializeToString()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the other end does not want this stream."""

    reason: str

    def encode(self) -> bytes:
        """Give the bytes of this answer."""
        return StreamAnswer(refusal=StreamRefusal(reason=self.reason)).SerializeToString()


@dataclass(frozen=True, slots=True)
class Progress:
    """How many frames the other end has taken."""

    received: int

    def encode(self) -> bytes:
        """Give the bytes of this answer."""
        return StreamAnswer(progress=StreamProgress(received=self.received)).SerializeToString()


Answer = Welcome | Refusal | Progress


def decode_hello(data: bytes) -> Hello:
    """Read a hello.

    Raises:
        CodecError: garbage, another version, no lane, or names that are missing or too long.
    """
    try:
        wire = StreamHello.FromString(data)
    except DecodeError as error:
        raise CodecError(f"{len(data)} bytes that are not a hello") from error
    _check_version(wire.version)
    lane = _LANE_OF.get(wire.lane)
    if lane is None:
        raise CodecError(f"a hello for lane {wire.lane}, which does not exist")
    peer = _peer(wire.node, wire.address)
    return Hello(
        peer,
        lane,
        wire.max_frame_bytes,
        wire.sequence_id,
        wire.window_frames,
        wire.window_bytes,
    )


def decode_answer(data: bytes) -> Answer:
    """Read what the other end of a stream says.

    Raises:
        CodecError: garbage, another version, or nothing that this release knows.
    """
    try:
        wire = StreamAnswer.FromString(data)
    except DecodeError as error:
        raise CodecError(f"{len(data)} bytes that are not an answer") from error
    match wire.WhichOneof("kind"):
        case "welcome":
            welcome = wire.welcome
            _check_version(welcome.version)
            peer = _peer(welcome.node, welcome.address)
            return Welcome(peer, welcome.max_frame_bytes, welcome.resumed, welcome.received)
        case "refusal":
            return Refusal(wire.refusal.reason)
        case "progress":
            return Progress(wire.progress.received)
        case _:
            raise CodecError("an answer of no known kind")


def _check_version(version: int) -> None:
    if version != WIRE_VERSION:
        raise CodecError(
            f"wire version {version}, this process speaks {WIRE_VERSION}: run the same release of "
            f"dsp on both ends"
        )


def _peer(node: str, address: str) -> Peer:
    for name in (node, address):
        if not 0 < len(name.encode()) <= MAX_NAME_BYTES:
            raise CodecError(
                f"a name of {len(name.encode())} bytes; 1 to {MAX_NAME_BYTES} are allowed"
            )
    return Peer(NodeId(node), address)


def messages_of(payloads: Sequence[bytes]) -> list[bytes]:
    """Put frames into messages: all into one pack, or a large one into a message of its own.

    Args:
        payloads: one frame, or several that fit into a pack together.
    """
    if len(payloads) == 1 and len(payloads[0]) + PACK_OVERHEAD > PACK_BYTES:
        (frame,) = payloads
        return [frame] if len(frame) > PACK_BYTES else [BARE_NEXT, frame]
    parts: list[bytes] = []
    for payload in payloads:
        parts += (_LENGTH.pack(len(payload)), payload)
    return [b"".join(parts)]


class FrameReader:
    """Finds the frames in the messages of one stream.

    Args:
        most: bytes of the largest frame that is taken.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._bare = False

    def frames(self, message: bytes) -> Iterable[bytes]:
        """Give the frames of a message, one by one.

        Raises:
            CodecError: a frame is too large, or the message is cut short.
        """
        if self._bare or len(message) > PACK_BYTES:
            self._bare = False
            self._check(len(message))
            return (message,)
        if message == BARE_NEXT:
            self._bare = True
            return ()
        return self._unpack(message)

    def _unpack(self, message: bytes) -> Iterator[bytes]:
        start, end = 0, len(message)
        while start < end:
            first = start + PACK_OVERHEAD
            if first > end:
                raise CodecError("a pack that ends inside a length")
            (size,) = _LENGTH.unpack_from(message, start)
            self._check(size)
            start = first + size
            if start > end:
                raise CodecError(f"a pack that ends {start - end} bytes early")
            yield message[first:start]

    def _check(self, size: int) -> None:
        if size > self._most:
            raise CodecError(f"a frame of {size} bytes, over {self._most}")
