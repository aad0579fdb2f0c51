"""Checks of the contract: frames arrive, whole and in order, on both lanes."""

import asyncio

from dsp.core.types import Lane, Peer
from dsp.errors import BusyError, ClosedError, FrameTooLarge
from dsp.testing.contract.harness import ContractHarness, check, numbered, numbers
from dsp.transport.base import PeerUp

__all__ = ["ExchangeContract"]

FIFO_FRAMES = 2000


class ExchangeContract(ContractHarness):
    """What a transport does when nothing goes wrong."""

    @check
    async def test_echo(self) -> None:
        """A frame arrives, and its sender can be answered."""
        async with self.endpoints("a", "b") as (a, b):
            for lane in Lane:
                await a.send(b.contact, b"ping", lane=lane)
                frame = await self.next_frame(b, lane)
                assert (frame.payload, frame.lane, frame.sender) == (b"ping", lane, a.contact)
                await b.send(frame.sender, b"pong", lane=lane)
                assert (await self.next_frame(a, lane)).payload == b"pong"

    @check
    async def test_contact_can_be_reached(self) -> None:
        """The contact names the node and no wildcard."""
        endpoint = self.make("a")

        async def contact() -> Peer:
            return endpoint.contact

        await self.refused(ClosedError, contact(), "contact before start")
        async with endpoint:
            assert endpoint.contact.id == "a"
            assert not endpoint.contact.address.endswith(":0")
            assert "0.0.0.0" not in endpoint.contact.address

    @check
    async def test_any_bytes(self) -> None:
        """Payloads cross unchanged: empty, every byte value, the largest."""
        async with self.endpoints("a", "b") as (a, b):
            largest = bytes(range(256)) * (a.guarantees.max_frame_bytes // 256)
            for payload in (b"", bytes(range(256)), b"\0" * 1000, largest):
                for lane in Lane:
                    await a.send(b.contact, payload, lane=lane)
                    assert (await self.next_frame(b, lane)).payload == payload

    @check
    async def test_to_oneself(self) -> None:
        """An endpoint is a peer like any other, for itself too."""
        async with self.endpoints("a") as (a,):
            await a.send(a.contact, b"note", lane=Lane.CONTROL)
            assert (await self.next_frame(a, Lane.CONTROL)).payload == b"note"

    @check
    async def test_fifo_per_lane(self) -> None:
        """Frames of one lane keep their order, whatever goes on in the other."""
        async with self.endpoints("a", "b") as (a, b):
            sent = list(range(FIFO_FRAMES))

            async def send() -> None:
                for number in sent:
                    for lane in Lane:
                        await a.send(b.contact, numbered(number), lane=lane)

            async with asyncio.TaskGroup() as group:
                group.create_task(send())
                readers = {
                    lane: group.create_task(self.payloads(b, lane, FIFO_FRAMES)) for lane in Lane
                }
            for reader in readers.values():
                got = numbers(reader.result())
                if a.guarantees.ordered:
                    assert got == sent, "frames of one lane arrived out of order"
                else:
                    assert sorted(got) == sent

    @check
    async def test_each_frame_once(self) -> None:
        """Nothing arrives twice, unless duplicates are declared."""
        async with self.endpoints("a", "b") as (a, b):
            for number in range(100):
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
            got = numbers(await self.payloads(b, Lane.DATA, 100))
            got += numbers(await self.quiet(b, Lane.DATA))
            if not a.guarantees.duplicates:
                assert sorted(got) == list(range(100))

    @check
    async def test_peer_up(self) -> None:
        """A peer that speaks is announced on CONTROL before its first control frame."""
        async with self.endpoints("a", "b") as (a, b):
            await a.send(b.contact, b"hello", lane=Lane.CONTROL)
            first = await self.soon(b.receive(Lane.CONTROL), "PeerUp")
            assert first == PeerUp(a.contact)
            assert (await self.next_frame(b, Lane.CONTROL)).payload == b"hello"

    @check
    async def test_one_receiver_per_lane(self) -> None:
        """A second receiver is told at once; the first goes on."""
        async with self.endpoints("a", "b") as (a, b):
            first = asyncio.create_task(self.next_frame(b, Lane.DATA))
            await asyncio.sleep(0)
            await self.refused(BusyError, b.receive(Lane.DATA), "a second receiver on one lane")
            await a.send(b.contact, b"for the first", lane=Lane.DATA)
            assert (await first).payload == b"for the first"

    @check
    async def test_oversized_frame(self) -> None:
        """A frame over the limit is refused, with the limit in the message."""
        async with self.endpoints("a", "b") as (a, b):
            too_large = bytes(a.guarantees.max_frame_bytes + 1)

            async def send_nowait() -> None:
                a.send_nowait(b.contact, too_large, lane=Lane.DATA)

            async def send() -> None:
                await a.send(b.contact, too_large, lane=Lane.DATA)

            for attempt in (send, send_nowait):
                error = await self.refused(FrameTooLarge, attempt(), "a frame over the limit")
                assert str(a.guarantees.max_frame_bytes) in str(error)
            await a.send(b.contact, b"small", lane=Lane.DATA)
            assert (await self.next_frame(b, Lane.DATA)).payload == b"small"

    @check
    async def test_statistics_count(self) -> None:
        """What went through is counted."""
        async with self.endpoints("a", "b") as (a, b):
            for _ in range(7):
                await a.send(b.contact, b"12345", lane=Lane.DATA)
            await self.payloads(b, Lane.DATA, 7)
            sent, got = a.statistics().lanes[Lane.DATA], b.statistics().lanes[Lane.DATA]
            assert (sent.accepted_frames, sent.accepted_bytes) == (7, 35)
            assert got.received_frames >= 7
            assert got.receive_queue_frames == 0
            assert b.statistics().peers_up >= 1

    @check
    async def test_many_peers_at_once(self) -> None:
        """Many peers ask one endpoint at the same time, and each gets its own answer."""
        names = [f"p{number}" for number in range(self.peers_at_once)]
        async with self.endpoints("hub", *names) as (hub, *peers):

            async def serve() -> None:
                for _ in peers:
                    frame = await self.next_frame(hub, Lane.DATA)
                    await hub.send(frame.sender, b"re: " + frame.payload, lane=Lane.DATA)

            async with asyncio.TaskGroup() as group:
                group.create_task(serve())
                for peer in peers:
                    question = peer.contact.id.encode()
                    await peer.send(hub.contact, question, lane=Lane.DATA)
            for peer in peers:
                answer = (await self.next_frame(peer, Lane.DATA)).payload
                assert answer == b"re: " + peer.contact.id.encode()
