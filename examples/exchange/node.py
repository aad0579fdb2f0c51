"""A node of the exchange: sends batches, counts those of others, and learns all totals.

It knows peers and bytes, and no network: the same code runs over every transport. The driver has
the CONTROL lane, for the machine; the node itself reads and writes DATA.
"""

import asyncio
from collections.abc import Callable, Sequence

from dsp import Frame, Lane, NodeId, Peer, Transport
from dsp.core.driver import MachineDriver
from dsp.core.machine import CommonEffect
from dsp.core.randomness import derive_random
from dsp.errors import CodecError, ProtocolError
from examples.exchange.counting import (
    AllSent,
    Arrived,
    BatchesLost,
    CountingMachine,
    Event,
    Totals,
    TotalsRequested,
)
from examples.exchange.wire import Batch, Codec

__all__ = ["ExchangeNode", "words_of"]

TREES = ("alder", "birch", "cedar", "elm")
WORDS_PER_BATCH = 32

Driver = MachineDriver[Event, CommonEffect]


def words_of(sender: str, receiver: str, number: int) -> tuple[str, ...]:
    """Give the words of a batch: always the same ones, so that everybody knows what is right."""
    chance = derive_random(0, sender, receiver, str(number))
    return tuple(chance.choices(TREES, k=WORDS_PER_BATCH))


class ExchangeNode:
    """Takes part in one exchange.

    Args:
        transport: a started session. A bare transport would do until a link is cut.
        peers: the others.
        run: name of the run, the same for all.
        on_batch: called for each batch that was counted.
    """

    def __init__(
        self, transport: Transport, peers: Sequence[Peer], run: str, on_batch: Callable[[], None]
    ) -> None:
        self.name: NodeId = transport.contact.id
        self.totals: Totals | None = None
        self.problem = ""
        self.rejected = 0
        self.machine = CountingMachine(self.name, [peer.id for peer in peers])
        self._transport = transport
        self._peers = peers
        self._codec = Codec(run)
        self._on_batch = on_batch

    async def run(self, batches: int) -> None:
        """Send so many batches to each peer, count theirs, and wait for all totals.

        Returns when nobody needs this node any more. How long to wait is for the caller to say.
        """
        driver = MachineDriver(
            self.machine,
            self._transport,
            self._codec,
            peers=self._peers,
            undelivered=lambda lost: driver.submit(BatchesLost(lost.peer.id)),
        )
        async with driver, asyncio.TaskGroup() as tasks:
            reader = tasks.create_task(self._read(driver))
            async with asyncio.TaskGroup() as senders:
                for peer in self._peers:
                    senders.create_task(self._send(peer, batches))
            driver.submit(AllSent(batches))
            try:
                self.totals = await driver.ask(TotalsRequested)
            except ProtocolError as error:
                self.problem = str(error)
            reader.cancel()

    async def _send(self, peer: Peer, batches: int) -> None:
        for number in range(batches):
            batch = Batch(number, words_of(self.name, peer.id, number))
            await self._transport.send(peer, self._codec.encode(batch), lane=Lane.DATA)

    async def _read(self, driver: Driver) -> None:
        while True:
            inbound = await self._transport.receive(Lane.DATA)
            assert isinstance(inbound, Frame)  # what a transport itself has to say is on CONTROL
            self._take(inbound, driver)
            # Only now: a durable transport brings again what was not done when we died.
            self._transport.done(inbound)

    def _take(self, frame: Frame, driver: Driver) -> None:
        try:
            batch = self._codec.decode(frame.payload)
        except CodecError:
            self.rejected += 1
            return
        if not isinstance(batch, Batch):
            self.rejected += 1
            return
        driver.submit(Arrived(frame.sender.id, batch.number, batch.words))
        self._on_batch()
