"""Messages of the algorithms for fixed groups as bytes, and back: for measurements beside ours."""

from collections.abc import Hashable

from dsp._pb.mutex_pb2 import (
    MutexFrame,
    MutexPublishedAck,
    MutexRequest,
    MutexToken,
    MutexVector,
)
from dsp.errors import CodecError
from dsp.mutex.arbiter_token import Done, Grant, Token, TokenWanted, Want
from dsp.mutex.published import PublishedAck, PublishedEnd, PublishedReq
from dsp.mutex.ra1 import RaReply, RaRequest
from dsp.mutex.ra2 import RaStart, VectorReply, VectorRequest

__all__ = ["FIXED_BODIES", "encode_fixed", "decode_fixed"]

_EMPTY = {
    "ra_reply": RaReply,
    "want": Want,
    "grant": Grant,
    "done": Done,
    "token_wanted": TokenWanted,
}
_NAMES = {kind: name for name, kind in _EMPTY.items()}

FIXED_BODIES = frozenset(
    {
        *_EMPTY,
        "ra_request",
        "vector_request",
        "vector_reply",
        "ra_start",
        "token",
        "published_request",
        "published_ack",
        "published_end",
    }
)
"""The bodies of a frame that belong to these algorithms."""


def encode_fixed(message: Hashable) -> MutexFrame:
    """Put a message into a frame.

    Raises:
        CodecError: it is none of these algorithms.
    """
    match message:
        case RaRequest(ts):
            return MutexFrame(ra_request=MutexRequest(time=ts))
        case VectorRequest(requests):
            return MutexFrame(vector_request=MutexVector(counts=requests))
        case VectorReply(request, entered):
            return MutexFrame(vector_reply=MutexVector(counts=entered, request=request))
        case RaStart(request, entered):
            return MutexFrame(ra_start=MutexVector(counts=entered, request=request))
        case Token(wanted):
            return MutexFrame(token=MutexToken(wanted=wanted))
        case PublishedReq(ts):
            return MutexFrame(published_request=MutexRequest(time=ts))
        case PublishedAck(renew, end):
            return MutexFrame(published_ack=MutexPublishedAck(renew=renew, end=end))
        case PublishedEnd(clock):
            return MutexFrame(published_end=MutexRequest(time=clock))
        case RaReply() | Want() | Grant() | Done() | TokenWanted():
            frame = MutexFrame()
            getattr(frame, _NAMES[type(message)]).SetInParent()
            return frame
        case _:
            raise CodecError(f"no message of mutual exclusion: {message!r}")


def decode_fixed(frame: MutexFrame) -> Hashable:
    """Take a message out of a frame whose body is one of ``FIXED_BODIES``."""
    kind = frame.WhichOneof("body")
    assert kind is not None
    if kind in _EMPTY:
        return _EMPTY[kind]()
    match kind:
        case "ra_request":
            return RaRequest(frame.ra_request.time)
        case "vector_request":
            return VectorRequest(tuple(frame.vector_request.counts))
        case "vector_reply":
            return VectorReply(frame.vector_reply.request, tuple(frame.vector_reply.counts))
        case "ra_start":
            return RaStart(frame.ra_start.request, tuple(frame.ra_start.counts))
        case "token":
            return Token(frame.token.wanted)
        case "published_request":
            return PublishedReq(frame.published_request.time)
        case "published_ack":
            return PublishedAck(frame.published_ack.renew, frame.published_ack.end)
        case _:
            return PublishedEnd(frame.published_end.time)
