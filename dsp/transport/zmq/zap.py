"""The handler that libzmq asks about every CURVE key (ZeroMQ's RFC 27, ZAP).

There is one per context, which is why each endpoint has a context of its own.
"""

from typing import TYPE_CHECKING, Final

import zmq

from dsp.transport.zmq.curve import DOMAIN

if TYPE_CHECKING:
    from dsp.transport.zmq.host import Host

__all__ = ["KeyCheck"]

_ADDRESS: Final = "inproc://zeromq.zap.01"
_VERSION: Final = b"1.0"


class KeyCheck:
    """Answers libzmq's questions from the allow-list.

    An accepted connection carries its key as the ``User-Id`` of its messages.
    """

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._socket = host.context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind(_ADDRESS)
        self._fd: int = self._socket.getsockopt(zmq.FD)  # type: ignore[assignment]
        host.loop.add_reader(self._fd, host.guarded(self._answer))

    def close(self) -> None:
        """Answer no more."""
        self._host.loop.remove_reader(self._fd)
        self._socket.close(0)

    def _answer(self) -> None:
        while True:
            try:
                question = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._socket.send_multipart(self._decide(question), zmq.NOBLOCK)

    def _decide(self, question: list[bytes]) -> list[bytes]:
        security = self._host.security
        assert security is not None
        if len(question) != 7 or question[0] != _VERSION or question[5] != b"CURVE":
            request = question[1] if len(question) > 1 else b""
            return [_VERSION, request, b"400", b"CURVE is required", b"", b""]
        _, request, domain, address, _, _, key = question
        if domain == DOMAIN and key.hex() in security.allowed:
            return [_VERSION, request, b"200", b"OK", key.hex().encode(), b""]
        self._host.fault(
            "unknown key",
            f"{address.decode(errors='replace')} came with the key {key.hex()}, which is not in "
            f"transport.zmq.allowed_keys",
        )
        return [_VERSION, request, b"400", b"unknown key", b"", b""]
