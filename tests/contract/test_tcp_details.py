"""What the contract cannot ask of every transport: how ``tcp://`` treats sockets and addresses."""

import asyncio

import pytest

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ConfigError, ConnectError, PeerUnreachable
from dsp.testing.contract.harness import check, numbered, numbers
from dsp.transport.base import Frame, Transport, Undelivered
from dsp.transport.registry import create_transport
from tests.contract.proxy import cuttable_proxy
from tests.contract.tcp_package import TcpHarness, hello

pytestmark = pytest.mark.usefixtures("tcp")


@pytest.mark.parametrize(
    "url",
    [
        "tcp://127.0.0.1",
        "tcp://0.0.0.0:5555",
        "tcp://[::]:5555",
        "tcp://127.0.0.1:5555/path",
        "tcp://127.0.0.1:5555?a=b",
    ],
)
def test_urls_that_cannot_be_an_endpoint(url: str) -> None:
    with pytest.raises(ConfigError, match=r"transport\.url"):
        create_transport(TransportConfig(url=url), NodeId("a"))


def test_a_name_that_does_not_fit_into_a_hello() -> None:
    with pytest.raises(ConfigError, match=r"node\.id"):
        create_transport(TransportConfig(url="tcp://127.0.0.1:0"), NodeId("x" * 2000))


@pytest.mark.parametrize(
    "url",
    [
        "tcp://192.0.2.1:5555",  # for documentation: no machine has it
        "tcp://a..b:5555",
        "tcp://[fe80::1%nowhere]:5555",  # does not resolve, and no name server is asked
    ],
)
def test_addresses_that_cannot_be_opened(url: str) -> None:
    async def start() -> None:
        await create_transport(TransportConfig(url=url), NodeId("a")).start()

    with pytest.raises(ConnectError, match="cannot open"):
        asyncio.run(start())


class TestTcpDetails(TcpHarness):
    @check
    async def test_port_in_use(self) -> None:
        async with self.endpoints("a"):
            await self.refused(ConnectError, self.make("a").start(), "a second one on its port")

    @check
    async def test_any_free_port(self) -> None:
        endpoint = create_transport(TransportConfig(url="tcp://127.0.0.1:0"), NodeId("a"))
        async with endpoint:
            port = int(endpoint.contact.address.rpartition(":")[2])
            assert port > 0

    @check
    async def test_addresses_of_no_peer(self) -> None:
        async with self.endpoints("a") as (a,):
            for address in (
                "",
                "nowhere",
                "zmq://127.0.0.1:1",
                "tcp://127.0.0.1",
                "tcp://127.0.0.1:0",
                "tcp://127.0.0.1:99999",
                "tcp://0.0.0.0:1",
                "tcp://[::1:1",
            ):
                sending = a.send(Peer(NodeId("b"), address), b"", lane=Lane.DATA)
                await self.refused(PeerUnreachable, sending, f"an address such as {address!r}")

    @check
    async def test_a_name_that_does_not_resolve_is_tried_until_the_end(self) -> None:
        async with self.make("a", drain_timeout=0.1) as a:
            await a.send(Peer(NodeId("b"), "tcp://a..b:1"), numbered(7), lane=Lane.DATA)
        assert await self._lost(a) == [7]

    @check
    async def test_frame_over_the_limit_of_the_receiver(self) -> None:
        """The sender learns of it from the hello; the frames around it arrive."""
        async with self.endpoints("a") as (a,), self.endpoints("b", **self.small_queues) as (b,):
            too_large = bytes(b.guarantees.max_frame_bytes + 1)
            for payload in (numbered(0), too_large, numbered(1)):
                await a.send(b.contact, payload, lane=Lane.DATA)
            assert numbers(await self.payloads(b, Lane.DATA, 2)) == [0, 1]
            while not isinstance(report := await self._next(a), Undelivered):
                pass
            assert report == Undelivered(b.contact, Lane.DATA, (too_large,))
            assert b.statistics().lanes[Lane.DATA].rejected_frames == 0

    @check
    async def test_another_peer_answers(self) -> None:
        """Frames go to the peer that they are for, or to nobody."""
        async with self.endpoints("b") as (b,):
            async with self.make("a", drain_timeout=0.2) as a:
                wrong = Peer(NodeId("c"), b.contact.address)
                await a.send(wrong, numbered(5), lane=Lane.DATA)
            assert await self._lost(a) == [5]
            assert await self.quiet(b, Lane.DATA) == []

    @check
    async def test_peer_moves(self) -> None:
        """A new address takes over what waits for a peer that does not read."""
        config = TransportConfig(url="tcp://127.0.0.1:0", **self.small_queues)
        async with (
            self.endpoints("a", "b", **self.small_queues) as (a, old),
            create_transport(config, NodeId("b")) as new,
        ):
            accepted = await self.clog(a, old.contact)
            waiting = a.statistics().lanes[Lane.DATA].send_queue_frames
            assert waiting > 0
            last = numbered(accepted + 1, bytes(64 * 1024))
            sending = asyncio.create_task(a.send(new.contact, last, lane=Lane.DATA))
            got = numbers(await self.payloads(new, Lane.DATA, waiting + 1))
            await sending
            first = accepted - waiting
            assert got == [*range(first, accepted), accepted + 1]
            assert numbers(await self.quiet(old, Lane.DATA)) == list(range(first))

    @check
    async def test_order_is_kept_when_a_sender_returns(self) -> None:
        """What an earlier process of the same name sent comes before what the new one sends."""
        async with self.endpoints("b", **self.small_queues) as (b,):
            async with self.make("a", **self.small_queues) as a:
                accepted = await self.clog(a, b.contact)
            lost = await self._lost(a)
            async with self.make("a", **self.small_queues) as again:
                await again.send(b.contact, numbered(accepted + 1), lane=Lane.DATA)
                got = numbers(await self.payloads(b, Lane.DATA, accepted - len(lost) + 1))
            assert got == [*range(accepted - len(lost)), accepted + 1]

    @check
    async def test_a_stranger_who_says_nothing(self) -> None:
        """A connection without a hello is closed after a while."""
        async with self.endpoints("b", connect_timeout=0.05) as (b,):
            await self._closed_by(b, b"")
            assert b.statistics().lanes[Lane.CONTROL].rejected_frames == 1

    @check
    async def test_an_oversized_frame_is_not_read(self) -> None:
        """Its length is enough: the connection is closed at once."""
        async with self.endpoints("b") as (b,):
            await self._closed_by(b, hello(0) + b"\xff\xff\xff\xff")
            await self._closed_by(b, hello(1) + b"\x7f\xff\xff\xff" + bytes(100))
            rejected = [lane.rejected_frames for lane in b.statistics().lanes.values()]
            assert sum(rejected) == 2

    @check
    async def test_a_link_that_is_cut(self) -> None:
        """The connection breaks again and again; frames arrive in order, none twice."""
        async with self.endpoints("a", "b") as (a, b), cuttable_proxy(b.contact) as (address, cut):
            sent, left, ending = 0, 100, False
            got: list[int] = []

            async def send() -> None:
                nonlocal sent, left
                while left > 0:
                    frame = numbered(sent, bytes(4096))
                    await a.send(Peer(b.contact.id, address), frame, lane=Lane.DATA)
                    sent += 1
                    left -= ending

            async def receive(number: int) -> None:
                while not got or got[-1] < number:
                    got.extend(numbers(await self.payloads(b, Lane.DATA, 1)))

            async with asyncio.TaskGroup() as group:
                sending = group.create_task(send())
                for _ in range(10):
                    cut()
                    await receive(sent)  # accepted after the cut
                ending = True
                while not sending.done():
                    await receive(sent)
            await receive(sent - 1)
            assert got == sorted(set(got)), "frames out of order, or twice"
            assert got[-1] == sent - 1

    async def _next(self, endpoint: Transport) -> object:
        return await self.soon(endpoint.receive(Lane.CONTROL), "something on CONTROL")

    async def _lost(self, endpoint: Transport) -> list[int]:
        """Read a closed endpoint to its end; give the numbers that it reports as undelivered."""
        lost: list[int] = []
        for inbound in await self.remaining(endpoint, Lane.CONTROL):
            assert not isinstance(inbound, Frame)
            if isinstance(inbound, Undelivered):
                lost += numbers(inbound.payloads)
        return lost

    async def _closed_by(self, endpoint: Transport, wire: bytes) -> None:
        host, _, port = endpoint.contact.address.removeprefix("tcp://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(wire)
            await self.soon(_to_the_end(reader), "the connection to be closed")
        finally:
            writer.transport.abort()


async def _to_the_end(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(4096):
            pass
    except ConnectionResetError:
        return  # closed, with something of ours unread
