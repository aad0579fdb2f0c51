"""What libzmq says about the connections of a socket."""

import itertools
import os
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import zmq

if TYPE_CHECKING:
    from dsp.transport.zmq.host import Host, Socket

__all__ = ["Watch"]

_EVENT: Final = struct.Struct("=Hi")
_NAMES: Final = itertools.count(1)


class Watch:
    """Reads the monitor of a socket and hands its events on, in order.

    Args:
        host: the endpoint; what ``on_event`` raises ends it.
        socket: whose connections to watch.
        events: which events, as a mask.
        on_event: called with event and value: a file descriptor, an error number or a code.
    """

    def __init__(
        self,
        host: "Host",
        socket: "Socket",
        events: int,
        on_event: Callable[[int, int], None],
    ) -> None:
        self._socket = socket
        self._loop = host.loop
        self._on_event = on_event
        name = f"inproc://dsp.watch.{next(_NAMES)}"
        socket.monitor(name, events)
        self._pair = host.context.socket(zmq.PAIR)
        self._pair.linger = 0
        # At a mark libzmq's own thread would wait for us, and all connections with it.
        self._pair.rcvhwm = 0
        self._pair.connect(name)
        self._fd: int = self._pair.getsockopt(zmq.FD)  # type: ignore[assignment]
        drain = host.guarded(self.drain)
        host.loop.add_reader(self._fd, drain)
        # What came before the reader was added made its only signal already.
        host.loop.call_soon(drain)

    def drain(self) -> None:
        """Hand on every event up to now. Not called by anyone after ``close``."""
        while not self._pair.closed:
            try:
                event, *_ = self._pair.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if len(event) == _EVENT.size:
                self._on_event(*_EVENT.unpack(event))

    def close(self) -> None:
        """Stop watching. The socket itself stays open."""
        if not self._pair.closed:
            self._loop.remove_reader(self._fd)
            self._socket.disable_monitor()
            self._pair.close(0)


MIXED_SECURITY: Final = (
    "one end uses CURVE and the other does not: set transport.zmq.curve_secret_key_file at both"
)

# What libzmq's numbers for a failed handshake mean to the one who has to mend it.
_FAILURES: Final[dict[int, str]] = {
    zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC: "it used another key for us than ours",
    zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH: MIXED_SECURITY,
    zmq.PROTOCOL_ERROR_ZMTP_UNSPECIFIED: "what came is not ZeroMQ",
}


def failure_of(event: int, value: int) -> str:
    """Say for people why a handshake failed."""
    if event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        # The number is whatever the last call of the system left, so it may be none.
        cause = f": {os.strerror(value)}" if value else ""
        return f"the connection ended, or was silent, before the handshake did{cause}"
    return _FAILURES.get(value, f"what came is not what ZeroMQ says (libzmq's code {value:#x})")
