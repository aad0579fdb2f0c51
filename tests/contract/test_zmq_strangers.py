"""What comes over the wire of the mesh and should not: each is counted, and good peers are served.

Strangers here speak ZeroMQ by hand; ``dsp.transport.zmq.wire`` says what they should have said.
"""

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import zmq

from dsp.core.types import Lane, NodeId, Peer
from dsp.testing.contract.harness import check, numbered, numbers
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.wire import MAX_MESSAGE_BYTES, Hello, Kind, encode_hello, head, split_head
from tests.contract.zmq_trouble import MeshHarness, MeshSessions, hello, stranger

HALF_OPEN = 1000
FLOOD = 20_000


def of_version(parts: list[bytes], version: int) -> list[bytes]:
    """Change the version in the head of a message."""
    return [parts[0][:4] + bytes([version]) + parts[0][5:], *parts[1:]]


class TestStrangers(MeshHarness):
    """Who dials an endpoint."""

    async def rejects(
        self, messages: list[list[bytes]], cause: str, said: bytes | None, lane: Lane = Lane.DATA
    ) -> None:
        """Check that messages of a stranger are counted, and answered with a reason."""
        async with self.serving() as tried, stranger(zmq.DEALER, tried, lane) as socket_:
            before = tried.statistics().lanes[lane].rejected_frames
            for parts in messages:
                await socket_.send_multipart(parts)
            if said is not None:
                answer = await self.soon(socket_.recv_multipart(), "an answer")
                assert said in answer[-1], answer
            await self.fault(tried, cause)
            assert tried.statistics().lanes[lane].rejected_frames > before

    @check
    async def test_a_peer_of_another_version(self) -> None:
        for version in (0, 2, 255):
            said = f"version {version} of the wire format, we speak 1: run the same release"
            await self.rejects([of_version(hello(), version)], "bad hello", said.encode())

    @check
    async def test_a_peer_that_mixes_up_the_ports(self) -> None:
        said = b"for another lane than data: the ports are mixed up"
        await self.rejects([hello(lane=Lane.CONTROL)], "bad hello", said)
        await self.rejects(
            [hello(lane=Lane.DATA)], "bad hello", b"another lane than control", Lane.CONTROL
        )

    @check
    async def test_first_words_that_are_no_hello(self) -> None:
        name, rest = hello()
        for message, said in (
            ([b"a frame without a hello"], b"not a message of dsp"),
            ([b""], b"not a message of dsp"),
            ([b"", b""], b"not a message of dsp"),
            ([name], b"does not begin with a hello"),
            ([name, rest, b"more"], b"does not begin with a hello"),
            ([name] * 1000, b"does not begin with a hello"),
            ([head(Kind.LAST_PIECE, Lane.DATA), b"x"], b"does not begin with a hello"),
            ([name, b""], b"truncated"),
            ([name, rest[:9]], b"truncated"),
            ([name, rest[:-1]], b"malformed"),
            ([name, rest + b"x"], b"malformed"),
            ([name, struct.pack("!QHH", 1, 0, 0)], b"malformed"),
            ([name, struct.pack("!QHH", 1, 1, 1) + b"\xff\xff"], b"malformed"),
            ([name, struct.pack("!QHH", 1, 65535, 65535) + bytes(4000)], b"malformed"),
            ([name, bytes(MAX_MESSAGE_BYTES)], b"malformed"),
            ([name[:-2] + b"\x63\x01", rest], b"unknown kind 99"),
            ([name[:-1] + b"\x09", rest], b"ports are mixed up"),
        ):
            await self.rejects([message], "bad hello", said)

    @check
    async def test_a_hello_with_an_address_that_nobody_can_dial(self) -> None:
        for address in ("", "nowhere", "zmq+tcp://0.0.0.0:1", "zmq+tcp://127.0.0.1:0", "é" * 900):
            peer = Peer(NodeId("stranger"), address)
            parts = encode_hello(Kind.HELLO, Lane.DATA, Hello(peer, 4096))
            await self.rejects([parts], "bad hello", b"malformed")

    @check
    async def test_nonsense_after_a_hello(self) -> None:
        for nonsense in (
            [b"", b""],
            [b"x", b"y", b"z"],
            [b""] * 1000,
            hello(),
            of_version([head(Kind.LAST_PIECE, Lane.DATA), b"x"], 2),
            [head(Kind.LAST_PIECE, Lane.CONTROL), b"x"],
            [head(Kind.WELCOME, Lane.DATA), b""],
            [head(Kind.LAST_PIECE, Lane.DATA), b"x", b"y"],
            [head(Kind.SPLIT, Lane.DATA), b"rest"],
            [split_head(b"start", Lane.CONTROL), b"rest"],
            [split_head(b"start", Lane.DATA), b"rest", b"more"],
            [split_head(bytes(1000), Lane.DATA), b"rest"],
        ):
            await self.rejects([hello(), nonsense], "bad message", None)

    @check
    async def test_a_frame_in_two_parts_is_put_together_for_who_reads_it(self) -> None:
        async with self.serving() as tried, stranger(zmq.DEALER, tried) as socket_:
            await socket_.send_multipart(hello())
            await socket_.send_multipart([split_head(b"start, ", Lane.DATA), b"rest"])
            await socket_.send_multipart([split_head(b"start", Lane.DATA), b""])
            assert await self.payloads(tried, Lane.DATA, 2) == [b"start, rest", b"start"]

    @check
    async def test_random_bytes(self) -> None:
        """Under a sound handshake of ZeroMQ's, and instead of one."""
        chance = random.Random(1)
        async with self.serving() as tried:
            async with stranger(zmq.DEALER, tried) as socket_:
                for _ in range(200):
                    parts = chance.randrange(1, 4)
                    sizes = [chance.randrange(64) for _ in range(parts)]
                    await socket_.send_multipart([chance.randbytes(size) for size in sizes])
                await self.fault(tried, "bad hello", 200)
            for port in Address.parse(tried.contact.address).ports:
                for size in (1, 10, 64, 4096):
                    with socket.create_connection(("127.0.0.1", port), self.patience) as raw:
                        raw.sendall(chance.randbytes(size))
            await self.fault(tried, "failed handshake", 1)
            assert await self.quiet(tried, Lane.DATA) == []

    @check
    async def test_a_frame_over_our_limit(self) -> None:
        """Its pieces are thrown away as they come; those of the next frame are not."""
        settings = {**self.small_queues, "max_frame_bytes": 1024 * 1024}
        async with self.serving(**settings) as tried, stranger(zmq.DEALER, tried) as socket_:
            await socket_.send_multipart(hello())
            piece = [head(Kind.PIECE, Lane.DATA), bytes(MAX_MESSAGE_BYTES)]
            last = [head(Kind.LAST_PIECE, Lane.DATA), b"end"]
            for parts in (*[piece] * 20, last, [b"next"], piece, last):
                await socket_.send_multipart(parts)
            await self.fault(tried, "bad message")
            got = await self.payloads(tried, Lane.DATA, 2)
            assert got == [b"next", bytes(MAX_MESSAGE_BYTES) + b"end"]
            assert tried.statistics().faults == {"bad message": 1}

    @check
    async def test_a_message_that_is_larger_than_any(self) -> None:
        """libzmq closes the connection when it reads the length."""
        async with self.serving() as tried, stranger(zmq.DEALER, tried) as socket_:
            await socket_.send_multipart(hello())
            await self.soon(socket_.recv_multipart(), "a welcome")
            before = tried.statistics().peers_up
            await socket_.send(bytes(4 * MAX_MESSAGE_BYTES))
            await self.eventually(
                lambda: tried.statistics().peers_up < before, "the end of the connection"
            )
            assert await self.quiet(tried, Lane.DATA) == []

    @check
    async def test_connections_that_say_nothing(self) -> None:
        """They are closed after a while, and counted; nobody waits for them."""
        async with self.serving(connect_timeout=1.0) as tried:
            port = Address.parse(tried.contact.address).ports[1]
            with ExitStack() as stack:
                for number in range(HALF_OPEN):
                    raw = socket.create_connection(("127.0.0.1", port), self.patience)
                    stack.enter_context(raw)
                    if number % 2:  # half of a greeting
                        raw.sendall(b"\xff\0\0\0\0")
                async with self.make("beside") as beside:
                    await self.echo(beside, tried, b"beside them")
                await self.fault(tried, "failed handshake", HALF_OPEN)
            assert tried.statistics().lanes[Lane.DATA].rejected_frames == HALF_OPEN

    @check
    async def test_a_stranger_that_floods(self) -> None:
        """One that never says hello is counted message by message; peers go on beside it."""
        async with (
            self.endpoints("good", "tried") as (good, tried),
            stranger(zmq.DEALER, tried) as socket_,
        ):

            async def flood() -> None:
                for _ in range(FLOOD):
                    await socket_.send(b"let me in")

            flooding = asyncio.create_task(flood())
            count = 0
            while not flooding.done():
                await self.echo(good, tried, numbered(count))
                count += 1
            await flooding
            assert count > 0
            await self.fault(tried, "bad hello", FLOOD)
            assert tried.statistics().faults == {"bad hello": FLOOD}
            assert await self.quiet(tried, Lane.DATA) == []

    @check
    async def test_a_peer_that_floods_is_held_back(self) -> None:
        """One with a sound hello fills the inbox of its lane, no more; CONTROL goes on."""
        async with (
            self.endpoints("good", "tried", **self.small_queues) as (good, tried),
            stranger(zmq.DEALER, tried) as socket_,
        ):
            await socket_.send_multipart(hello())

            async def flood() -> None:
                while True:
                    await socket_.send(bytes(64 * 1024))

            flooding = asyncio.create_task(flood())
            for number in range(20):
                await good.send(tried.contact, numbered(number), lane=Lane.CONTROL)
                assert numbers(await self.payloads(tried, Lane.CONTROL, 1)) == [number]
                waiting = tried.statistics().lanes[Lane.DATA].receive_queue_bytes
                assert waiting <= self.small_queues["receive_queue_bytes"]
            flooding.cancel()


@asynccontextmanager
async def impostor(answer: list[bytes] | None) -> AsyncIterator[Peer]:
    """Give a peer that gives the same answer to everything, or none at all."""
    async with stranger(zmq.ROUTER) as control, stranger(zmq.ROUTER) as data:
        ports = [socket_.bind_to_random_port("tcp://127.0.0.1") for socket_ in (control, data)]

        async def serve(socket_: Any) -> None:  # noqa: ANN401
            while True:
                identity, *_ = await socket_.recv_multipart()
                if answer is not None:
                    await socket_.send_multipart([identity, *answer])

        serving = [asyncio.create_task(serve(each)) for each in (control, data)]
        yield Peer(NodeId("impostor"), "zmq+tcp://127.0.0.1:{}?data={}".format(*ports))
        for task in serving:
            task.cancel()
        await asyncio.wait(serving)


def welcome(name: str, lane: Lane, version: int = 1, most: int = 4096) -> list[bytes]:
    """Make the answer to a hello."""
    peer = Peer(NodeId(name), "zmq+tcp://127.0.0.1:9?data=10")
    return of_version(encode_hello(Kind.WELCOME, lane, Hello(peer, most)), version)


class TestAnswers(MeshHarness):
    """Who is dialled by an endpoint, and answers otherwise than it should."""

    lane = Lane.DATA

    async def refuses(self, answer: list[bytes], because: str) -> None:
        async with self.serving() as tried, impostor(answer) as peer:
            await self.is_refused(tried, peer, because, self.lane)
            await self.fault(tried, "refused")

    @check
    async def test_a_peer_of_another_version(self) -> None:
        await self.refuses(welcome("impostor", self.lane, version=2), "speaks version 2 .*we speak")

    @check
    async def test_a_refusal_of_any_version(self) -> None:
        refusal = [head(Kind.REFUSED, self.lane), b"you are \x1b[31mold\n"]
        await self.refuses(of_version(refusal, 7), r"refuses us: you are \\x1b\[31mold\\n$")

    @check
    async def test_somebody_else_answers(self) -> None:
        await self.refuses(welcome("other", self.lane), "^other .* answers at the address of impos")

    @check
    async def test_answers_that_make_no_sense(self) -> None:
        other = next(lane for lane in Lane if lane is not self.lane)
        for answer, because in (
            ([b""], "it has 1 parts"),
            ([b"", b""], "not a message of dsp"),
            ([b"HTTP/1.1 200 OK", b"hello"], "not a message of dsp"),
            ([head(Kind.WELCOME, self.lane)], "it has 1 parts"),
            ([head(Kind.WELCOME, self.lane), b""], "truncated"),
            ([head(Kind.BYE_RECEIVED, self.lane), b""], "a BYE_RECEIVED is not expected"),
            (welcome("impostor", other), "ports are mixed up"),
        ):
            await self.refuses(answer, because)

    @check
    async def test_nobody_answers(self) -> None:
        """No refusal: it may be slow. It is tried until it answers."""
        short = {"connect_timeout": 0.3, "drain_timeout": 0.1}
        async with self.serving(**short) as tried, impostor(None) as peer:
            await tried.send(peer, b"x", lane=self.lane)
            await self.fault(tried, "no answer", 2)


class TestAnswersThroughSessions(MeshSessions, TestAnswers):
    """A session begins on CONTROL, whichever lane a frame is for."""

    lane = Lane.CONTROL
