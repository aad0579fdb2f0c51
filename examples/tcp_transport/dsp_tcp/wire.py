"""What goes over a connection: a hello each way, then frames from the one who dialled.

Every length is checked against a bound before anything of that length is read.
"""

import asyncio
import struct
from dataclasses import dataclass
from urllib.parse import urlsplit

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError

__all__ = ["Hello", "MAX_NAME_BYTES", "parse_url", "read_hello", "encode_frame", "read_frame"]

MAX_NAME_BYTES = 1024

# Magic, version, lane, largest frame that the writer takes, lengths of id and address, the two.
_HELLO = struct.Struct("!4sBBIHH")
_MAGIC_AND_VERSION = (b"dspT", 1)
_LENGTH = struct.Struct("!I")
_LANES = tuple(Lane)


@dataclass(frozen=True, slots=True)
class Hello:
    """Who is at the other end, where others reach it, and what it takes on this connection."""

    peer: Peer
    lane: Lane
    max_frame_bytes: int

    def encode(self) -> bytes:
        """Give the bytes of this hello."""
        name, address = self.peer.id.encode(), self.peer.address.encode()
        numbers = (_LANES.index(self.lane), self.max_frame_bytes, len(name), len(address))
        return _HELLO.pack(*_MAGIC_AND_VERSION, *numbers) + name + address


async def read_hello(reader: asyncio.StreamReader, patience: float) -> Hello:
    """Read a hello.

    Raises:
        CodecError: it is something else, of another version, cut short, or late.
    """
    try:
        async with asyncio.timeout(patience):
            header = await reader.readexactly(_HELLO.size)
            magic, version, lane, most, *sizes = _HELLO.unpack(header)
            if (magic, version) != _MAGIC_AND_VERSION or lane >= len(_LANES):
                raise CodecError("not a hello of this version")
            if not all(0 < size <= MAX_NAME_BYTES for size in sizes):
                raise CodecError(f"a hello with names of {sizes} bytes")
            name, address = [(await reader.readexactly(size)).decode() for size in sizes]
    except (asyncio.IncompleteReadError, UnicodeDecodeError, TimeoutError) as error:
        raise CodecError(f"not a hello: {error!r}") from error
    return Hello(Peer(NodeId(name), address), _LANES[lane], most)


def encode_frame(payload: bytes) -> bytes:
    """Give the bytes of a frame."""
    return _LENGTH.pack(len(payload)) + payload


async def read_frame(reader: asyncio.StreamReader, most: int) -> bytes | None:
    """Read a payload; None at the end of the connection, be it between frames or inside one.

    Raises:
        CodecError: it claims to be larger than ``most``.
    """
    try:
        (size,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        if size > most:
            raise CodecError(f"a frame of {size} bytes, over {most}")
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError:
        return None  # a sender keeps the frame that it could not write to its end


def parse_url(url: str, lowest_port: int = 0) -> tuple[str, int]:
    """Split ``tcp://host:port``.

    Raises:
        ValueError: it is not such a URL, or the host is every host.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    if parts.scheme != "tcp" or not host or port is None or port < lowest_port:
        raise ValueError(f"{url!r} is not tcp://host:port")
    if parts.path or parts.query or parts.fragment or host in ("0.0.0.0", "::"):
        raise ValueError(f"{url!r}: give the host by which peers reach it, the port, and no more")
    return host, port
