"""One end of a measurement: ``python -m dsp.lab.transport.child``, told what to do by its parent.

The parent writes one line of JSON. A sink answers with its address; then the source, in another
process, sends to it. Both answer with what they counted and exit when their input ends.
"""

import asyncio
import importlib
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import orjson

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.lab.transport.load import LoadKind, pack, percentile, unpack
from dsp.transport.base import Frame, Transport

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main", "memory_mib", "read_order", "report"]

PING: Final = b"\0ping"
END: Final = b"\0end"
CLOG_PATIENCE: Final = 1.0


def read_order() -> dict[str, Any]:
    """Read what to do."""
    order: dict[str, Any] = orjson.loads(sys.stdin.buffer.readline())
    return order


def report(**facts: object) -> None:
    """Tell the parent."""
    sys.stdout.buffer.write(orjson.dumps(facts) + b"\n")
    sys.stdout.buffer.flush()


def memory_mib() -> float:
    """Give the most memory that this process ever held."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def endpoint(order: dict[str, Any]) -> Transport:
    """Make the endpoint that an order describes."""
    module, _, name = order["factory"].partition(":")
    factory: Callable[[TransportConfig, NodeId], Transport]
    factory = getattr(importlib.import_module(module), name)
    return factory(TransportConfig.model_validate(order["transport"]), NodeId(order["node"]))


async def sink(order: dict[str, Any]) -> None:
    """Count what comes, answer pings, until the input ends."""
    batch = order["batch"]
    async with endpoint(order) as transport:
        report(address=transport.contact.address, node=transport.contact.id)
        if order["kind"] == LoadKind.CLOG.value:
            await asyncio.to_thread(sys.stdin.buffer.readline)
            report(resident_mib=memory_mib())
            transport.abort()
            return
        async with asyncio.TaskGroup() as tasks:
            control = tasks.create_task(_answer(transport))
            records, seconds = await _count(transport, batch)
            report(records=records, seconds=seconds)
            await asyncio.to_thread(sys.stdin.buffer.readline)
            control.cancel()


async def _count(transport: Transport, batch: int) -> tuple[int, float]:
    """Count records up to the end; give their number and the time from the first to the last."""
    count, first = 0, 0.0
    while True:
        inbound = await transport.receive(Lane.DATA)
        assert isinstance(inbound, Frame)
        payload = inbound.payload
        transport.done(inbound)
        if not first:
            first = time.perf_counter()
        if batch > 1 and len(payload) > len(PING):
            count += len(unpack(payload))
        elif payload == PING:
            await transport.send(inbound.sender, PING, lane=Lane.CONTROL)
        elif payload == END:
            return count, time.perf_counter() - first
        else:
            count += 1


async def _answer(transport: Transport) -> None:
    while True:
        inbound = await transport.receive(Lane.CONTROL)
        if isinstance(inbound, Frame):
            transport.done(inbound)
            await transport.send(inbound.sender, PING, lane=Lane.CONTROL)


async def source(order: dict[str, Any]) -> None:
    """Send what the load asks for, then say what was seen of it here."""
    peer = Peer(NodeId(order["to"]), order["address"])
    kind = LoadKind(order["kind"])
    async with endpoint(order) as transport:
        if kind is LoadKind.CLOG:
            await _clog(transport, peer, order)
            return
        # The first exchange makes the connections; it is not measured.
        await _ask(transport, peer, Lane.CONTROL)
        if kind is LoadKind.FLOW:
            await _flow(transport, peer, order)
        elif kind is LoadKind.ANSWERS:
            trips = await _ask_for(transport, peer, Lane.CONTROL, order["seconds"])
            report(p50=percentile(trips, 0.5), p99=percentile(trips, 0.99))
        else:
            lane = Lane.CONTROL if kind is LoadKind.LOADED_ANSWERS else Lane.DATA
            async with asyncio.TaskGroup() as tasks:
                flow = tasks.create_task(_flow(transport, peer, order | {"seconds": 3600.0}))
                await asyncio.sleep(0.2)
                trips = await _ask_for(transport, peer, lane, order["seconds"])
                flow.cancel()
            report(p50=percentile(trips, 0.5), p99=percentile(trips, 0.99))
        await transport.send(peer, END, lane=Lane.DATA)


async def _flow(transport: Transport, peer: Peer, order: dict[str, Any]) -> None:
    batch, size = order["batch"], order["record_bytes"]
    record = bytes([1]) * size
    records = [record] * batch
    until = time.perf_counter() + order["seconds"]
    sent = 0
    while time.perf_counter() < until:
        if batch > 1:
            await transport.send(peer, pack(records), lane=Lane.DATA)
            sent += batch
        else:
            for _ in range(64):
                await transport.send(peer, record, lane=Lane.DATA)
            sent += 64
    report(sent=sent)


async def _ask(transport: Transport, peer: Peer, lane: Lane) -> float:
    began = time.perf_counter()
    await transport.send(peer, PING, lane=lane)
    while True:
        inbound = await transport.receive(Lane.CONTROL)
        if isinstance(inbound, Frame):
            transport.done(inbound)
            return time.perf_counter() - began


async def _ask_for(transport: Transport, peer: Peer, lane: Lane, seconds: float) -> list[float]:
    until = time.perf_counter() + seconds
    trips = []
    while time.perf_counter() < until:
        trips.append(await _ask(transport, peer, lane))
    return trips


async def _clog(transport: Transport, peer: Peer, order: dict[str, Any]) -> None:
    frame = pack([bytes(order["record_bytes"])] * order["batch"])
    until = time.perf_counter() + order["seconds"]
    sent = 0
    while time.perf_counter() < until:
        try:
            async with asyncio.timeout(CLOG_PATIENCE):
                await transport.send(peer, frame, lane=Lane.DATA)
            sent += 1
        except TimeoutError:
            continue  # it waits, as it should
    report(sent=sent, resident_mib=memory_mib())
    transport.abort()


async def main() -> None:
    """Do what the first line of the input says."""
    order = read_order()
    await (sink(order) if order["role"] == "sink" else source(order))


if __name__ == "__main__":
    asyncio.run(main())
