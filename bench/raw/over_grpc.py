"""grpc.aio without dsp, for comparison: one bidirectional stream, the same records in it."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from dsp.lab.transport.child import END, PING, read_order, report
from dsp.lab.transport.load import LoadKind, pack, percentile, unpack

METHOD = "/bench.Raw/Flow"
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


async def sink(order: dict[str, Any]) -> None:
    """Count what comes, and answer pings."""
    counted: asyncio.Future[tuple[int, float]] = asyncio.get_running_loop().create_future()

    async def flow(requests: AsyncIterator[bytes], _: object) -> AsyncIterator[bytes]:
        count, first = 0, 0.0
        async for payload in requests:
            if payload == END:
                counted.set_result((count, time.perf_counter() - first))
            elif payload == PING:
                yield PING
            else:
                first = first or time.perf_counter()
                count += len(unpack(payload)) if order["batch"] > 1 else 1

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(flow)
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("bench.Raw", {"Flow": handler})]
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    report(address=f"127.0.0.1:{port}")
    count, seconds = await counted
    report(records=count, seconds=seconds)
    await asyncio.to_thread(sys.stdin.buffer.readline)
    await server.stop(0)


async def source(order: dict[str, Any]) -> None:
    """Write as fast as the stream takes it, or ask and wait."""
    async with grpc.aio.insecure_channel(order["address"], options=OPTIONS) as channel:
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(METHOD)()
        record, sent, trips = bytes([1]) * order["record_bytes"], 0, []
        records = [record] * order["batch"]
        until = time.perf_counter() + order["seconds"]
        while (now := time.perf_counter()) < until:
            if order["kind"] == LoadKind.ANSWERS.value:
                await call.write(PING)
                await call.read()
                trips.append(time.perf_counter() - now)
            elif order["batch"] > 1:
                await call.write(pack(records))
                sent += order["batch"]
            else:
                await call.write(record)
                sent += 1
        await call.write(END)
        await call.done_writing()
        await call.read()
        if trips:
            report(p50=percentile(trips, 0.5), p99=percentile(trips, 0.99))
        else:
            report(sent=sent)


def main() -> None:
    """Do what the first line of the input says."""
    order = read_order()
    asyncio.run(sink(order) if order["role"] == "sink" else source(order))


if __name__ == "__main__":
    main()
