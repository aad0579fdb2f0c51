"""What the contract cannot ask of every transport: how ``grpc://`` treats peers and addresses."""

import asyncio
import os
import socket
from contextlib import ExitStack
from typing import Any

import grpc
import grpc.aio
import pytest

from dsp._pb.grpc_stream_pb2 import StreamAnswer, StreamRefusal, StreamWelcome
from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ConfigError, ConnectError, PeerUnreachable
from dsp.testing.contract.harness import check, numbered, numbers
from dsp.transport.base import Frame, HealthState, PeerDown, Transport, Undelivered
from dsp.transport.grpc.wire import METHOD, SERVICE
from dsp.transport.registry import create_transport
from tests.contract.grpc_harness import GrpcHarness, hello, host_and_port
from tests.contract.proxy import cuttable_proxy

CUTS = 20


def make(url: str, node: str = "a", **section: Any) -> Transport:  # noqa: ANN401
    config = TransportConfig.model_validate({"url": url, "grpc": section})
    return create_transport(config, NodeId(node))


@pytest.mark.parametrize(
    "url",
    [
        "grpc://127.0.0.1",
        "grpc://127.0.0.1:5555/path",
        "grpc://127.0.0.1:5555?a=b",
        "grpc://127.0.0.1:1,127.0.0.1:2",
    ],
)
def test_urls_that_cannot_be_an_endpoint(url: str) -> None:
    with pytest.raises(ConfigError, match=r"transport\.url"):
        make(url)


@pytest.mark.parametrize("url", ["grpc://0.0.0.0:5555", "grpc://[::]:5555"])
def test_a_wildcard_needs_a_host_to_advertise(url: str) -> None:
    with pytest.raises(ConfigError, match=r"transport\.grpc\.advertise"):
        make(url)
    make(url, advertise="gateway-7")


@pytest.mark.parametrize("advertise", ["", "0.0.0.0", "[::]", "host:0", "host:99999", "a/b", "u@h"])
def test_hosts_that_cannot_be_advertised(advertise: str) -> None:
    with pytest.raises(ConfigError, match=r"transport\.grpc\.advertise"):
        make("grpc://0.0.0.0:5555", advertise=advertise)


def test_a_name_that_does_not_fit_into_a_hello() -> None:
    with pytest.raises(ConfigError, match=r"node\.id"):
        make("grpc://127.0.0.1:0", "x" * 2000)


@pytest.mark.parametrize(
    "url",
    [
        "grpc://192.0.2.1:5555",  # for documentation: no machine has it
        "grpc://a..b:5555",
        "grpc://[fe80::1%nowhere]:5555",  # does not resolve, and no name server is asked
    ],
)
def test_addresses_that_cannot_be_opened(url: str) -> None:
    async def start() -> None:
        await make(url).start()

    with pytest.raises(ConnectError, match="cannot open"):
        asyncio.run(start())


class Impostor:
    """A gRPC server that is no dsp endpoint, or not a good one."""

    def __init__(self, *answers: StreamAnswer) -> None:
        self._answers = answers

    async def __aenter__(self) -> str:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        if self._answers:
            handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
                METHOD: grpc.stream_stream_rpc_method_handler(self._handle)
            }
            service = grpc.method_handlers_generic_handler(SERVICE, handlers)
            self._server.add_generic_rpc_handlers([service])
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return f"grpc://127.0.0.1:{port}"

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    async def _handle(self, _: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.read()
        for answer in self._answers:
            await context.write(answer.SerializeToString())
        while isinstance(await context.read(), bytes):
            pass


def welcome(**fields: Any) -> StreamAnswer:  # noqa: ANN401
    values = {"version": 1, "node": "b", "address": "grpc://127.0.0.1:9", "max_frame_bytes": 1024}
    return StreamAnswer(welcome=StreamWelcome(**(values | fields)))  # type: ignore[arg-type]


class GrpcDetails(GrpcHarness):
    """Ways to look at what happens."""

    async def next_control(self, endpoint: Transport) -> object:
        return await self.soon(endpoint.receive(Lane.CONTROL), "something on CONTROL")

    async def refusal(self, endpoint: Transport) -> str:
        """Wait until an endpoint tells that a peer cannot be talked to; give the reason."""
        while True:
            inbound = await self.next_control(endpoint)
            if isinstance(inbound, PeerDown) and inbound.refused:
                return inbound.reason

    async def lost(self, endpoint: Transport) -> list[int]:
        """Read a closed endpoint to its end; give the numbers that it reports as undelivered."""
        found: list[int] = []
        for inbound in await self.remaining(endpoint, Lane.CONTROL):
            assert not isinstance(inbound, Frame)
            if isinstance(inbound, Undelivered):
                found += numbers(inbound.payloads)
        return found


class TestAddresses(GrpcDetails):
    @check
    async def test_port_in_use(self) -> None:
        async with self.endpoints("a") as (a,):
            await self.refused(ConnectError, self.make("a").start(), "a second one on its port")
            await a.send(a.contact, b"still there", lane=Lane.DATA)
            assert (await self.next_frame(a, Lane.DATA)).payload == b"still there"

    @check
    async def test_any_free_port(self) -> None:
        async with make("grpc://127.0.0.1:0") as endpoint:
            assert host_and_port(endpoint)[1] > 0

    @check
    async def test_what_is_advertised(self) -> None:
        async with (
            make("grpc://0.0.0.0:0", advertise="localhost") as a,
            make("grpc://127.0.0.1:0", "b", advertise="gateway-7:99") as b,
        ):
            assert a.contact.address.startswith("grpc://localhost:")
            assert b.contact.address == "grpc://gateway-7:99"
            await b.send(a.contact, b"found", lane=Lane.DATA)
            frame = await self.next_frame(a, Lane.DATA)
            assert (frame.payload, frame.sender) == (b"found", b.contact)

    @check
    async def test_addresses_of_no_peer(self) -> None:
        async with self.endpoints("a") as (a,):
            for address in (
                "",
                "nowhere",
                "zmq://127.0.0.1:1",
                "grpcs://127.0.0.1:1",
                "grpc://127.0.0.1",
                "grpc://127.0.0.1:0",
                "grpc://127.0.0.1:99999",
                "grpc://0.0.0.0:1",
                "grpc://[::1:1",
            ):
                sending = a.send(Peer(NodeId("b"), address), b"", lane=Lane.DATA)
                await self.refused(PeerUnreachable, sending, f"an address such as {address!r}")

    @check
    async def test_a_name_that_does_not_resolve_is_tried_until_the_end(self) -> None:
        async with self.make("a", drain_timeout=0.2) as a:
            to = Peer(NodeId("b"), "grpc://does-not-exist.invalid:1")
            await a.send(to, numbered(7), lane=Lane.DATA)
            await self.eventually(lambda: bool(a.health().problems), "a problem in health")
            assert a.health().state is HealthState.DEGRADED
            assert "does-not-exist.invalid" in a.health().problems[0]
        assert await self.lost(a) == [7]


class TestLinks(GrpcDetails):
    @check
    async def test_frame_over_the_limit_of_the_receiver(self) -> None:
        """The sender learns of it from the welcome; the frames around it arrive."""
        async with self.endpoints("a") as (a,), self.endpoints("b", **self.small_queues) as (b,):
            too_large = bytes(b.guarantees.max_frame_bytes + 1)
            for payload in (numbered(0), too_large, numbered(1)):
                await a.send(b.contact, payload, lane=Lane.DATA)
            assert numbers(await self.payloads(b, Lane.DATA, 2)) == [0, 1]
            while not isinstance(report := await self.next_control(a), Undelivered):
                pass
            assert report == Undelivered(b.contact, Lane.DATA, (too_large,))
            assert b.statistics().lanes[Lane.DATA].rejected_frames == 0

    @check
    async def test_frames_of_every_size_around_a_full_pack(self) -> None:
        limit = 128 * 1024
        sizes = [0, 1, limit - 9, *range(limit - 6, limit + 7), 3 * limit, 5]
        async with self.endpoints("a", "b") as (a, b):
            for number, size in enumerate(sizes):
                frame = numbered(number, bytes(size))
                await a.send(b.contact, frame, lane=Lane.DATA)
            got = await self.payloads(b, Lane.DATA, len(sizes))
            assert numbers(got) == list(range(len(sizes)))
            assert [len(payload) for payload in got] == [max(8, size) for size in sizes]

    @check
    async def test_another_peer_answers(self) -> None:
        """Frames go to the peer that they are for, or to nobody."""
        async with self.endpoints("b") as (b,):
            async with self.make("a", drain_timeout=0.2) as a:
                wrong = Peer(NodeId("c"), b.contact.address)
                await a.send(wrong, numbered(5), lane=Lane.DATA)
            assert await self.lost(a) == [5]
            assert await self.quiet(b, Lane.DATA) == []

    @check
    async def test_peer_moves(self) -> None:
        """A new address takes over what waits; what the old one had not confirmed is named."""
        config = TransportConfig(url="grpc://127.0.0.1:0", **self.small_queues)
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
            there = numbers(await self.quiet(old, Lane.DATA))
            assert there == list(range(len(there)))
            while not isinstance(report := await self.next_control(a), Undelivered):
                pass
            assert report.peer == old.contact
            assert {*there, *numbers(report.payloads)} == set(range(first))

    @check
    async def test_what_a_clogged_peer_did_not_take_is_named_at_the_close(self) -> None:
        """What is inside gRPC at the end is neither lost in silence nor delivered later."""
        async with self.endpoints("b", **self.small_queues) as (b,):
            async with self.make("a", **self.small_queues) as a:
                accepted = await self.clog(a, b.contact)
            lost = await self.lost(a)
            async with self.make("a", **self.small_queues) as again:
                await again.send(b.contact, numbered(accepted + 1), lane=Lane.DATA)
                got = numbers(await self.payloads(b, Lane.DATA, accepted - len(lost) + 1))
            assert sorted(got + lost) == [*range(accepted), accepted + 1]
            assert got == [*range(accepted - len(lost)), accepted + 1]

    @check
    async def test_a_link_that_is_cut(self) -> None:
        """The connection breaks again and again: every frame arrives, in order and once."""
        async with self.endpoints("a", "b") as (a, b), cuttable_proxy(b.contact) as (address, cut):
            to = Peer(b.contact.id, address)
            got: list[int] = []
            sent = 0
            ending = False

            async def send() -> None:
                nonlocal sent
                while not ending:
                    await a.send(to, numbered(sent, bytes(4096)), lane=Lane.DATA)
                    sent += 1

            async def receive(number: int) -> None:
                while not got or got[-1] < number:
                    got.extend(numbers(await self.payloads(b, Lane.DATA, 1)))

            async with asyncio.TaskGroup() as group:
                sending = group.create_task(send())
                for _ in range(CUTS):
                    await receive(sent)  # so that there is a connection to cut
                    cut()
                ending = True
                while not sending.done():
                    await receive(len(got))
            await receive(sent - 1)
            assert got == list(range(sent)), "lost, doubled or out of order"
            assert a.health().reconnects[b.contact.id] >= CUTS // 2

    @check
    async def test_lanes_have_connections_of_their_own(self) -> None:
        async with (
            self.endpoints("a", "b", drain_timeout=0.1) as (a, b),
            cuttable_proxy(b.contact) as (address, _),
        ):
            for lane in Lane:
                await a.send(Peer(b.contact.id, address), lane.value.encode(), lane=lane)
                await self.next_frame(b, lane)
            assert connections_to(int(address.rpartition(":")[2])) == len(Lane)


def connections_to(port: int) -> int:
    """Count the established TCP connections to a local port."""
    with open("/proc/self/net/tcp", encoding="ascii") as v4, open("/proc/self/net/tcp6") as v6:
        rows = [line.split() for line in [*v4, *v6]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


class TestRefusals(GrpcDetails):
    @check
    async def test_the_reason_reaches_the_one_who_dials(self) -> None:
        for answers, expected in (
            ((), "no dsp endpoint"),
            ((StreamAnswer(refusal=StreamRefusal(reason="Tuesday")),), "Tuesday"),
            ((welcome(version=99),), "wire version 99"),
            ((welcome(node="x" * 2000),), "a name of 2000 bytes"),
            ((StreamAnswer(),), "no known kind"),
            ((welcome(), welcome()), "answers twice"),
            ((welcome(received=7, resumed=True),), "claims 7 frames"),
        ):
            async with Impostor(*answers) as address:
                async with self.make("a", drain_timeout=0.0) as a:
                    await a.send(Peer(NodeId("b"), address), numbered(1), lane=Lane.DATA)
                    assert expected in await self.refusal(a)
                    assert any(expected in problem for problem in a.health().problems)
                assert await self.lost(a) == [1]

    @check
    async def test_strangers_are_told_why(self) -> None:
        async with self.endpoints("b") as (b,), self.channel(b) as channel:
            for message, expected in (
                (b"\xff\xff", "not a hello"),
                (hello(version=99), "wire version 99"),
                (hello(lane=7), "lane 7"),
                (hello(node="x" * 2000), "a name of 2000 bytes"),
            ):
                (answer,) = await self.talk(channel, [message])
                assert expected in StreamAnswer.FromString(answer).refusal.reason

    @check
    async def test_a_stranger_who_says_nothing(self) -> None:
        async with self.endpoints("b", connect_timeout=0.05) as (b,), self.channel(b) as channel:
            method: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
            method = channel.stream_stream(f"/{SERVICE}/{METHOD}")
            call = method()
            answer = await self.soon(call.read(), "the end of its patience")
            assert "no hello" in StreamAnswer.FromString(answer).refusal.reason
            assert b.statistics().lanes[Lane.CONTROL].rejected_frames == 1

    @check
    async def test_garbage_below_gRPC(self) -> None:
        """Random bytes, HTTP/1.1 and half-open connections leave good peers alone."""
        async with self.endpoints("a", "b") as (a, b):
            with ExitStack() as stack:
                for index in range(200):
                    end = socket.create_connection(host_and_port(b), timeout=self.patience)
                    stack.enter_context(end)
                    if index % 4:
                        wire = (b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", os.urandom(2000), b"PRI * H")
                        end.sendall(wire[index % 4 - 1])
                for number in range(100):
                    await a.send(b.contact, numbered(number), lane=Lane.DATA)
                    await a.send(b.contact, numbered(number), lane=Lane.CONTROL)
                for lane in Lane:
                    assert numbers(await self.payloads(b, lane, 100)) == list(range(100))
            assert b.health().state is HealthState.OK
