"""``tcp://host:port``: frames over TCP, one connection per (peer, lane), dialled by its sender."""

import asyncio
import logging
import random
import socket
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dsp.errors import ClosedError, CodecError, ConfigError, ConnectError, PeerUnreachable
from dsp.transport.adapter import AdapterTransport, Link
from dsp.transport.base import Guarantees, Lane, NodeId, Peer

from .wire import MAX_NAME_BYTES, Hello, encode_frame, parse_url, read_frame, read_hello

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["TcpTransport"]

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0

# Ends a connection whose other end went without a word: after 5 s of silence, three probes.
KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


class TcpLink(Link):
    """The sending side of one lane to one peer, and the connection that it has just now."""

    def __init__(self, peer: Peer, lane: Lane, config: "TransportConfig") -> None:
        super().__init__(peer, lane, config)
        self.wanted = asyncio.Event()  # a frame came, or the connection was lost
        self.writer: asyncio.StreamWriter | None = None
        self.written = 0

    def cut(self) -> None:
        """Use the connection no more; a frame that is half written goes to the next one."""
        if self.writer is not None:
            with suppress(OSError):  # it is cut already
                # Unlike close and abort, this makes a drain that waits raise.
                self.writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            self.writer = None
        self.wanted.set()


class TcpTransport(AdapterTransport[TcpLink]):
    """A process's endpoint on a TCP port: ``tcp://gateway-1:5555``; port 0 takes any free one.

    A frame stays in its queue until the operating system has taken all of it. What the operating
    system holds when the other end dies or the link is cut is lost.
    """

    scheme: ClassVar[str] = "tcp"

    def __init__(self, config: "TransportConfig", node: NodeId, host: str, port: int) -> None:
        super().__init__(config, node)
        most = config.max_frame_bytes
        self.guarantees = Guarantees(
            ordered=True, reliable=True, durable=False, duplicates=False, max_frame_bytes=most
        )
        self._host, self._port = host, port
        self._contact: Peer | None = None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._readers: dict[tuple[NodeId, Lane], asyncio.Task[Any] | None] = {}
        self._connections: Counter[NodeId] = Counter()
        self._turns = {lane: asyncio.Lock() for lane in Lane}
        self._space = {lane: asyncio.Event() for lane in Lane}

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        try:
            host, port = parse_url(config.url)
        except ValueError as error:
            raise ConfigError(f"transport.url: {error}") from error
        if not 0 < len(node.encode()) <= MAX_NAME_BYTES:
            raise ConfigError(f"node.id: tcp:// takes 1 to {MAX_NAME_BYTES} bytes of UTF-8")
        return cls(config, node, host, port)

    @property
    def contact(self) -> Peer:
        if self._contact is None:
            raise ClosedError(f"{self._name} is not started")
        return self._contact

    async def aclose(self) -> None:
        await super().aclose()
        if self._tasks:  # cancelled by now: wait until the last of them has let go
            await asyncio.wait(self._tasks)

    # -- what the shared half asks for ----------------------------------------------------

    async def _open(self) -> None:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM
            )
            # Bound here rather than in start_server: cancelled, that leaves its socket open.
            listener = socket.create_server(found[0][4], family=found[0][0])
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"{self._name} cannot open {self._config.url}: {error}") from error
        self._server = await asyncio.start_server(self._came, sock=listener, start_serving=False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEP_ALIVE:  # connections inherit them
            listener.setsockopt(socket.IPPROTO_TCP, option, value)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._contact = Peer(self._node, f"tcp://{host}:{listener.getsockname()[1]}")
        await self._server.start_serving()

    def _connect(self, to: Peer, lane: Lane) -> TcpLink:
        _host_and_port(to)
        link = TcpLink(to, lane, self._config)
        self._spawn(self._serve_link(link))
        return link

    def _readdress(self, link: TcpLink, to: Peer) -> None:
        _host_and_port(to)
        link.peer = to
        link.cut()

    def _wake(self, link: TcpLink) -> None:
        link.wanted.set()

    def _room(self, lane: Lane) -> None:
        self._space[lane].set()

    def _release(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        # A task that is cancelled before its first step cleans up nothing.
        for writer in self._writers:
            writer.transport.abort()

    # -- sending --------------------------------------------------------------------------

    async def _serve_link(self, link: TcpLink) -> None:
        pause = FIRST_PAUSE
        while True:
            while len(link.queue) == 0:
                link.wanted.clear()
                await link.wanted.wait()
            before = link.written
            try:
                await self._converse(link)
            except (OSError, CodecError, UnicodeError) as error:
                logger.warning("%s: %s on %s: %r", self._name, link.peer, link.lane.value, error)
            if link.written > before:
                pause = FIRST_PAUSE
            else:
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _converse(self, link: TcpLink) -> None:
        """Dial the peer and write frames until the connection is lost or the peer moves."""
        peer = link.peer
        async with asyncio.timeout(self._config.connect_timeout):
            reader, writer = await asyncio.open_connection(*_host_and_port(peer))
            self._writers.add(writer)
            try:
                writer.write(self._hello(link.lane))
                answer = await read_hello(reader, self._config.connect_timeout)
                if answer.peer.id != peer.id:
                    raise CodecError(f"{answer.peer} answers in its place")
            except BaseException:
                self._let_go(writer)
                raise
        self._joined(peer)
        link.writer = writer if link.peer == peer else None
        watch = self._spawn(self._watch(link, reader))
        try:
            await self._write_frames(link, writer, answer.max_frame_bytes)
        finally:
            watch.cancel()
            link.writer = None
            self._let_go(writer)
            self._left(peer, "the connection to it is gone")

    async def _watch(self, link: TcpLink, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):  # an end like any other
            await reader.read(1)  # after its hello the other end writes nothing, so: until it ends
        link.cut()

    async def _write_frames(self, link: TcpLink, writer: asyncio.StreamWriter, most: int) -> None:
        writer.transport.set_write_buffer_limits(high=0)  # drain: the operating system has it all
        while link.writer is writer:
            payload = link.queue.peek()
            if payload is None:
                link.wanted.clear()
                await link.wanted.wait()
                continue
            if len(payload) > most:
                reason = f"{link.peer.id} takes frames of {most} bytes at most"
                self._undelivered(link.peer, link.lane, [payload], reason)
            else:
                writer.write(encode_frame(payload))
                if writer.is_closing():
                    raise ConnectionResetError("the connection broke")
                await writer.drain()
            link.queue.get_nowait()
            link.written += 1
            self._handed_over()

    # -- receiving ------------------------------------------------------------------------

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self._is_open:
            self._spawn(self._serve_peer(reader, writer))
        else:
            self._let_go(writer)

    async def _serve_peer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lane = Lane.CONTROL  # until the hello says which
        try:
            hello = await read_hello(reader, self._config.connect_timeout)
            lane = hello.lane
            writer.write(self._hello(lane))
            await self._read_frames(hello.peer, lane, reader)
        except CodecError as error:
            self._rejected(lane)
            logger.warning("%s refuses a connection: %s", self._name, error)
        except OSError as error:
            logger.debug("%s: a connection broke: %s", self._name, error)
        finally:
            self._let_go(writer)

    async def _read_frames(self, peer: Peer, lane: Lane, reader: asyncio.StreamReader) -> None:
        earlier = self._readers.get((peer.id, lane))
        me = self._readers[peer.id, lane] = asyncio.current_task()
        self._joined(peer)
        try:
            if earlier is not None:
                await asyncio.wait([earlier])  # what it still has to deliver comes first
            while (payload := await read_frame(reader, self._config.max_frame_bytes)) is not None:
                async with self._turns[lane]:
                    # Waiting here we read no more, so that TCP holds the sender back.
                    while not self._has_room(lane, len(payload)):
                        self._space[lane].clear()
                        await self._space[lane].wait()
                    self._arrived(peer, lane, payload)
        finally:
            if self._readers.get((peer.id, lane)) is me:
                del self._readers[peer.id, lane]
            self._left(peer, "the connection from it is gone")

    # -- both -----------------------------------------------------------------------------

    def _hello(self, lane: Lane) -> bytes:
        return Hello(self.contact, lane, self._config.max_frame_bytes).encode()

    def _joined(self, peer: Peer) -> None:
        self._connections[peer.id] += 1
        self._peer_up(peer)

    def _left(self, peer: Peer, reason: str) -> None:
        self._connections[peer.id] -= 1
        if self._connections[peer.id] == 0:
            del self._connections[peer.id]
            self._peer_down(peer, reason)

    def _let_go(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.transport.abort()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.critical("%s fails and closes", self._name, exc_info=error)
            self.abort()


def _host_and_port(peer: Peer) -> tuple[str, int]:
    try:
        return parse_url(peer.address, lowest_port=1)
    except ValueError as error:
        raise PeerUnreachable(f"{peer}: {error}") from error
