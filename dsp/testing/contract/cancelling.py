"""Checks of the contract: a task that sends, receives, starts or closes is cancelled."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from dsp.core.types import Lane
from dsp.errors import ClosedError
from dsp.testing.contract.harness import CLOG_FRAME, ContractHarness, check, numbered, numbers
from dsp.transport.base import Frame

__all__ = ["CancellingContract"]

CANCELS = 300


class CancellingContract(ContractHarness):
    """What is left when a call is cancelled, at each of its awaits."""

    @check
    async def test_cancelled_receive_loses_nothing(self) -> None:
        """Receivers are cancelled all the time; every frame is received once, in order."""
        async with self.endpoints("a", "b") as (a, b):
            got: list[int] = []

            async def receive_one() -> None:
                inbound = await b.receive(Lane.DATA)
                if isinstance(inbound, Frame):
                    b.done(inbound)
                    got.extend(numbers([inbound.payload]))

            for number in range(CANCELS):
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
                if number % 3 == 0:
                    await asyncio.sleep(0.002)  # so that some receivers find a frame at once
                receiver = asyncio.create_task(receive_one())
                await _let_run(number % 7)
                await _cancel(receiver)
            got += numbers(await self.quiet(b, Lane.DATA))
            assert got == list(range(CANCELS)), f"lost {sorted(set(range(CANCELS)) - set(got))}"

    @check
    async def test_receive_cancelled_as_a_frame_arrives(self) -> None:
        """The cancel comes in the very step in which the receiver was woken."""
        async with self.endpoints("a", "b") as (a, b):
            got: list[int] = []
            for number in range(100):
                receiver = asyncio.create_task(b.receive(Lane.DATA))
                receiver.add_done_callback(lambda _: None)
                await asyncio.sleep(0)
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
                steps = 0
                before = b.statistics().lanes[Lane.DATA].received_frames
                while b.statistics().lanes[Lane.DATA].received_frames == before and steps < 10_000:
                    await asyncio.sleep(0 if steps < 100 else 0.001)
                    steps += 1
                receiver.cancel()
                await asyncio.wait([receiver])
                if not receiver.cancelled():
                    inbound = receiver.result()
                    assert isinstance(inbound, Frame)
                    got += numbers([inbound.payload])
            got += numbers(await self.quiet(b, Lane.DATA))
            assert got == list(range(100)), f"lost {sorted(set(range(100)) - set(got))}"

    @check
    async def test_cancelled_send_is_whole_or_nothing(self) -> None:
        """Senders that wait for room are cancelled; what was accepted arrives whole and once."""
        async with self.endpoints("a", "b", **self.small_queues) as (a, b):
            accepted = list(range(await self.clog(a, b.contact)))
            cancelled: list[int] = []
            got: list[int] = []
            first = len(accepted)
            for number in range(first, first + 40):
                payload = numbered(number, CLOG_FRAME)
                sender = asyncio.create_task(a.send(b.contact, payload, lane=Lane.DATA))
                await _let_run(number % 4)
                if number % 3 == 0:
                    got += numbers(await self.payloads(b, Lane.DATA, 1))
                await _let_run(number % 2)
                await _cancel(sender)
                (cancelled if sender.cancelled() else accepted).append(number)
            rest = await self.quiet(b, Lane.DATA)
            assert all(len(payload) == len(CLOG_FRAME) for payload in rest), "a torn frame"
            got += numbers(rest)
            assert len(got) == len(set(got)), "a frame came twice"
            missing = set(accepted) - set(got)
            assert not missing, f"accepted and lost: {sorted(missing)}"
            assert set(got) <= set(accepted) | set(cancelled) | {first}
            await a.send(b.contact, b"still usable", lane=Lane.DATA)
            assert (await self.next_frame(b, Lane.DATA)).payload == b"still usable"

    @check
    async def test_cancel_start_at_each_await(self) -> None:
        """A start that is cancelled leaves nothing behind: the next one succeeds."""

        async def attempt() -> None:
            endpoint = self.make("a")
            try:
                await endpoint.start()
            finally:
                await endpoint.aclose()

        await self._at_each_await(attempt)
        async with self.endpoints("a", "b") as (a, b):
            await a.send(b.contact, b"alive", lane=Lane.DATA)
            assert (await self.next_frame(b, Lane.DATA)).payload == b"alive"

    @check
    async def test_cancel_close_at_each_await(self) -> None:
        """A close that is cancelled releases everything all the same."""
        for steps in self.cancel_steps:
            async with self.endpoints("b") as (b,):
                a = self.make("a")
                await a.start()
                await a.send(b.contact, b"last words", lane=Lane.DATA)
                closer = asyncio.create_task(a.aclose())
                await _let_run(steps)
                ended = closer.done()
                await _cancel(closer)
                await self.soon(a.aclose(), "closing again after a cancelled close")
                late = a.send(b.contact, b"too late", lane=Lane.DATA)
                await self.refused(ClosedError, late, "send on a closed transport")
                await self.remaining(a, Lane.CONTROL)
                if ended:
                    return

    async def _at_each_await(self, attempt: Callable[[], Coroutine[Any, Any, None]]) -> None:
        for steps in self.cancel_steps:
            task = asyncio.create_task(attempt())
            await _let_run(steps)
            if task.done():
                await task
                return
            await _cancel(task)


async def _let_run(steps: int) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


async def _cancel(task: "asyncio.Task[Any]") -> None:
    """Cancel a task and wait for its end; errors of its own come out."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
