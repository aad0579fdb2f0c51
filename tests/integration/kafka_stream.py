"""Numbered frames from one endpoint to another over Kafka, counted at the other end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId
from dsp.testing.contract.harness import numbered, numbers
from dsp.transport.base import Frame, Transport
from dsp.transport.kafka.endpoint import KafkaTransport

PATIENCE = 60.0


@asynccontextmanager
async def endpoints(*nodes: str, url: str, **settings: Any) -> AsyncIterator[list[KafkaTransport]]:  # noqa: ANN401
    """Start endpoints on one set of brokers; close them at the end."""
    async with asyncio.TaskGroup() as group:
        found = [
            KafkaTransport.from_config(TransportConfig(url=url, **settings), NodeId(node))
            for node in nodes
        ]
        for endpoint in found:
            group.create_task(endpoint.start())
    try:
        yield found
    finally:
        for endpoint in found:
            await endpoint.aclose()


class Stream:
    """Frames on DATA, as fast as they are taken, until told to end."""

    def __init__(self, sender: Transport, receiver: Transport, size: int = 1000) -> None:
        self.sender = sender
        self.receiver = receiver
        self.filler = bytes(size)
        self.accepted = 0
        self.got: list[int] = []
        self.ending = False

    def next(self) -> bytes:
        """Give the frame to send next."""
        return numbered(self.accepted, self.filler)

    async def send(self) -> None:
        """Send until told to end."""
        while not self.ending:
            await self.sender.send(self.receiver.contact, self.next(), lane=Lane.DATA)
            self.accepted += 1
            if self.accepted % 20 == 0:
                await asyncio.sleep(0.01)  # leave the cores to the broker that comes back

    async def receive(self) -> None:
        """Receive until all that was sent is there."""
        while not self.ending or len(self.got) < self.accepted:
            try:
                async with asyncio.timeout(0.1):
                    inbound = await self.receiver.receive(Lane.DATA)
            except TimeoutError:
                continue
            if isinstance(inbound, Frame):
                self.got += numbers([inbound.payload])
                self.receiver.done(inbound)

    async def passed(self, more: int) -> None:
        """Wait until this many more frames have arrived."""
        until = len(self.got) + more
        async with asyncio.timeout(PATIENCE):
            while len(self.got) < until:
                await asyncio.sleep(0.01)

    def check(self) -> None:
        """Nothing is lost, nothing is doubled, the order is kept."""
        assert len(self.got) == len({*self.got}), f"{len(self.got) - len({*self.got})} came twice"
        assert self.got == sorted(self.got), "out of order"
        assert self.got == list(range(self.accepted)), "something is lost"


@asynccontextmanager
async def stream(sender: Transport, receiver: Transport, size: int = 1000) -> AsyncIterator[Stream]:
    """Run a stream while something happens to the brokers, and check it at the end."""
    flow = Stream(sender, receiver, size)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        group.create_task(flow.send())
        group.create_task(flow.receive())
        await flow.passed(50)
        yield flow
        await flow.passed(200)
        flow.ending = True
    flow.check()
