"""gRPC inside a program: beside an application's own server, on which loop, and its health."""

import asyncio
import threading
from typing import Any

import grpc
import grpc.aio
import pytest

from dsp._pb.grpc_stream_pb2 import HealthQuestion, HealthReply
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ConnectError
from dsp.testing.contract.harness import check, numbered, numbers
from dsp.transport.base import HealthState
from dsp.transport.grpc.health_service import NAME
from dsp.transport.grpc.wire import SERVICE
from tests.contract.grpc_harness import GrpcHarness, GrpcsHarness
from tests.contract.test_grpc_details import make


class TestBesideAnApplication(GrpcHarness):
    @check
    async def test_the_application_has_a_server_of_its_own(self) -> None:
        """Calls to it and frames go on side by side, and each survives the end of the other."""

        async def double(request: bytes, _: object) -> bytes:
            return request * 2

        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Double": grpc.unary_unary_rpc_method_handler(double)
        }
        server = grpc.aio.server(handlers=[grpc.method_handlers_generic_handler("app", handlers)])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
            call = channel.unary_unary("/app/Double")
            async with self.endpoints("a", "b") as (a, b):
                for number in range(50):
                    await a.send(b.contact, numbered(number), lane=Lane.DATA)
                    assert await call(b"ab") == b"abab"
                assert numbers(await self.payloads(b, Lane.DATA, 50)) == list(range(50))
            assert await call(b"cd") == b"cdcd"
            async with self.endpoints("a", "b") as (a, b):
                await server.stop(None)
                await a.send(b.contact, b"still here", lane=Lane.DATA)
                assert (await self.next_frame(b, Lane.DATA)).payload == b"still here"


class TestOneLoop(GrpcHarness):
    @check
    async def test_a_second_loop_at_the_same_time_is_refused(self) -> None:
        found: list[BaseException | None] = []

        def elsewhere() -> None:
            async def start() -> None:
                async with self.make("b"):
                    pass

            try:
                asyncio.run(start())
                found.append(None)
            except ConnectError as error:
                found.append(error)

        async with self.endpoints("a") as (a,):
            await in_a_thread(elsewhere)
            assert "one loop per process" in str(found[0])
            await a.send(a.contact, b"unharmed", lane=Lane.DATA)
            assert (await self.next_frame(a, Lane.DATA)).payload == b"unharmed"
        await in_a_thread(elsewhere)
        assert found[1] is None, "after the first has closed, another loop may"

    def test_loops_may_follow_one_another(self) -> None:
        async def exchange() -> None:
            async with self.endpoints("a", "b") as (a, b):
                await a.send(b.contact, b"hello", lane=Lane.DATA)
                await self.next_frame(b, Lane.DATA)

        async def abort() -> None:
            endpoint = self.make("a")
            await endpoint.start()
            endpoint.abort()

        async def forget() -> None:
            await self.make("a").start()

        for ending in (abort, forget, exchange, abort, exchange):
            self.run(exchange())
            self.run(ending())


async def in_a_thread(function: Any) -> None:  # noqa: ANN401
    """Run a function in a thread that has no part in this loop's workers."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        try:
            function()
        finally:
            loop.call_soon_threadsafe(ended.set)

    thread = threading.Thread(target=work)
    thread.start()
    await ended.wait()
    thread.join()


class HealthChecks(GrpcHarness):
    """The questions of ``grpc_health_probe``."""

    @check
    async def test_check(self) -> None:
        async with self.endpoints("a") as (a,), self.channel(a) as channel:
            for service in ("", SERVICE):
                assert await self._ask(channel, service) == HealthReply.STATUS_SERVING
            for question, code in (
                (HealthQuestion(service="other").SerializeToString(), grpc.StatusCode.NOT_FOUND),
                (b"\xff", grpc.StatusCode.INVALID_ARGUMENT),
            ):
                with pytest.raises(grpc.aio.AioRpcError) as fault:
                    await self._call(channel, question)
                assert fault.value.code() is code

    @check
    async def test_watch(self) -> None:
        """A peer that does not read makes the endpoint stall; when it reads, all is well."""
        settings = self.small_queues | {"stall_after": 0.2}
        async with self.endpoints("a", "b", **settings) as (a, b), self.channel(a) as channel:
            watch = self._watch(channel, "")
            assert await self._next(watch) == HealthReply.STATUS_SERVING
            accepted = await self.clog(a, b.contact)
            assert await self._next(watch) == HealthReply.STATUS_NOT_SERVING
            assert a.health().state is HealthState.STALLED
            await self.payloads(b, Lane.DATA, accepted)
            assert await self._next(watch) == HealthReply.STATUS_SERVING
            unknown = self._watch(channel, "other")
            assert await self._next(unknown) == HealthReply.STATUS_SERVICE_UNKNOWN

    async def _ask(self, channel: grpc.aio.Channel, service: str) -> int:
        question = HealthQuestion(service=service).SerializeToString()
        return HealthReply.FromString(await self._call(channel, question)).status

    async def _call(self, channel: grpc.aio.Channel, question: bytes) -> bytes:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]
        method = channel.unary_unary(f"/{NAME}/Check")
        return await method(question)

    def _watch(
        self, channel: grpc.aio.Channel, service: str
    ) -> "grpc.aio.UnaryStreamCall[bytes, bytes]":
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
        method = channel.unary_stream(f"/{NAME}/Watch")
        return method(HealthQuestion(service=service).SerializeToString())

    async def _next(self, watch: "grpc.aio.UnaryStreamCall[bytes, bytes]") -> int:
        data = await self.soon(watch.read(), "a change of health")
        return HealthReply.FromString(data).status


class TestHealth(HealthChecks):
    @check
    async def test_an_absent_peer_degrades_and_is_still_served(self) -> None:
        async with make("grpc://127.0.0.1:0") as a, self.channel(a) as channel:
            absent = await self._absent()
            await a.send(absent, b"", lane=Lane.DATA)
            await self.eventually(
                lambda: a.health().state is HealthState.DEGRADED, "a problem in health"
            )
            assert await self._ask(channel, "") == HealthReply.STATUS_SERVING
            a.abort()

    async def _absent(self) -> Peer:
        async with make("grpc://127.0.0.1:0", "b") as b:
            return Peer(NodeId("b"), b.contact.address)


class TestHealthOverTls(GrpcsHarness, HealthChecks):
    pass
