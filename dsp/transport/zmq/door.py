"""Where peers come in: a listening ROUTER socket for one lane.

A ROUTER that is not read takes no more from any connection once their queues are full, so not
reading is how a full inbox holds senders back. It only ever answers with small messages, one for
each that it got, so its own high-water mark is out of reach.
"""

import logging
import os
from contextlib import suppress
from typing import Final, cast

import zmq

from dsp.core.types import Lane
from dsp.errors import CodecError
from dsp.transport.passage import Halves
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.errors import map_errors
from dsp.transport.zmq.host import BACKLOG, POLLIN, TURN_BYTES, Host
from dsp.transport.zmq.monitor import Watch, failure_of
from dsp.transport.zmq.visitor import Visitor
from dsp.transport.zmq.wire import (
    MAX_HELLO_BYTES,
    MAX_MESSAGE_BYTES,
    Kind,
    decode_hello,
    encode_hello,
    encode_refusal,
    head,
    read_head,
    read_split,
)

__all__ = ["Door"]

logger = logging.getLogger(__name__)

# Messages that one callback of the loop reads: enough to pay for the callback, few enough that
# the other lane does not wait for long.
BATCH: Final = 64
CURVE_BYTES: Final = 256
# From here on a copy costs more than a view.
LARGE: Final = 16 * 1024
EVENTS: Final = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


class Door:
    """The listening side of one lane.

    Args:
        host: the endpoint.
        address: what to bind, as numbers.
    """

    def __init__(self, host: Host, lane: Lane, address: Address) -> None:
        self._host = host
        self._lane = lane
        self._visitors: dict[bytes, Visitor] = {}
        self._by_descriptor: dict[int, bytes] = {}
        self._waits_for_room = False
        self._path = address.path(lane) if address.kind == "ipc" else None
        self._socket = host.socket(zmq.ROUTER, lane, ipv6=address.is_ipv6)
        try:
            self._bind(address)
        except BaseException:
            self._socket.close(0)
            raise
        self._watch = Watch(host, self._socket, EVENTS, self._on_event)
        self._fd: int = self._socket.getsockopt(zmq.FD)  # type: ignore[assignment]
        self._readable = host.guarded(self.read)
        host.loop.add_reader(self._fd, self._readable)
        host.loop.call_soon(self._readable)

    def _bind(self, address: Address) -> None:
        socket = self._socket
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        # CURVE puts some bytes around each message, and counts them.
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE_BYTES + CURVE_BYTES)
        socket.setsockopt(zmq.BACKLOG, BACKLOG)
        socket.setsockopt(zmq.HANDSHAKE_IVL, int(self._host.config.connect_timeout * 1000))
        if self._host.security is not None:
            self._host.security.serve(socket)
        with map_errors(f"{self._host.name} cannot listen on {address.endpoint(self._lane)}"):
            socket.bind(address.endpoint(self._lane))

    @property
    def bound(self) -> str:
        """The address as libzmq knows it, with the port that it chose."""
        return self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def close(self) -> None:
        """Let nobody in any more, and drop who is in."""
        if not self._socket.closed:
            self._host.loop.remove_reader(self._fd)
            self._watch.close()
            if self._path is not None:
                # libzmq leaves it behind. As long as we listen, nobody else takes the path.
                with suppress(FileNotFoundError):
                    os.unlink(self._path)
            self._socket.close(0)

    def room(self) -> None:
        """The inbox has room again."""
        if self._waits_for_room:
            self._waits_for_room = False
            self._host.loop.call_soon(self._readable)

    # -- reading --------------------------------------------------------------------------

    def read(self) -> None:
        """Take what is there, as long as there is room for it."""
        socket, has_room, lane = self._socket, self._host.has_room, self._lane
        size, views = 0, self._host.views[lane]
        for number in range(BATCH):
            if socket.closed:
                return
            if not has_room(lane, 1):
                self._waits_for_room = True
                return
            # Most often there is one message. To ask is cheaper than to raise and catch.
            if number == 1 and not int(socket.getsockopt(zmq.EVENTS)) & POLLIN:
                return
            try:
                identity = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            visitor = self._visitors.get(identity)
            if visitor is None:
                self._first_words(identity)
                continue
            frame = socket.recv(copy=False)
            if frame.more:
                size += self._take(identity, visitor, [frame.bytes, *socket.recv_multipart()])
                if size >= TURN_BYTES:
                    break
                continue
            size += len(frame)
            large = views and len(frame) >= LARGE
            payload = cast("bytes", frame.buffer) if large else frame.bytes
            self._host.arrived(visitor.peer, lane, payload)
            if size >= TURN_BYTES:
                break
        # There may be more, and the descriptor signals only what comes anew.
        self._host.loop.call_soon(self._readable)

    def _take(self, identity: bytes, visitor: Visitor, parts: list[bytes]) -> int:
        """Take a message of several parts; give the size of the frame that it is, or 0."""
        try:
            start = read_split(parts[0], self._lane)
            kind = Kind.SPLIT if start is not None else read_head(parts[0], self._lane)
            if len(parts) != 2:
                raise CodecError(f"it has {len(parts)} parts")
            if start is not None:
                whole = (
                    Halves(start, parts[1])
                    if self._host.views[self._lane]
                    else b"".join((start, parts[1]))
                )
                self._host.arrived(visitor.peer, self._lane, cast("bytes", whole))
                return len(whole)
            if kind is Kind.PIECE or kind is Kind.LAST_PIECE:
                frame = visitor.add(parts[1], last=kind is Kind.LAST_PIECE)
                if frame is not None:
                    self._host.arrived(visitor.peer, self._lane, frame)
            elif kind is Kind.BYE:
                self._answer(identity, [head(Kind.BYE_RECEIVED, self._lane), b""])
            else:
                raise CodecError(f"a {kind.name} is not expected here")
        except CodecError as error:
            self._host.rejected(self._lane, "bad message", f"of {visitor.peer}: {error}")
        return 0

    def _first_words(self, identity: bytes) -> None:
        """A connection speaks for the first time: hear who it is, or refuse it."""
        parts = [self._socket.recv(copy=False)]
        while parts[-1].more:
            parts.append(self._socket.recv(copy=False))
        # Ends of connections up to now, since their descriptors are used again.
        self._watch.drain()
        try:
            kind = read_head(bytes(parts[0].buffer[:MAX_HELLO_BYTES]), self._lane)
            if len(parts) != 2 or kind is not Kind.HELLO:
                raise CodecError("it does not begin with a hello")
            hello, address = decode_hello(bytes(parts[1].buffer[:MAX_HELLO_BYTES]))
            self._check_identity(parts[1])
            self._check_key(address, parts[1])
        except CodecError as error:
            self._host.rejected(self._lane, "bad hello", str(error))
            self._answer(identity, encode_refusal(self._lane, str(error)))
            return
        peer = self._host.joined(hello.peer)
        self._visitors[identity] = Visitor(peer, self._host.config.max_frame_bytes)
        self._by_descriptor[int(parts[1].get(zmq.SRCFD))] = identity
        self._answer(identity, encode_hello(Kind.WELCOME, self._lane, self._host.hello()))

    def _check_identity(self, part: zmq.Frame) -> None:
        """Let libzmq number the connections: who chose a number could take over that of another."""
        if part.get("Identity"):
            raise CodecError("it chose an identity of its own, which dsp never does")

    def _check_key(self, address: Address, part: zmq.Frame) -> None:
        """With CURVE, who says to live at an address must hold the key in it."""
        if self._host.security is not None and part.get("User-Id") != address.key:
            raise CodecError("the key in its address is not the one that it came with")

    def _answer(self, identity: bytes, parts: list[bytes]) -> None:
        try:
            self._socket.send_multipart([identity, *parts], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            # Gone, or it does not read its answers: the end of the connection tells the rest.
            logger.info("%s: no answer to a connection: %s", self._host.name, error)

    # -- connections ----------------------------------------------------------------------

    def _on_event(self, event: int, value: int) -> None:
        if event == zmq.EVENT_DISCONNECTED:
            identity = self._by_descriptor.pop(value, None)
            visitor = self._visitors.get(identity) if identity is not None else None
            if visitor is not None and not visitor.gone:
                # What it sent before may still be read, so it is kept a while.
                visitor.gone = True
                self._host.left(visitor.peer, "the connection from it is gone")
                self._forget_gone()
            return
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            return  # the key check has told of it, with the key
        self._host.rejected(
            self._lane, "failed handshake", f"of a connection: {failure_of(event, value)}"
        )

    def _forget_gone(self) -> None:
        """Forget the oldest of those that are gone, so that their number has a bound."""
        gone = [identity for identity, visitor in self._visitors.items() if visitor.gone]
        for identity in gone[:-MAX_GONE]:
            del self._visitors[identity]


MAX_GONE: Final = 256
