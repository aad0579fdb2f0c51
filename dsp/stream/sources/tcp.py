"""Lines that clients send over TCP."""

import asyncio
import logging
import ssl
from collections import deque
from typing import Any

from dsp.errors import ClosedError, ConfigError, ConnectError
from dsp.stream.sources.base import Chunk, Position, Source, SourceContext, Unreadable
from dsp.stream.sources.lines import shown

__all__ = ["TcpLinesSource"]

logger = logging.getLogger(__name__)

READ_BYTES = 1 << 16


class TcpLinesSource(Source):
    """Listens, and takes lines from any number of clients.

    While the pipeline does not keep up, nothing more is read from the clients, and their sends
    wait. There is no answer: a client does not learn what of its lines was taken. Not replayable;
    ``Journaled`` keeps what was read over a crash. When the application stops, lines that were
    received go on, and lines that are on their way do not.

    A line that cannot be decoded, is too long, or has no end when its client is gone, is a dead
    letter.

    Args:
        host: address to listen on; ``"0.0.0.0"`` for all.
        port: to listen on; 0 for a free one, see ``address``.
        encoding: of the text; None for values that are bytes.
        most_waiting: lines that may wait to be read, at most.
        longest: bytes of a line, at most.
        most_clients: connections at the same time; more are closed at once.
        tls: speaks TLS with it.
    """

    drains = True

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        encoding: str | None = "utf-8",
        most_waiting: int = 10_000,
        longest: int = 1 << 16,
        most_clients: int = 1000,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        for name, value in (
            ("most_waiting", most_waiting),
            ("longest", longest),
            ("most_clients", most_clients),
        ):
            if value < 1:
                raise ConfigError(f"{name} of the TCP source is {value}, at least 1 is needed")
        if not 0 <= port <= 65535:
            raise ConfigError(f"port {port} of the TCP source: 0 to 65535")
        self._host, self._port = host, port
        self._encoding = encoding
        self._most_waiting = most_waiting
        self._longest = longest
        self._most_clients = most_clients
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.Task[Any]] = set()
        self._waiting: deque[bytes | Unreadable] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._stopped = False

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens.

        Raises:
            ClosedError: it does not.
        """
        if self._server is None or not self._server.sockets:
            raise ClosedError("the TCP source does not listen: its application is not running")
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    @property
    def listening(self) -> bool:
        """Whether clients can connect."""
        return self._server is not None and self._server.is_serving()

    @property
    def waiting(self) -> int:
        """Lines that were received and not read."""
        return len(self._waiting)

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        if self._stopped:
            return
        try:
            self._server = await asyncio.start_server(
                self._serve, self._host, self._port, limit=READ_BYTES, ssl=self._tls
            )
        except OSError as error:
            raise ConnectError(
                f"{context.name} cannot listen on {self._host}:{self._port}: {error}; check host "
                "and port of TcpLinesSource, and who else listens there"
            ) from error

    async def read(self, most: int) -> Chunk | None:
        while not self._waiting:
            if self._stopped:
                return None
            self._news.clear()
            await self._news.wait()
        values: list[Any] = []
        failures: list[Unreadable] = []
        while self._waiting and len(values) + len(failures) < most:
            line = self._waiting.popleft()
            if isinstance(line, Unreadable):
                failures.append(line)
            elif self._encoding is None:
                values.append(line)
            else:
                try:
                    values.append(line.decode(self._encoding))
                except ValueError as error:
                    failures.append(Unreadable(shown(line), str(error)))
        self._room.set()
        return Chunk(values, failures=failures)

    def stop(self) -> None:
        self._stopped = True
        if self._server is not None:
            self._server.close()
        for client in self._clients:
            client.cancel()
        self._news.set()

    async def close(self) -> None:
        self.stop()
        if self._clients:
            await asyncio.wait(self._clients)
        self._server = None
        self._stopped = False  # it may be opened again

    # -- one client -----------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = writer.get_extra_info("peername")
        task = asyncio.current_task()
        assert task is not None
        try:
            if self._stopped or len(self._clients) >= self._most_clients:
                logger.warning("%s is turned away: %d clients are here", name, len(self._clients))
                return
            self._clients.add(task)
            await self._take_lines(reader, f"client {name}")
        except asyncio.CancelledError:
            pass  # by stop: nobody waits for this task but close
        except OSError as error:
            logger.info("%s: connection lost: %s", name, error)
        finally:
            self._clients.discard(task)
            writer.close()

    async def _take_lines(self, reader: asyncio.StreamReader, client: str) -> None:
        part = b""
        too_long = False
        while True:
            while len(self._waiting) >= self._most_waiting:
                self._room.clear()
                await self._room.wait()
            try:
                data = await reader.read(READ_BYTES)
            except OSError:
                self._end_inside(part, client)
                raise
            if not data:
                self._end_inside(part, client)
                return
            *lines, part = (part + data).split(b"\n")
            for line in lines:
                if too_long:
                    too_long = False  # the end of one that was reported
                elif len(line) > self._longest:
                    self._refuse(line, client)
                elif line := line.rstrip(b"\r"):
                    self._put(line)
            if too_long:
                part = b""
            elif len(part) > self._longest:
                self._refuse(part, client)
                part, too_long = b"", True

    def _refuse(self, line: bytes, client: str) -> None:
        error = f"{client}: a line of more than {self._longest} bytes; see longest"
        self._put(Unreadable(shown(line), error))

    def _end_inside(self, part: bytes, client: str) -> None:
        if part:
            self._put(Unreadable(shown(part), f"{client}: the connection ended inside a line"))

    def _put(self, line: bytes | Unreadable) -> None:
        self._waiting.append(line)
        self._news.set()
