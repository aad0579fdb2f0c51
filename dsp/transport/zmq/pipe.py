"""The socket of a link as frames see it: does libzmq take one more just now?"""

from collections.abc import Sequence
from typing import Final

import zmq

from dsp.core.types import Lane
from dsp.transport.zmq.host import POLLOUT, Socket
from dsp.transport.zmq.wire import split_head

__all__ = ["Pipe"]

# As plain numbers: pyzmq's are flags of an enum, whose operators are Python functions.
NOBLOCK: Final = int(zmq.NOBLOCK)
MORE: Final = int(zmq.SNDMORE) | NOBLOCK


class Pipe:
    """A DEALER socket, and what is known of its room.

    To be told by libzmq that there is no room costs more than to send a frame, so once it has said
    so it is not asked again before its events show that there is some.

    Attributes:
        socket: the socket.
        whole: bytes of the largest frame that goes as one message; 0 until the peer has said.
    """

    __slots__ = ("_full", "_lane", "socket", "whole")

    def __init__(self, socket: Socket, lane: Lane) -> None:
        self.socket = socket
        self.whole = 0
        self._lane = lane
        self._full = False

    def send(self, frame: bytes) -> bool:
        """Send a frame if it fits and there is room; tell whether it went."""
        if self._full or len(frame) > self.whole:
            return False
        try:
            self.socket.send(frame, NOBLOCK)
        except zmq.Again:
            self._full = True
            return False
        return True

    def send_halves(self, start: bytes, rest: bytes) -> bool:
        """Send a frame of two parts, in the same way."""
        if self._full or len(start) + len(rest) > self.whole:
            return False
        try:
            self.socket.send(split_head(start, self._lane), MORE)
        except zmq.Again:
            self._full = True
            return False
        # libzmq counts whole messages: where it took the first part it takes the others.
        self.socket.send(rest, NOBLOCK)
        return True

    def send_parts(self, parts: Sequence[bytes]) -> bool:
        """Send a message of the protocol, of whatever size, if there is room."""
        if self._full:
            return False
        try:
            self.socket.send_multipart(parts, NOBLOCK)
        except zmq.Again:
            self._full = True
            return False
        return True

    def events(self) -> int:
        """Ask libzmq what there is to be done; from now on it is known whether there is room."""
        events = int(self.socket.getsockopt(zmq.EVENTS))
        if events & POLLOUT:
            self._full = False
        return events

    @property
    def has_room(self) -> bool:
        """Whether libzmq would take a message, as far as is known."""
        return not self._full
