"""Checks of the contract: closing, aborting, and calls at the wrong time."""

import asyncio
from typing import Any

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, EndOfStream
from dsp.testing.contract.harness import ContractHarness, check, numbered, numbers
from dsp.transport.base import Frame, Undelivered

__all__ = ["ClosingContract"]


class ClosingContract(ContractHarness):
    """How a transport ends."""

    @check
    async def test_close_hands_over_what_was_accepted(self) -> None:
        """Frames accepted just before the close arrive."""
        async with self.endpoints("b") as (b,):
            async with self.make("a") as a:
                for number in range(500):
                    await a.send(b.contact, numbered(number), lane=Lane.DATA)
            assert numbers(await self.payloads(b, Lane.DATA, 500)) == list(range(500))

    @check
    async def test_close_reports_what_it_could_not_hand_over(self) -> None:
        """Frames for a peer that is not there come back as Undelivered, then the stream ends."""
        a = self.make("a", drain_timeout=0.2)
        async with a:
            if a.guarantees.durable:
                return
            absent = await self._absent_peer()
            for number in range(3):
                await a.send(absent, numbered(number), lane=Lane.DATA)
        reports = [
            inbound
            for inbound in await self.remaining(a, Lane.CONTROL)
            if isinstance(inbound, Undelivered)
        ]
        lost = [payload for report in reports for payload in report.payloads]
        assert numbers(lost) == [0, 1, 2], f"three frames were lost, {len(lost)} reported"
        assert a.statistics().lanes[Lane.DATA].undelivered_frames == 3

    async def _absent_peer(self) -> Peer:
        async with self.endpoints("absent") as (absent,):
            return absent.contact

    @check
    async def test_close_during_receive(self) -> None:
        """A waiting receiver learns that the stream ended."""
        async with self.endpoints("a") as (a,):
            waiting = {lane: asyncio.create_task(a.receive(lane)) for lane in Lane}
            await asyncio.sleep(0)
            await a.aclose()
            for task in waiting.values():
                await self.refused(EndOfStream, self._outcome(task), "receive during close")

    @check
    async def test_close_during_send(self) -> None:
        """A sender that waits for room learns that we closed."""
        async with self.endpoints("a", "b", **self.small_queues) as (a, b):
            await self.clog(a, b.contact)
            waiting = asyncio.create_task(a.send(b.contact, bytes(64 * 1024), lane=Lane.DATA))
            await asyncio.sleep(0)
            await a.aclose()
            await self.refused(ClosedError, self._outcome(waiting), "send during close")

    @check
    async def test_received_before_close_is_not_lost(self) -> None:
        """What was in the inbox is still received after the close, then the stream ends."""
        async with self.endpoints("a", "b") as (a, b):
            for number in range(5):
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
            await self.eventually(
                lambda: b.statistics().lanes[Lane.DATA].received_frames == 5, "five frames"
            )
            await b.aclose()
            assert numbers(await self.payloads(b, Lane.DATA, 5)) == list(range(5))
            await self.refused(EndOfStream, b.receive(Lane.DATA), "receive after the end")
            await self.refused(EndOfStream, b.receive(Lane.DATA), "receive after the end, again")

    @check
    async def test_double_close(self) -> None:
        """Closing twice, and at the same time, is closing once."""
        async with self.endpoints("a") as (a,):
            await asyncio.gather(a.aclose(), a.aclose())
            await a.aclose()
            a.abort()

    @check
    async def test_abort(self) -> None:
        """Abort ends everything at once; the address is free again."""
        async with self.endpoints("a", "b") as (a, b):
            waiting = asyncio.create_task(a.receive(Lane.DATA))
            await asyncio.sleep(0)
            a.abort()
            a.abort()
            await self.refused(ClosedError, self._outcome(waiting), "receive during abort")
            await self.refused(ClosedError, a.receive(Lane.DATA), "receive after abort")
            await self.refused(
                ClosedError, a.send(b.contact, b"", lane=Lane.DATA), "send after abort"
            )
            async with self.endpoints("a") as (again,):
                await b.send(again.contact, b"hello again", lane=Lane.DATA)
                assert (await self.next_frame(again, Lane.DATA)).payload == b"hello again"

    @check
    async def test_retire_leaves_nothing_behind(self) -> None:
        """In any state, and again; what waited for the id, read or not, is gone with it."""
        never = self.make("never")
        await self.soon(never.retire(), "retiring what was never started")
        async with self.endpoints("a") as (a,):
            async with self.endpoints("b") as (b,):
                for number in range(3):
                    await a.send(b.contact, numbered(number), lane=Lane.DATA)
                frame = await self.soon(b.receive(Lane.DATA), "a frame")  # and it is never done
                assert isinstance(frame, Frame)
                await self.soon(b.retire(), "retiring")
                await self.soon(b.retire(), "retiring again")
                await self.refused(
                    ClosedError, b.send(a.contact, b"", lane=Lane.DATA), "send after retiring"
                )
            async with self.endpoints("c", "b") as (c, again):
                await c.send(again.contact, numbered(9), lane=Lane.DATA)
                got = numbers(await self.payloads(again, Lane.DATA, 1))
                assert got == [9], f"{got[0]} was sent to the one that is gone for good"

    @check
    async def test_calls_at_the_wrong_time(self) -> None:
        """Before start and after close, calls say so."""
        peer = Peer(NodeId("b"), "nowhere")
        a = self.make("a")
        await self.refused(ClosedError, a.send(peer, b"", lane=Lane.DATA), "send before start")
        await self.refused(ClosedError, a.receive(Lane.DATA), "receive before start")
        async with a:
            await self.refused(ClosedError, a.start(), "a second start")
        await self.refused(ClosedError, a.send(peer, b"", lane=Lane.DATA), "send after close")
        await self.refused(ClosedError, a.start(), "start after close")
        never = self.make("c")
        await self.soon(never.aclose(), "closing what was never started")

    async def _outcome(self, task: "asyncio.Task[Any]") -> Any:  # noqa: ANN401
        return await task
