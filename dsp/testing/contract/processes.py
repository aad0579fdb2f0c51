"""Checks of the contract that need real processes: killed or stopped at any moment."""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dsp.core.types import Lane
from dsp.testing.contract.child import REGISTRY
from dsp.testing.contract.child_process import REPORT_BYTES, ChildProcess
from dsp.testing.contract.harness import (
    CLOG_FRAME,
    CLOG_MOST,
    ContractHarness,
    check,
    numbered,
    numbers,
)
from dsp.testing.contract.pressure import MOST_GROWTH, _resident_bytes
from dsp.testing.contract.streams import FINAL, FRAME, Stream, check_sequence
from dsp.transport.base import Transport

__all__ = ["ProcessHarness", "ProcessContract"]

# Numbers of one incarnation of a sender: more than it can send before it is killed.
EACH = 10_000_000
# Sent to a stopped receiver: where a log keeps them, and on CONTROL beside a full DATA lane.
DURABLE_FRAMES = 64
STOPPED_CONTROL = 3
# A reader that never reads: both processes stay below this, as the operating system counts.
MOST_RESIDENT = 200 * 1024 * 1024


class ProcessHarness(ContractHarness):
    """How to make endpoints in processes of their own.

    Attributes:
        kills: how often a process is killed, per check.
        stops: how often a process is stopped, per check.
        burst: frames that flow before a kill; different from kill to kill, this at least.
        factory: ``module:function`` that makes an endpoint in a child process from its
            configuration and node id. The child imports what this process can import.
    """

    patience: float = 30.0
    kills: int = 3
    stops: int = 2
    burst: int = 100
    factory: str = REGISTRY

    def child_settings(self, node: str, **settings: Any) -> dict[str, Any]:  # noqa: ANN401
        """Give the transport's table for a child, as JSON can carry it."""
        return self.config(node, **settings).model_dump(mode="json", exclude_unset=True)

    @asynccontextmanager
    async def child(
        self,
        node: str,
        *,
        reads: bool = True,
        **settings: Any,  # noqa: ANN401
    ) -> AsyncIterator[ChildProcess]:
        """Start a process with an endpoint; at the end it is killed, if it has not ended.

        Args:
            reads: whether it receives what comes in on DATA.
            settings: of its transport.
        """
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dsp.testing.contract.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=REPORT_BYTES,
            env={**os.environ, "PYTHONPATH": path},
        )
        child = ChildProcess(node, process, self.patience)
        try:
            transport = self.child_settings(node, **settings)
            order = {"node": node, "factory": self.factory, "transport": transport}
            child.tell({**order, "reads": reads})
            await child.ready()
            yield child
        finally:
            await child.kill()

    def frames_before(self, round_: int) -> int:
        """How many frames flow before the kill or stop of a round."""
        return self.burst * (1 + round_ % 5)


class ProcessContract(ProcessHarness):
    """What is asked of a transport whose endpoints live in processes of their own."""

    @check
    async def test_receiver_is_killed_and_returns(self) -> None:
        """A receiver dies in mid-stream and returns, again and again; the stream goes on.

        Each incarnation gets frames in order and without gaps, and the last gets all to the end.
        """
        incarnations: list[list[int]] = []
        stream = Stream()
        async with (
            self.endpoints("sender", **self.small_queues) as (sender,),
            asyncio.TaskGroup() as group,
        ):
            for round_ in range(self.kills + 1):
                async with self.child("receiver", **self.small_queues) as child:
                    if round_ == 0:
                        group.create_task(stream.run(sender, child.peer))
                    incarnations.append(child.frames[Lane.DATA])
                    await child.received(self.frames_before(round_))
                    if round_ == self.kills:
                        await self._last_words(stream, child)
                    assert child.sizes == {len(FRAME)}, "a torn frame"
        for round_, got in enumerate(incarnations):
            check_sequence(got, sender.guarantees, f"incarnation {round_}")
        if sender.guarantees.durable:
            lost = set(range(stream.accepted)).difference(*incarnations)
            assert not lost, f"durable, and lost {sorted(lost)[:10]}"

    async def _last_words(self, stream: "Stream", child: ChildProcess) -> None:
        """End the stream; check that its last frames arrive."""
        await self.soon(stream.end(), "the last frames to be accepted")
        final = set(range(stream.accepted - FINAL, stream.accepted))
        await child.until(lambda: final <= child.seen[Lane.DATA], "the final frames")
        await child.close()

    @check
    async def test_sender_is_killed_and_returns(self) -> None:
        """A sender dies in mid-stream and returns; what arrives from each incarnation is sound."""
        got: dict[int, list[int]] = defaultdict(list)
        async with self.endpoints("receiver", **self.small_queues) as (receiver,):
            for round_ in range(self.kills + 1):
                is_last = round_ == self.kills
                async with self.child("sender", **self.small_queues) as child:
                    count = FINAL if is_last else EACH
                    child.send(receiver.contact, first=round_ * EACH, count=count)
                    enough = FINAL if is_last else self.frames_before(round_)
                    while len(set(got[round_])) < enough:
                        frame = await self.next_frame(receiver, Lane.DATA)
                        assert len(frame.payload) == len(FRAME), "a torn frame"
                        incarnation, number = divmod(numbers([frame.payload])[0], EACH)
                        got[incarnation].append(number)
                    if is_last:
                        await child.until(child.has_sent, "its report that all is sent")
                        await child.close()
        for round_, sequence in got.items():
            check_sequence(sequence, receiver.guarantees, f"incarnation {round_}", first=0)

    @check
    async def test_receiver_is_stopped_and_goes_on(self) -> None:
        """A receiver is stopped: its sender comes to wait, others are served; then all arrives."""
        async with (
            self.endpoints("sender", "other", **self.small_queues) as (sender, other),
            self.child("receiver", **self.small_queues) as child,
        ):
            data = control = 0
            for _ in range(self.stops):
                # Something arrives first, so that it is an open link which comes to a stop.
                await sender.send(child.peer, numbered(data, CLOG_FRAME), lane=Lane.DATA)
                await sender.send(child.peer, numbered(control), lane=Lane.CONTROL)
                data, control = data + 1, control + 1
                await child.received(data)
                await child.received(control, Lane.CONTROL)
                await child.stop()
                data = await self._press(sender, other, child, data, control)
                control += STOPPED_CONTROL
                await child.received(data)
                await child.received(control, Lane.CONTROL)
            await child.close()
        check_sequence(child.frames[Lane.DATA], sender.guarantees, "DATA", first=0)
        check_sequence(child.frames[Lane.CONTROL], sender.guarantees, "CONTROL", first=0)
        assert child.seen == {Lane.DATA: set(range(data)), Lane.CONTROL: set(range(control))}
        assert child.sizes <= {len(CLOG_FRAME), len(numbered(0))}, "a torn frame"

    @check
    async def test_a_reader_that_never_reads_in_bounded_memory(self) -> None:
        """Queues of the usual size fill up, the sender comes to wait, neither process grows."""
        for size in (len(FRAME), len(CLOG_FRAME), 1024 * 1024):
            async with self.child("sender") as sender, self.child("reader", reads=False) as reader:
                sender.send(reader.peer, first=0, count=EACH, size=size, grace=self.grace)
                if self.make("other").guarantees.durable:
                    return  # a log in between takes whatever comes
                await sender.until(sender.has_clogged, "a send that waits")
                for child in (sender, reader):
                    peak = child.peak_resident_bytes()
                    assert peak < MOST_RESIDENT, f"{child.node} took {peak >> 20} MiB"

    async def _press(
        self, sender: Transport, other: Transport, child: ChildProcess, data: int, control: int
    ) -> int:
        """Send to a stopped child until ``send`` waits, then let it go on; give the next number."""
        before = _resident_bytes()
        async with asyncio.TaskGroup() as group:
            durable = sender.guarantees.durable
            most = DURABLE_FRAMES if durable else CLOG_MOST
            end = data + most
            waits = False
            while data < end and not waits:
                frame = numbered(data, CLOG_FRAME)
                task = group.create_task(sender.send(child.peer, frame, lane=Lane.DATA))
                # A log may be slow to take a frame, and takes it all the same.
                patience = self.patience if durable else self.grace
                _, pending = await asyncio.wait([task], timeout=patience)
                waits = bool(pending)
                data += 1
            assert waits != durable, (
                f"send never waits: {most} were accepted"
                if not durable
                else f"durable, and does not take {most} frames for a peer that is stopped"
            )
            queued = sender.statistics().lanes[Lane.DATA].send_queue_frames
            assert queued <= self.small_queues["send_queue_frames"]
            grown = _resident_bytes() - before
            assert grown < MOST_GROWTH, f"the process grew by {grown >> 20} MiB"
            for number in range(control, control + STOPPED_CONTROL):
                await self.soon(
                    sender.send(child.peer, numbered(number), lane=Lane.CONTROL),
                    "CONTROL to a peer whose DATA lane is full",
                )
            for number in range(20):
                await self.soon(
                    sender.send(other.contact, numbered(number), lane=Lane.CONTROL),
                    "CONTROL to another peer, beside one that is stopped",
                )
                await self.next_frame(other, Lane.CONTROL)
                await other.send(sender.contact, numbered(number), lane=Lane.CONTROL)
                await self.next_frame(sender, Lane.CONTROL)
            # The one that waited may go on even so: a system's buffers fill in several steps.
            child.resume()
            await self.soon(_ended(task), "the send that waited, once its peer goes on")
        return data


async def _ended(task: "asyncio.Task[None]") -> None:
    await asyncio.wait([task])
