"""The other process of the process checks: an endpoint that reports what happens to it.

Run as ``python -m dsp.testing.contract.child``. What it reads and writes are JSON objects, one a
line. The first line of standard input is its configuration: ``node``, ``transport`` (the table of
``TransportConfig``), ``factory``, the ``module:function`` that makes an endpoint from
configuration and node id, and ``reads``, whether it receives what comes in on DATA. The others are
orders to send. At the end of its input it closes the
endpoint and exits, so it does not outlive the one who started it.

Reports go to standard output. A frame is reported before it is done with, so a process that is
killed has reported all that its endpoint may have forgotten.
"""

import asyncio
import importlib
import sys
from typing import TYPE_CHECKING, Any

import orjson

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import EndOfStream
from dsp.testing.contract.harness import numbered, numbers
from dsp.transport.base import Frame, Inbound, Transport, Undelivered

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["REGISTRY", "main", "report"]

REGISTRY = "dsp.transport.registry:create_transport"
"""The factory that looks up the scheme of the URL, as applications do."""


async def main() -> None:
    """Run the endpoint that the first line of standard input describes, until the input ends."""
    orders = asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(orders), sys.stdin
    )
    try:
        settings = orjson.loads(await orders.readline())
        endpoint = _make(settings)
        async with asyncio.TaskGroup() as group, endpoint:
            report("ready", address=endpoint.contact.address)
            for lane in Lane:
                if settings["reads"] or lane is Lane.CONTROL:
                    group.create_task(_receive(endpoint, lane))
            sending: list[asyncio.Task[None]] = []
            while order := await orders.readline():
                sending.append(group.create_task(_send(endpoint, orjson.loads(order))))
            for task in sending:
                task.cancel()
    finally:
        pipe.close()
    report("closed")


def _make(settings: dict[str, Any]) -> Transport:
    module, _, name = settings["factory"].partition(":")
    factory: Callable[[TransportConfig, NodeId], Transport]
    factory = getattr(importlib.import_module(module), name)
    return factory(TransportConfig.model_validate(settings["transport"]), NodeId(settings["node"]))


async def _receive(endpoint: Transport, lane: Lane) -> None:
    while True:
        try:
            inbound = await endpoint.receive(lane)
        except EndOfStream:
            return
        _report_inbound(inbound)
        if isinstance(inbound, Frame):
            endpoint.done(inbound)


def _report_inbound(inbound: Inbound) -> None:
    match inbound:
        case Frame(lane=lane, payload=payload):
            report("frame", lane=lane.value, number=numbers([payload])[0], size=len(payload))
        case Undelivered(lane=lane, payloads=payloads):
            report("undelivered", lane=lane.value, numbers=numbers(payloads))
        case _:
            report(type(inbound).__name__, peer=inbound.peer.id)


async def _send(endpoint: Transport, order: dict[str, Any]) -> None:
    """Send ``count`` frames of ``size`` bytes, numbered from ``first``, or until one waits."""
    to = Peer(NodeId(order["to"]), order["address"])
    filler = bytes(order["size"])
    for number in range(order["first"], order["first"] + order["count"]):
        try:
            async with asyncio.timeout(order["grace"]):
                await endpoint.send(to, numbered(number, filler), lane=Lane(order["lane"]))
        except TimeoutError:
            report("clogged", count=number - order["first"])
            return
    report("sent", first=order["first"], count=order["count"])


def report(kind: str, **details: object) -> None:
    """Write a line to standard output."""
    # Blocking, on purpose: what is reported is with the other process when the call returns.
    sys.stdout.buffer.write(orjson.dumps({"kind": kind, **details}) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main())
