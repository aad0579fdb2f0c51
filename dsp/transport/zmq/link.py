"""The way to a peer: a DEALER socket for one lane, made anew whenever the connection is lost.

libzmq's own reconnecting is off: it would keep what it holds and lose what was half sent, without
a word. Here a lost connection is an event, and the next one begins with a hello.
"""

import asyncio
import socket as sockets
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Final

import zmq

from dsp.core.types import Lane, Peer
from dsp.errors import CodecError, ConnectError
from dsp.transport.link import Link
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.errors import map_errors
from dsp.transport.zmq.host import POLLIN, TURN_BYTES, Host
from dsp.transport.zmq.monitor import MIXED_SECURITY, Watch, failure_of
from dsp.transport.zmq.pipe import Pipe
from dsp.transport.zmq.reach import reachable
from dsp.transport.zmq.states import Bye, LinkState
from dsp.transport.zmq.wire import (
    MAX_HELLO_BYTES,
    MAX_MESSAGE_BYTES,
    Kind,
    cut_up,
    decode_hello,
    decode_refusal,
    encode_hello,
    head,
    read_head,
)

__all__ = ["ZmqLink"]

FIRST_PAUSE, LONGEST_PAUSE, REFUSED_PAUSE = 0.05, 1.0, 5.0
# Handshakes in a row that the other end cuts short until that counts as a refusal. Without CURVE a
# process that dies and returns, or a proxy before it, is the likelier cause, so it takes longer.
CUT_SHORT_IS_REFUSED: Final = 3
CUT_SHORT_IS_REFUSED_IN_PLAIN: Final = 6
EVENTS: Final = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)


class ZmqLink(Link):
    """One lane to one peer."""

    def __init__(self, host: Host, peer: Peer, lane: Lane, random: Random) -> None:
        super().__init__(peer, lane, host.config)
        self._host = host
        self._random = random
        self._state = LinkState.AWAY
        self._address = reachable(host, peer)
        self._pipe: Pipe | None = None
        self._watch: Watch | None = None
        self._fd = -1
        self._most = 0
        self._passed = 0
        self._pieces: list[list[bytes]] = []
        self._pause = FIRST_PAUSE
        self._timer: asyncio.TimerHandle | None = None
        self._resolving: asyncio.Task[None] | None = None
        self._connected_before = self._address_works = False
        self._cut_short = 0
        self._bye = Bye.NONE
        self._scheduled = False
        self.refusal: str | None = None

    # -- what the endpoint asks -----------------------------------------------------------

    def waiting(self) -> bool:
        return len(self.queue) > 0 or self._bye in (Bye.DUE, Bye.SENT)

    def moved(self) -> int:
        return self.queue.taken + self._passed

    def send_now(self, frame: bytes) -> bool:
        """Send a frame past the empty queue, if the connection takes it now; tell whether."""
        if self._pipe is None or not self._pipe.send(frame):
            return False
        self._passed += 1
        return True

    def send_halves_now(self, start: bytes, rest: bytes) -> bool:
        """Send a frame that is in two parts, as ``send_now`` does."""
        if self._pipe is None or not self._pipe.send_halves(start, rest):
            return False
        self._passed += 1
        return True

    def wake(self) -> None:
        """A frame was queued."""
        if self._state is LinkState.OPEN:
            self.pump()
        elif self._state is LinkState.AWAY and self._timer is None:
            self._dial()

    def readdress(self, peer: Peer) -> None:
        """The peer moved."""
        self._address = reachable(self._host, peer)
        self.peer = peer
        self._address_works = False
        self.refusal = None
        self._hang_up("the peer moved")
        self._again(0.0)

    def hurry(self) -> None:
        """The peer is there, on another connection: wait no longer for the next attempt."""
        if self._state is LinkState.AWAY and self._timer is not None and self.refusal is None:
            self._pause = FIRST_PAUSE
            self._again(0.0)

    def say_bye(self) -> None:
        """Ask the peer to tell when it has everything; ``waiting`` until then."""
        if self._state is LinkState.OPEN and self._bye is Bye.NONE:
            self._bye = Bye.DUE
            self.pump()

    def close(self) -> None:
        """Let go of everything."""
        self._hang_up("closed")
        self._state = LinkState.CLOSED
        if self._resolving is not None:
            self._resolving.cancel()

    # -- dialling -------------------------------------------------------------------------

    def _dial(self) -> None:
        self._state = LinkState.DIALLING
        if self._address.is_numeric:
            self._connect(self._address)
        else:
            self._resolving = self._host.loop.create_task(self._resolve())
            self._resolving.add_done_callback(self._resolved)

    async def _resolve(self) -> None:
        # libzmq would look the name up in a thread that all connections share.
        address = self._address
        try:
            async with asyncio.timeout(self._host.config.connect_timeout):
                found = await self._host.loop.getaddrinfo(
                    address.host, None, type=sockets.SOCK_STREAM
                )
        except (OSError, UnicodeError) as error:  # TimeoutError is an OSError
            if self._still_dials(address):
                why = str(error) or "no answer within the connect_timeout"
                self._lost("unresolvable host", f"{address.host} cannot be looked up: {why}")
        else:
            if self._still_dials(address):
                self._connect(address.with_host(str(found[0][4][0])))

    def _still_dials(self, address: Address) -> bool:
        return address is self._address and self._state is LinkState.DIALLING

    def _resolved(self, task: "asyncio.Task[None]") -> None:
        self._resolving = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._host.failed(error)

    def _connect(self, address: Address) -> None:
        host = self._host
        try:
            with map_errors(f"{host.name} cannot dial {self.peer}"):
                socket = host.socket(zmq.DEALER, self.lane, ipv6=address.is_ipv6)
                self._pipe = Pipe(socket, self.lane)
                socket.setsockopt(zmq.RECONNECT_IVL, -1)
                socket.setsockopt(zmq.MAXMSGSIZE, MAX_HELLO_BYTES)
                if host.security is not None:
                    assert self._address.key is not None
                    host.security.dial(socket, self._address.key)
                self._watch = Watch(host, socket, EVENTS, self._on_event)
                socket.connect(address.endpoint(self.lane))
        except ConnectError as error:
            self._lost("failed dial", str(error))
            return
        self._fd = socket.getsockopt(zmq.FD)  # type: ignore[assignment]
        host.loop.add_reader(self._fd, host.guarded(self._ready))
        late = f"{self.peer} did not answer within the connect_timeout"
        self._arm(host.config.connect_timeout, lambda: self._lost("no answer", late))
        # It may have failed already; the watch says how, soon.
        with suppress(zmq.Again):
            socket.send_multipart(encode_hello(Kind.HELLO, self.lane, host.hello()), zmq.NOBLOCK)
        # libzmq signals only to who has looked, and to send may take the signal.
        host.loop.call_soon(host.guarded(self._ready))

    def _lost(self, cause: str, details: str) -> None:
        """This attempt or connection is over: try again after a pause."""
        self._host.retried(cause, f"{self.peer} on {self.lane.value}: {details}")
        self._hang_up(details)
        self._again(self._pause * self._random.uniform(0.5, 1.0))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _refuse(self, reason: str) -> None:
        """One of us does not want to talk: tell it, give back what waits, ask again later."""
        self._host.fault("refused", f"{self.peer} on {self.lane.value}: {reason}")
        self._hang_up(reason)
        self.refusal = reason
        # In this order: a session gives up for the reason, and does not send anew what comes back.
        self._host.refused(self.peer, reason)
        self._host.undelivered(self.peer, self.lane, self.pending())
        self._again(REFUSED_PAUSE)

    def _again(self, pause: float) -> None:
        if self._state is not LinkState.CLOSED:
            self._arm(pause, self._try_again)

    def _try_again(self) -> None:
        self.refusal = None
        if self._state is LinkState.AWAY and (len(self.queue) or self._connected_before):
            self._dial()

    def _arm(self, pause: float, action: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._host.loop.call_later(
            pause, self._host.guarded(lambda: self._fire(action))
        )

    def _fire(self, action: Callable[[], None]) -> None:
        self._timer = None
        action()

    def _hang_up(self, reason: str) -> None:
        was_open = self._state is LinkState.OPEN
        self._state = LinkState.AWAY
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pipe is not None:
            if self._fd >= 0:
                self._host.loop.remove_reader(self._fd)
                self._fd = -1
            if self._watch is not None:
                self._watch.close()
                self._watch = None
            self._pipe.socket.close(0)
            self._pipe = None
        self._pieces = []  # their frame is still in the queue
        self._bye = Bye.NONE
        if was_open:
            self._host.left(self.peer, f"the connection to it is gone: {reason}")
        self._host.handed_over()

    # -- talking --------------------------------------------------------------------------

    def pump(self) -> None:
        """Hand frames to libzmq until its queue is full."""
        while self._state is LinkState.OPEN and (pipe := self._pipe) is not None:
            if pipe.has_room and self._send_some(pipe):
                self._later()
            self._host.handed_over()
            # Sending and asking for the events both take the descriptor's signal, so what they
            # find has to be dealt with here: nobody will call again for it.
            if pipe.events() & POLLIN:
                self._listen()
            has_more = len(self.queue) > 0 or self._bye is Bye.DUE
            if self._scheduled or not (has_more and pipe.has_room):
                return

    def _later(self) -> None:
        """Go on when others had their turn."""
        if not self._scheduled:
            self._scheduled = True
            self._host.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._scheduled = False
        self.pump()

    def _send_some(self, pipe: Pipe) -> bool:
        """Send as much as one turn allows; tell whether another turn should go on."""
        queue, most = self.queue, pipe.whole
        size = 0
        while (frame := queue.peek()) is not None:
            if size > TURN_BYTES:
                return True
            size += len(frame)
            if len(frame) <= most:
                if not pipe.send(frame):
                    return False
            elif len(frame) > self._most:
                why = (
                    f"{self.peer.id} takes frames of {self._most} bytes at most, not of "
                    f"{len(frame)}: raise transport.max_frame_bytes there"
                )
                self._host.unwanted(self.peer, self.lane, frame, why)
                self._host.fault("frame too large", why)
            else:
                self._pieces = self._pieces or cut_up(frame, self.lane)
                while self._pieces:
                    if not pipe.send_parts(self._pieces[0]):
                        return False
                    del self._pieces[0]
            queue.get_nowait()
        if self._bye is Bye.DUE and pipe.send_parts([head(Kind.BYE, self.lane), b""]):
            self._bye = Bye.SENT
        return False

    def _ready(self) -> None:
        """The descriptor signalled: something came in, or there is room to send again."""
        if self._state is LinkState.OPEN:
            self.pump()
        else:
            self._listen()

    def _listen(self) -> None:
        while self._pipe is not None:
            try:
                parts = self._pipe.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                if self._state is LinkState.OPEN and not self._pipe.has_room:
                    self._later()  # to receive may have taken the signal that there is room
                return
            try:
                self._hear(parts)
            except CodecError as error:
                self._host.rejected(self.lane, "bad answer", f"of {self.peer}: {error}")
                self._refuse(f"{self.peer.id} answers with something else: {error}")

    def _hear(self, parts: list[bytes]) -> None:
        if len(parts) != 2:
            raise CodecError(f"it has {len(parts)} parts")
        match read_head(parts[0], self.lane):
            case Kind.WELCOME if self._state is LinkState.DIALLING:
                hello, _ = decode_hello(parts[1])
                if hello.peer.id != self.peer.id:
                    self._refuse(f"{hello.peer} answers at the address of {self.peer.id}")
                    return
                self._welcomed(hello.max_frame_bytes)
            case Kind.REFUSED:
                self._refuse(f"{self.peer.id} refuses us: {decode_refusal(parts[1])}")
            case Kind.BYE_RECEIVED if self._bye is Bye.SENT:
                self._bye = Bye.RECEIVED
                self._host.handed_over()
            case kind:
                raise CodecError(f"a {kind.name} is not expected here")

    def _welcomed(self, most: int) -> None:
        self._state = LinkState.OPEN
        assert self._pipe is not None
        self._most = most
        self._pipe.whole = min(most, MAX_MESSAGE_BYTES)
        self._address_works = True
        self._cut_short = 0
        self._pause = FIRST_PAUSE
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._host.joined(self.peer)
        if self._connected_before:
            self._host.reconnected(self.peer)
        self._connected_before = True
        self.pump()

    def _on_event(self, event: int, value: int) -> None:
        if self._state is LinkState.AWAY or self._pipe is None:
            return
        if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._refuse(
                f"{self.peer.id} does not accept our key: transport.zmq.allowed_keys there lacks it"
            )
        elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
            self._refuse(f"the handshake with {self.peer.id} failed: {failure_of(event, value)}")
        elif event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL:
            self._on_cut_short(failure_of(event, value))
        elif event == zmq.EVENT_CLOSED:
            self._cut_short = 0
            self._lost("failed dial", "nobody listens there")
        else:
            self._lost("lost connection", "the connection broke")

    def _on_cut_short(self, how: str) -> None:
        """The other end hung up in the handshake.

        One that does not hold the key in its address does so, without a word, and so may one that
        uses CURVE when we do not; so does one that dies in this moment. The first two do it every
        time, from the start.
        """
        self._cut_short += 1
        secure = self._host.security is not None
        enough = CUT_SHORT_IS_REFUSED if secure else CUT_SHORT_IS_REFUSED_IN_PLAIN
        if self._address_works or self._cut_short < enough:
            self._lost("failed handshake", how)
            return
        self._cut_short = 0
        why = "the key in its address is not its own, or it does not use CURVE"
        if not secure:
            why = f"perhaps {MIXED_SECURITY}"
        self._refuse(f"{self.peer.id} hangs up in the handshake: {why}")
