"""Checks of the contract: a reader that is slow or does not read at all."""

import asyncio
import os

from dsp.core.types import Lane
from dsp.errors import WouldBlock
from dsp.testing.contract.harness import CLOG_FRAME, ContractHarness, check, numbered, numbers

__all__ = ["PressureContract"]

SLOW_FRAME = bytes(8 * 1024)
MOST_GROWTH = 48 * 1024 * 1024


class PressureContract(ContractHarness):
    """What a transport does when more comes in than goes out."""

    @check
    async def test_full_queue_waits_and_loses_nothing(self) -> None:
        """``send`` waits for a reader that does not read; what it accepted arrives all the same."""
        async with self.endpoints("a", "b", **self.small_queues) as (a, b):
            accepted = await self.clog(a, b.contact)
            got = numbers(await self.payloads(b, Lane.DATA, accepted))
            if a.guarantees.ordered:
                assert got == list(range(accepted))
            # The send that timed out may have been accepted in its last moment, no more than that.
            late = numbers(await self.quiet(b, Lane.DATA))
            assert late in ([], [accepted]), f"unknown frames {late}"

    @check
    async def test_send_nowait_says_that_it_would_block(self) -> None:
        """Where ``send`` waits, ``send_nowait`` raises, and accepts nothing."""
        async with self.endpoints("a", "b", **self.small_queues) as (a, b):
            accepted = await self.clog(a, b.contact)

            async def one_more() -> None:
                a.send_nowait(b.contact, numbered(accepted, CLOG_FRAME), lane=Lane.DATA)

            await self.refused(WouldBlock, one_more(), "one more frame for a full queue")
            assert len(await self.payloads(b, Lane.DATA, accepted)) == accepted

    @check
    async def test_clogged_data_does_not_delay_control(self) -> None:
        """A DATA lane that is full in both directions leaves CONTROL free."""
        async with self.endpoints("a", "b", **self.small_queues) as (a, b):
            await self.clog(a, b.contact)
            await self.clog(b, a.contact)
            for number in range(20):
                await self.soon(
                    a.send(b.contact, numbered(number), lane=Lane.CONTROL),
                    "sending CONTROL beside a full DATA lane",
                )
                frame = await self.next_frame(b, Lane.CONTROL)
                await b.send(frame.sender, frame.payload, lane=Lane.CONTROL)
                echoed = await self.next_frame(a, Lane.CONTROL)
                assert numbers([echoed.payload]) == [number]

    @check
    async def test_slow_peer_does_not_delay_others(self) -> None:
        """A full queue to one peer leaves the queues to others free."""
        async with self.endpoints("a", "slow", "quick", **self.small_queues) as (a, slow, quick):
            await self.clog(a, slow.contact)
            for number in range(50):
                await self.soon(
                    a.send(quick.contact, numbered(number), lane=Lane.DATA),
                    "sending to a peer that reads, beside one that does not",
                )
                got = numbers([(await self.next_frame(quick, Lane.DATA)).payload])
                assert got == [number]

    @check
    async def test_slow_reader_in_bounded_memory(self) -> None:
        """Thousands of frames to a slow reader: queues stay within their bounds, all arrive."""
        async with self.endpoints("a", "b", **self.small_queues) as (a, b):
            before = _resident_bytes()

            async def send() -> None:
                for number in range(self.slow_frames):
                    await a.send(b.contact, numbered(number, SLOW_FRAME), lane=Lane.DATA)

            got: list[int] = []
            worst = 0
            async with asyncio.TaskGroup() as group:
                group.create_task(send())
                for count in range(self.slow_frames):
                    if count % 500 == 0:
                        await asyncio.sleep(0.01)
                        worst = max(worst, _resident_bytes() - before)
                        queued = a.statistics().lanes[Lane.DATA].send_queue_frames
                        assert queued <= self.small_queues["send_queue_frames"]
                        waiting = b.statistics().lanes[Lane.DATA].receive_queue_bytes
                        assert waiting <= self.small_queues["receive_queue_bytes"]
                    got += numbers([(await self.next_frame(b, Lane.DATA)).payload])
            if a.guarantees.ordered:
                assert got == list(range(self.slow_frames))
            assert len(set(got)) == self.slow_frames
            assert worst < MOST_GROWTH, f"the process grew by {worst >> 20} MiB"

    @check
    async def test_senders_share_a_slow_reader(self) -> None:
        """Two senders to one slow reader both make progress."""
        async with self.endpoints("a", "b", "reader", **self.small_queues) as (a, b, reader):

            async def send(index: int) -> None:
                sender = (a, b)[index]
                for number in range(300):
                    payload = numbered(index * 1000 + number, CLOG_FRAME)
                    await sender.send(reader.contact, payload, lane=Lane.DATA)

            async with asyncio.TaskGroup() as group:
                for index in range(2):
                    group.create_task(send(index))
                got = numbers(await self.payloads(reader, Lane.DATA, 600))
            for index in range(2):
                mine = [number for number in got if number // 1000 == index]
                assert mine == [index * 1000 + number for number in range(300)]


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
