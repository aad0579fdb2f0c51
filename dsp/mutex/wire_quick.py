"""Requests and acknowledgements as bytes, by hand.

These two are nearly all that members say to each other, a dozen bytes each, and protobuf takes
longer over them than the machines do. The bytes are those that protobuf writes, which a test
compares; whatever is not written just so is left to protobuf.
"""

from dsp.core.envelope import WIRE_VERSION
from dsp.mutex.events import Ack, Carried, Req

__all__ = ["encode_quickly", "decode_quickly"]

# Tags: number << 3 | kind, where 0 is a varint and 2 is something with a length.
_START = bytes((1 << 3, WIRE_VERSION, 40 << 3 & 0x7F | 2 | 0x80, 40 << 3 >> 7))
_EDGE = 1 << 3 | 2
_NUMBER = 2 << 3
_REQUEST = 10 << 3 | 2
_ACK = 11 << 3 | 2
_TIME = _RENEW = 1 << 3
_END = bytes((2 << 3, 1))
_SMALL = 0x80
_BIG = 1 << 64


def encode_quickly(message: object) -> bytes | None:
    """Give the bytes of a request or an acknowledgement; None for anything else."""
    if not isinstance(message, Carried):
        return None
    body = message.body
    if isinstance(body, Req):
        tag, time, rest = _REQUEST, body.ts, b""
    elif isinstance(body, Ack):
        tag, time, rest = _ACK, body.renew, _END if body.end else b""
    else:
        return None
    number = message.number
    if not (0 <= time < _BIG and 0 <= number < _BIG):
        return None
    inner = (bytes((_TIME,)) + _varint(time) if time else b"") + rest
    frame = bytes((tag, len(inner))) + inner
    if number:
        frame = bytes((_NUMBER,)) + _varint(number) + frame
    if message.edge:
        edge = message.edge.encode()
        if len(edge) >= _SMALL:
            return None
        frame = bytes((_EDGE, len(edge))) + edge + frame
    size = len(frame)
    return _START + (bytes((size,)) if size < _SMALL else _varint(size)) + frame


def decode_quickly(data: bytes) -> Carried | None:
    """Read what ``encode_quickly`` wrote; None if it has to be looked at closely."""
    try:
        at = len(_START)
        if data[:at] != _START:
            return None
        size, at = _read(data, at)
        if at + size != len(data):
            return None
        edge = ""
        if data[at] == _EDGE:
            end = at + 2 + data[at + 1]
            if data[at + 1] >= _SMALL:
                return None
            edge, at = data[at + 2 : end].decode(), end
        number = 0
        if data[at] == _NUMBER:
            number, at = _read(data, at + 1)
        tag = data[at]
        if tag not in (_REQUEST, _ACK) or at + 2 + data[at + 1] != len(data):
            return None
        at += 2
        time = 0
        if at < len(data) and data[at] == _TIME:
            time, at = _read(data, at + 1)
    except (IndexError, UnicodeDecodeError):
        return None
    rest = data[at:]
    if tag == _REQUEST:
        return None if rest else Carried(edge, number, Req(time))
    return None if rest not in (b"", _END) else Carried(edge, number, Ack(time, bool(rest)))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= _SMALL:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Read a number and tell where it ends.

    Raises:
        IndexError: it does not end, or is larger than any that is written.
    """
    byte = data[at]
    value, shift = byte & 0x7F, 7
    while byte >= _SMALL:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        shift += 7
    if value >= _BIG:
        raise IndexError
    return value, at + 1
