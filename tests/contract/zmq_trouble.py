"""Ways to make trouble for an endpoint of the mesh, and to see that it bears it."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import zmq.asyncio

from dsp.config import TransportConfig, ZmqConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.testing.contract.harness import ContractHarness
from dsp.transport.base import Frame, PeerDown, Transport, Undelivered
from dsp.transport.session import Session
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.endpoint import ZmqTransport
from dsp.transport.zmq.keys import write_key_pair
from dsp.transport.zmq.wire import Hello, Kind, encode_hello

LOCAL = "zmq+tcp://127.0.0.1:0?data=0"
HELLO_BYTES = 64 * 1024


class MeshHarness(ContractHarness):
    """Endpoints of the mesh, each described on the spot."""

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        return TransportConfig(**{"url": LOCAL, **settings})

    async def send_garbage(self, endpoint: Transport) -> None:
        raise NotImplementedError  # each check brings its own

    # -- good peers -----------------------------------------------------------------------

    async def echo(self, a: Transport, b: Transport, text: bytes = b"echo") -> None:
        """Check that two endpoints understand each other, on both lanes and in both directions."""
        for lane in Lane:
            await a.send(b.contact, text, lane=lane)
            frame = await self.next_frame(b, lane)
            assert (frame.payload, frame.sender) == (text, a.contact)
            await b.send(frame.sender, text, lane=lane)
            assert (await self.next_frame(a, lane)).payload == text

    @asynccontextmanager
    async def serving(self, **settings: Any) -> AsyncIterator[Transport]:  # noqa: ANN401
        """Give an endpoint with a good peer, which it serves before, and after, what happens."""
        async with self.endpoints("good", "tried", **settings) as (good, tried):
            await self.echo(good, tried, b"before")
            yield tried
            await self.echo(good, tried, b"after")

    # -- bad ones -------------------------------------------------------------------------

    async def fault(self, endpoint: Transport, cause: str, count: int = 1) -> None:
        """Wait until an endpoint has counted a fault this often."""
        await self.eventually(
            lambda: endpoint.statistics().faults.get(cause, 0) >= count,
            f"{count} faults {cause!r} among {dict(endpoint.statistics().faults)}",
        )

    async def is_refused(
        self, sender: Transport, to: Peer, because: str, lane: Lane = Lane.DATA
    ) -> None:
        """Check that a frame is accepted, and comes back with a refusal that names the cause."""
        await sender.send(to, b"refused", lane=lane)
        await self.told_of_refusal(sender, to.id, because, (b"refused",))

    async def told_of_refusal(
        self, endpoint: Transport, of: NodeId, because: str, lost: tuple[bytes, ...]
    ) -> None:
        """Wait for a refusal, and then for the frames that come back."""
        down = await self.refusal(endpoint)
        assert down.peer.id == of
        assert re.search(because, down.reason), down.reason
        await self.gets_back(endpoint, of, lost)

    async def gets_back(self, endpoint: Transport, of: NodeId, lost: tuple[bytes, ...]) -> None:
        """Wait until frames come back; a session may name others that are not acknowledged yet."""
        while True:
            back: Undelivered = await self.next(endpoint, Undelivered)
            assert back.peer.id == of
            if set(lost) <= set(back.payloads):
                return

    async def refusal(self, endpoint: Transport) -> PeerDown:
        """Wait for a refusal; peers that are down for other reasons are passed over."""
        while True:
            down: PeerDown = await self.next(endpoint, PeerDown)
            if down.refused:
                return down

    async def next(self, endpoint: Transport, kind: type[Any]) -> Any:  # noqa: ANN401
        async def find() -> object:
            while not isinstance(inbound := await endpoint.receive(Lane.CONTROL), kind):
                assert not isinstance(inbound, Frame)
            return inbound

        return await self.soon(find(), f"a {kind.__name__}")


class MeshSessions(MeshHarness):
    """The same with sessions over them."""

    def make(self, node: str, **settings: Any) -> Transport:  # noqa: ANN401
        return Session.from_config(self.config(node, **settings), NodeId(node))


class Keys:
    """Key pairs in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.public: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """Give a public key; it is made when it is first asked for."""
        if name not in self.public:
            self.public[name] = write_key_pair(self.folder / name)
        return self.public[name]

    def config(self, name: str, *allowed: str) -> dict[str, Any]:
        """Give the settings of an endpoint with a key, and others that it trusts."""
        own = self[name]
        assert own
        return {
            "zmq": ZmqConfig(
                curve_secret_key_file=str(self.folder / name),
                allowed_keys=tuple(self[other] for other in allowed),
            )
        }


@asynccontextmanager
async def stranger(kind: int, endpoint: Transport | None = None, lane: Lane = Lane.DATA) -> Any:  # noqa: ANN401
    """Give a socket of ZeroMQ's own, connected to a lane of an endpoint."""
    context = zmq.asyncio.Context()
    socket = context.socket(kind)
    socket.linger = 0
    try:
        if endpoint is not None:
            socket.connect(Address.parse(endpoint.contact.address).endpoint(lane))
        yield socket
    finally:
        context.destroy(0)


def hello(name: str = "stranger", lane: Lane = Lane.DATA, most: int = HELLO_BYTES) -> list[bytes]:
    """Make the hello of a peer that lives nowhere."""
    peer = Peer(NodeId(name), "zmq+tcp://127.0.0.1:9?data=10")
    return encode_hello(Kind.HELLO, lane, Hello(peer, most))


def mesh(config: TransportConfig, node: str = "a") -> ZmqTransport:
    """Make an endpoint from its configuration."""
    return ZmqTransport.from_config(config, NodeId(node))
