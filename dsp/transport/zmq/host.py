"""What the two halves of an endpoint, its doors and its links, know about the whole."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import zmq

from dsp.core.types import Lane, Peer
from dsp.transport.zmq.curve import Security
from dsp.transport.zmq.wire import Hello

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["Host", "Socket", "HIGH_WATER", "POLLIN", "POLLOUT", "TURN_BYTES"]

Socket = zmq.Socket[bytes]

# Messages on each side of a connection. With messages of at most 64 KiB that is 4 MiB; half of it
# costs throughput, twice of it gains none.
HIGH_WATER = 16
# As plain numbers: pyzmq's are flags of an enum, whose operators are Python functions.
POLLIN = int(zmq.POLLIN)
POLLOUT = int(zmq.POLLOUT)
# What one callback of the loop moves at most: the other lane waits for that long.
TURN_BYTES = 128 * 1024
BACKLOG = 1024
LANES = tuple(Lane)

# Ends a connection whose other end went without a word. Not ZMTP's heartbeats: those would also
# end the connection of a process that is stopped for a while, and what was on its way with it.
KEEP_ALIVE = (
    (zmq.TCP_KEEPALIVE, 1),
    (zmq.TCP_KEEPALIVE_IDLE, 10),
    (zmq.TCP_KEEPALIVE_INTVL, 5),
    (zmq.TCP_KEEPALIVE_CNT, 3),
    (zmq.TCP_MAXRT, 30_000),
)


@dataclass(frozen=True, slots=True)
class Host:
    """An endpoint as its doors and links see it.

    Attributes:
        name: for logs.
        views: whether large frames of a lane may come in as views of libzmq's own memory.
        hello: who we are.
        arrived: a frame came in.
        has_room: whether the inbox of a lane takes a frame of this size.
        rejected: something came in that makes no sense: lane, cause, details.
        fault: something else went wrong with a peer: cause, details.
        retried: a peer could not be reached, or is no longer, and will be tried again: likewise.
        undelivered: frames that cannot arrive.
        unwanted: a frame that a peer would not take however often it was sent, and why.
        handed_over: frames left a queue, or a peer said that it has all of them.
        joined: a connection to or from a peer works; gives the peer, as the same object for all
            of its connections.
        left: it ended.
        reconnected: a connection to a peer was made again.
        refused: a peer does not want to talk to us, or we not to it, and why.
        failed: an error that no caller waits for.
    """

    name: str
    config: "TransportConfig"
    context: "zmq.Context[Socket]"
    loop: asyncio.AbstractEventLoop
    security: Security | None
    views: dict[Lane, bool]
    hello: Callable[[], Hello]
    arrived: Callable[[Peer, Lane, bytes], None]
    has_room: Callable[[Lane, int], bool]
    rejected: Callable[[Lane, str, str], None]
    fault: Callable[[str, str], None]
    retried: Callable[[str, str], None]
    undelivered: Callable[[Peer, Lane, list[bytes]], None]
    unwanted: Callable[[Peer, Lane, bytes, str], None]
    handed_over: Callable[[], None]
    joined: Callable[[Peer], Peer]
    left: Callable[[Peer, str], None]
    reconnected: Callable[[Peer], None]
    refused: Callable[[Peer, str], None]
    failed: Callable[[BaseException], None]

    def socket(self, kind: int, lane: Lane, *, ipv6: bool) -> Socket:
        """Make a socket with what all of them have in common."""
        socket = self.context.socket(kind)
        # A thread of libzmq's for each lane: one that moves DATA keeps nobody waiting.
        socket.setsockopt(zmq.AFFINITY, 1 << LANES.index(lane))
        socket.linger = 0
        socket.sndhwm = socket.rcvhwm = HIGH_WATER
        for option, value in KEEP_ALIVE:
            socket.setsockopt(option, value)
        if self.config.zmq.socket_buffer_bytes:
            socket.setsockopt(zmq.SNDBUF, self.config.zmq.socket_buffer_bytes)
            socket.setsockopt(zmq.RCVBUF, self.config.zmq.socket_buffer_bytes)
        socket.setsockopt(zmq.IPV6, int(ipv6))
        return socket

    def guarded(self, callback: Callable[[], Any]) -> Callable[[], None]:
        """Wrap a callback of the loop: what it raises ends the endpoint, with the cause told."""

        def run() -> None:
            try:
                callback()
            except Exception as error:
                self.failed(error)

        return run
