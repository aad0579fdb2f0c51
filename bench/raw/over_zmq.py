"""pyzmq without dsp, for comparison: the same records, packed and unpacked in the same way.

``style`` of the order: ``sync`` (blocking sockets) or ``asyncio`` (``zmq.asyncio``).
"""

import asyncio
import sys
import time
from typing import Any

import zmq
import zmq.asyncio

from dsp.lab.transport.child import END, read_order, report
from dsp.lab.transport.load import LoadKind, pack, percentile, unpack


def sync_sink(order: dict[str, Any]) -> None:
    """Count with a blocking PULL."""
    with zmq.Context() as context, context.socket(zmq.PULL) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        report(address=f"tcp://127.0.0.1:{port}")
        count, first = 0, 0.0
        while (payload := socket.recv()) != END:
            first = first or time.perf_counter()
            count += len(unpack(payload)) if order["batch"] > 1 else 1
        report(records=count, seconds=time.perf_counter() - first)
        sys.stdin.buffer.readline()


def sync_source(order: dict[str, Any]) -> None:
    """Send with a blocking PUSH."""
    with zmq.Context() as context, context.socket(zmq.PUSH) as socket:
        socket.connect(order["address"])
        record, sent = bytes([1]) * order["record_bytes"], 0
        records = [record] * order["batch"]
        until = time.perf_counter() + order["seconds"]
        while time.perf_counter() < until:
            if order["batch"] > 1:
                socket.send(pack(records))
                sent += order["batch"]
            else:
                for _ in range(64):
                    socket.send(record)
                sent += 64
        socket.send(END)
        report(sent=sent)


async def async_sink(order: dict[str, Any]) -> None:
    """Count with zmq.asyncio's PULL, or answer with its REP."""
    asks = order["kind"] == LoadKind.ANSWERS.value
    with zmq.asyncio.Context() as context, context.socket(zmq.REP if asks else zmq.PULL) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        report(address=f"tcp://127.0.0.1:{port}")
        count, first = 0, 0.0
        while (payload := await socket.recv()) != END:
            if asks:
                await socket.send(payload)
                continue
            first = first or time.perf_counter()
            count += len(unpack(payload)) if order["batch"] > 1 else 1
        report(records=count, seconds=time.perf_counter() - first)
        await asyncio.to_thread(sys.stdin.buffer.readline)


async def async_source(order: dict[str, Any]) -> None:
    """Send with zmq.asyncio's PUSH, or ask with its REQ."""
    asks = order["kind"] == LoadKind.ANSWERS.value
    with zmq.asyncio.Context() as context, context.socket(zmq.REQ if asks else zmq.PUSH) as socket:
        socket.connect(order["address"])
        record, sent, trips = bytes([1]) * order["record_bytes"], 0, []
        records = [record] * order["batch"]
        until = time.perf_counter() + order["seconds"]
        while (now := time.perf_counter()) < until:
            if asks:
                await socket.send(b"\0ping")
                await socket.recv()
                trips.append(time.perf_counter() - now)
            elif order["batch"] > 1:
                await socket.send(pack(records))
                sent += order["batch"]
            else:
                for _ in range(64):
                    await socket.send(record)
                sent += 64
        await socket.send(END)
        if asks:
            report(p50=percentile(trips, 0.5), p99=percentile(trips, 0.99))
        else:
            report(sent=sent)


def main() -> None:
    """Do what the first line of the input says."""
    order = read_order()
    match order["style"], order["role"]:
        case "sync", "sink":
            sync_sink(order)
        case "sync", "source":
            sync_source(order)
        case _, "sink":
            asyncio.run(async_sink(order))
        case _, _:
            asyncio.run(async_source(order))


if __name__ == "__main__":
    main()
