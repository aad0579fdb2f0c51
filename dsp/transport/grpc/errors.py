"""What gRPC raises, as errors of dsp: in one place, and with what to do about it."""

from asyncio import InvalidStateError
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
import grpc.aio

from dsp.errors import ConnectError, TransportError

__all__ = ["RefusedError", "ClosedEarlyError", "map_errors"]

_REFUSALS = {
    grpc.StatusCode.UNIMPLEMENTED: "a gRPC server is there, but no dsp endpoint",
    grpc.StatusCode.UNAUTHENTICATED: "it does not know us",
    grpc.StatusCode.PERMISSION_DENIED: "it does not let us in",
}

# What a handshake that fails says, and which setting that is about. gRPC has text only.
_HINTS = (
    ("certificate has expired", "its certificate has expired: renew its certificate_file"),
    ("not yet valid", "its certificate is not valid yet: check both clocks"),
    ("self signed", "its certificate is self-signed and not in our transport.grpc.ca_file"),
    ("self-signed", "its certificate is self-signed and not in our transport.grpc.ca_file"),
    ("unable to get local issuer", "nobody in our transport.grpc.ca_file signed its certificate"),
    ("CERTIFICATE_VERIFY_FAILED", "our transport.grpc.ca_file does not vouch for its certificate"),
    ("Hostname Verification", "its certificate names somebody else: see transport.grpc.identity"),
    ("does not match any of", "its certificate names somebody else: see transport.grpc.identity"),
    ("WRONG_VERSION_NUMBER", "it speaks plaintext: one of the two has grpc:// and not grpcs://"),
    ("TLSV1_ALERT", "it refuses our certificate: its ca_file must vouch for ours"),
    ("SSLV3_ALERT", "it refuses our certificate: its ca_file must vouch for ours"),
    ("handshake", "the TLS handshake failed: see certificate_file and ca_file of both"),
)


_CLOSED = ("Socket closed", "Connection reset", "Broken pipe", "End of TCP stream")


class RefusedError(TransportError):
    """One of the two ends does not want to talk to the other, and will not until one is changed."""


class ClosedEarlyError(ConnectError):
    """The other end took the connection and closed it without a word.

    It may be ending. If it goes on like that, it takes us for a stranger: a TLS endpoint tells
    neither plaintext peers nor those whose certificate it does not trust.
    """


@contextmanager
def map_errors(what: str) -> Iterator[None]:
    """Turn what gRPC raises into ``RefusedError`` and ``ConnectError``.

    Args:
        what: what was tried, for the message.
    """
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise _mapped(what, error) from error
    except (grpc.aio.BaseError, InvalidStateError) as error:
        # The call ended under our hands; gRPC has no status for this.
        raise ConnectError(f"{what}: the stream is over ({error})") from error


def _mapped(what: str, error: grpc.aio.AioRpcError) -> TransportError:
    details = error.details() or "no details"
    if error.code() in _REFUSALS:
        return RefusedError(f"{what}: {_REFUSALS[error.code()]} ({details})")
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        for sign, hint in _HINTS:
            if sign in details:
                return RefusedError(f"{what}: {hint} ({details})")
        # Not while a stream runs: there it is the end of one that was welcome.
        if "failed to connect" in details and any(sign in details for sign in _CLOSED):
            return ClosedEarlyError(f"{what}: it closed the connection without a word ({details})")
    return ConnectError(f"{what}: {error.code().name} ({details})")
