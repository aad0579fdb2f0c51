"""Small applications that the tests of the world run."""

import asyncio
from collections.abc import Callable
from typing import Any

from dsp.config import TransportConfig
from dsp.core.types import Lane
from dsp.testing import Host, HostMain
from dsp.transport.base import Frame, Transport
from dsp.transport.registry import create_transport


def endpoint(host: Host, **settings: Any) -> Transport:  # noqa: ANN401
    """Make the endpoint of a host."""
    return create_transport(TransportConfig(url=host.url, **settings), host.name)


def sender(to: str, count: int, every: float = 0.1) -> HostMain:
    """Make a host that sends numbered frames, then ends."""

    async def main(host: Host) -> None:
        async with endpoint(host) as transport:
            peer = host.world.hosts[to].peer
            for number in range(count):
                await transport.send(peer, b"%d" % number, lane=Lane.DATA)
                await asyncio.sleep(every)

    return main


def receiver(into: list[int], note: Callable[[object], None] | None = None) -> HostMain:
    """Make a host that notes the numbers it gets, and its events, for ever."""

    async def main(host: Host) -> None:
        async def read(transport: Transport, lane: Lane) -> None:
            while True:
                inbound = await transport.receive(lane)
                if isinstance(inbound, Frame):
                    into.append(int(inbound.payload))
                elif note is not None:
                    note(inbound)

        async with endpoint(host) as transport, asyncio.TaskGroup() as group:
            for lane in Lane:
                group.create_task(read(transport, lane))

    return main
