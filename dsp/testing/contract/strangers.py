"""Checks of the contract: garbage from strangers, and peers that die and return."""

import asyncio

from dsp.core.types import Lane
from dsp.testing.contract.harness import ContractHarness, check, numbered, numbers
from dsp.transport.base import PeerDown, PeerUp, Transport, Undelivered

__all__ = ["StrangersContract"]


class StrangersContract(ContractHarness):
    """What a transport does when others do not behave."""

    @check
    async def test_garbage_from_a_stranger(self) -> None:
        """Bytes that make no sense are counted, and good peers are served on."""
        async with self.endpoints("a", "b") as (a, b):
            await a.send(b.contact, b"before", lane=Lane.DATA)
            assert (await self.next_frame(b, Lane.DATA)).payload == b"before"
            await self.send_garbage(b)
            await self.eventually(
                lambda: any(lane.rejected_frames for lane in b.statistics().lanes.values()),
                "the garbage in the statistics",
            )
            await a.send(b.contact, b"after", lane=Lane.DATA)
            assert (await self.next_frame(b, Lane.DATA)).payload == b"after"
            assert await self.quiet(b, Lane.CONTROL) == []

    @check
    async def test_peer_restarts_under_the_same_id(self) -> None:
        """A peer dies without a word and comes back; frames reach its new incarnation."""
        async with self.endpoints("a") as (a,):
            for incarnation in range(3):
                b = self.make("b")
                await b.start()
                try:
                    await b.send(a.contact, b"I am back", lane=Lane.CONTROL)
                    assert (await self.next_frame(a, Lane.CONTROL)).payload == b"I am back"
                    await self._reaches(a, b, incarnation * 1000)
                finally:
                    b.abort()

    async def _reaches(self, sender: Transport, receiver: Transport, first: int) -> None:
        """Send until something arrives: what was on its way to the dead one may be lost."""
        reader = asyncio.create_task(self.next_frame(receiver, Lane.DATA))
        number = first
        while not reader.done():
            await sender.send(receiver.contact, numbered(number), lane=Lane.DATA)
            number += 1
            await asyncio.wait([reader], timeout=self.grace / 10)
        got = numbers([reader.result().payload])
        got += numbers(await self.quiet(receiver, Lane.DATA))
        if not sender.guarantees.durable:
            assert got == sorted(got), "frames out of order after a restart"
        assert got[-1] == number - 1, "the last frame did not arrive"

    @check
    async def test_hints_about_a_peer_that_dies(self) -> None:
        """The end of a peer is told on CONTROL, and so is its return."""
        async with self.endpoints("a") as (a,):
            if a.guarantees.durable:
                return  # a log between the two knows nothing of the other end
            async with self.endpoints("b") as (b,):
                await b.send(a.contact, b"hello", lane=Lane.CONTROL)
                assert await self.soon(a.receive(Lane.CONTROL), "PeerUp") == PeerUp(b.contact)
                await self.next_frame(a, Lane.CONTROL)
                await a.send(b.contact, b"hello", lane=Lane.CONTROL)
                await self.next_frame(b, Lane.CONTROL)
            down = await self.soon(a.receive(Lane.CONTROL), "PeerDown")
            assert isinstance(down, PeerDown)
            assert down.peer.id == "b"
            async with self.endpoints("b") as (b,):
                await b.send(a.contact, b"hello again", lane=Lane.CONTROL)
                up = await self.soon(a.receive(Lane.CONTROL), "PeerUp again")
                while isinstance(up, Undelivered):  # its acknowledgement may have been lost
                    up = await self.soon(a.receive(Lane.CONTROL), "PeerUp again")
                assert up == PeerUp(b.contact)
