"""``grpc://host:port`` and ``grpcs://host:port``: an endpoint over gRPC.

One long-lived stream per (peer, lane), opened by the sender, each on a connection of its own: a
DATA lane that is full cannot delay CONTROL. ``await write()`` is the flow control; the receiver
reads no more while its inbox is full.
"""

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, Any, ClassVar, Self

import grpc
import grpc.aio

from dsp.errors import ConfigError, ConnectError
from dsp.transport.base import NodeId, Peer
from dsp.transport.grpc.accepting import AcceptingEndpoint
from dsp.transport.grpc.addresses import Address, parse_address, parse_advertised
from dsp.transport.grpc.credentials import TlsFiles, load_credentials
from dsp.transport.grpc.dialling import DiallingEndpoint
from dsp.transport.grpc.health_service import health_handler
from dsp.transport.grpc.identity import NameRules, is_certifiable
from dsp.transport.grpc.one_loop import claim_loop, is_stopping, release_loop, stopped
from dsp.transport.grpc.options import server_options
from dsp.transport.grpc.wire import MAX_NAME_BYTES, METHOD, SERVICE

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["GrpcTransport", "GrpcsTransport"]

logger = logging.getLogger(__name__)

STOP_SECONDS = 0.2


class GrpcTransport(AcceptingEndpoint, DiallingEndpoint):
    """A process's endpoint on a TCP port: ``grpc://gateway-1:5555``; port 0 takes any free one.

    Both ends count the frames of a link, and the sender keeps what is not confirmed. So a link that
    is cut loses nothing while both processes live, and what a process that died had not confirmed
    is reported as ``Undelivered``.

    All endpoints of a process that run at the same time run on one event loop.
    """

    scheme: ClassVar[str] = "grpc"

    def __init__(self, config: "TransportConfig", node: NodeId, address: Address) -> None:
        super().__init__(config, node)
        self._address = address
        self._keeper: asyncio.Task[None] | None = None
        self._let_go = asyncio.Event()
        self._claimed = False

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        try:
            address = parse_address(config.url, cls.scheme, lowest_port=0)
        except ValueError as error:
            raise ConfigError(f"transport.url: {error}") from error
        if config.grpc.advertise is not None:
            try:
                parse_advertised(config.grpc.advertise, address.port)
            except ValueError as error:
                raise ConfigError(f"transport.grpc.advertise: {error}") from error
        elif address.is_wildcard:
            raise ConfigError(
                f"transport.url: {config.url!r} listens on every address of this machine: say in "
                f"transport.grpc.advertise under which host peers reach it"
            )
        if not 0 < len(node.encode()) <= MAX_NAME_BYTES:
            raise ConfigError(
                f"node.id: {cls.scheme}:// takes 1 to {MAX_NAME_BYTES} bytes of UTF-8"
            )
        return cls(config, node, address)

    async def aclose(self) -> None:
        await super().aclose()
        if self._tasks:  # cancelled by now: wait until the last of them has let go
            await asyncio.wait(self._tasks)
        if self._epoch:
            await stopped(self._loop, self._config.connect_timeout)

    # -- what the shared half asks for ----------------------------------------------------

    async def _open(self) -> None:
        claim_loop(self._loop, self._name)
        self._claimed = True
        credentials = await self._load_credentials()
        # An endpoint that was aborted a moment ago may still hold the port.
        await stopped(self._loop, self._config.connect_timeout)
        bind = await self._resolve()
        opened: asyncio.Future[int] = self._loop.create_future()
        keeper = self._keeper = self._loop.create_task(self._keep_server(bind, credentials, opened))
        keeper.add_done_callback(self._task_done)
        either: list[asyncio.Future[Any]] = [opened, keeper]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        port = opened.result() if opened.done() else await self._ended_early(keeper)
        host = self._address.host
        reached = Address(host, port)
        if self._config.grpc.advertise is not None:
            reached = parse_advertised(self._config.grpc.advertise, port)
        self._contact = Peer(self._node, f"{self.scheme}://{reached.text}")

    async def _load_credentials(self) -> "grpc.ServerCredentials | None":
        return None

    async def _resolve(self) -> str:
        """Look up our own host, and try the port: gRPC would fail without a reason."""
        try:
            found = await self._loop.getaddrinfo(
                self._address.host, self._address.port, type=socket.SOCK_STREAM
            )
            family, _, _, _, where = found[0]
            with socket.create_server(where, family=family):
                pass
        except (OSError, UnicodeError) as error:
            raise ConnectError(f"{self._name} cannot open {self._config.url}: {error}") from error
        return Address(str(where[0]), self._address.port).text

    async def _ended_early(self, keeper: "asyncio.Task[None]") -> int:
        await keeper  # raises why
        raise ConnectError(f"{self._name} cannot open {self._config.url}: its server has ended")

    async def _keep_server(
        self,
        bind: str,
        credentials: "grpc.ServerCredentials | None",
        opened: "asyncio.Future[int]",
    ) -> None:
        """Have the server for as long as the endpoint is open; give its port once it has one.

        In a task that only the end of the loop cancels: gRPC leaves the port bound if its start is
        cancelled half-way, or if the loop ends before the server is stopped.
        """
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            METHOD: grpc.stream_stream_rpc_method_handler(self._serve_stream)
        }
        service = grpc.method_handlers_generic_handler(SERVICE, handlers)
        server = grpc.aio.server(
            handlers=[service, health_handler(self)], options=server_options(self._config)
        )
        try:
            try:
                if credentials is None:
                    port = server.add_insecure_port(bind)
                else:
                    port = server.add_secure_port(bind, credentials)
            finally:
                await server.start()  # even without a port: gRPC frees only what was started
            opened.set_result(port)
            await self._let_go.wait()
        except RuntimeError as error:  # all that gRPC says about a port that it cannot have
            fault = ConnectError(f"{self._name} cannot open {self._config.url}: {error}")
            fault.__cause__ = error
            opened.set_exception(fault)
            opened.exception()  # seen, even if nobody waits for it any more
        finally:
            await _stop(server)

    async def _flush(self) -> None:
        for link in self._links.values():
            link.wanted.set()  # time to say that no more frames come
        await super()._flush()
        await self._end_incoming()

    def _release(self) -> None:
        for stream in self._incoming.values():
            stream.end()
        for task in self._tasks:
            task.cancel()
        if self._claimed:
            self._claimed = False
            release_loop(self._loop)
        self._let_go.set()
        if self._keeper is not None:
            is_stopping(self._loop, self._keeper)


async def _stop(server: grpc.aio.Server) -> None:
    try:
        # Streams have been told to end; what is left after that (watchers of health) is cut.
        await server.stop(STOP_SECONDS)
    except asyncio.CancelledError:
        # The loop ends, and gRPC's own tasks with it. What is left of the server must still go
        # before that, or its last event would meet a loop that is closed.
        await server.stop(None)
        raise


class GrpcsTransport(GrpcTransport):
    """``grpcs://``: the same over mutual TLS. Who has no certificate that we trust is refused."""

    scheme: ClassVar[str] = "grpcs"

    def __init__(self, config: "TransportConfig", node: NodeId, address: Address) -> None:
        super().__init__(config, node, address)
        if config.grpc.identity == "node" and not is_certifiable(node):
            raise ConfigError(
                f"node.id: {node!r} cannot be a name in a certificate (letters, digits, dots, "
                f"dashes and underscores can), as transport.grpc.identity = 'node' needs it"
            )
        self._files = TlsFiles.from_config(config.grpc)
        self._names = NameRules(self.scheme, config.grpc.identity, config.grpc.allowed_names)

    async def _load_credentials(self) -> "grpc.ServerCredentials | None":
        advertised = self._config.grpc.advertise
        reached = parse_advertised(advertised, 1) if advertised is not None else self._address
        name = self._node if self._config.grpc.identity == "node" else reached.host
        loaded = await asyncio.to_thread(load_credentials, self._files, name)
        self._channel_credentials = loaded.channel
        return loaded.server
