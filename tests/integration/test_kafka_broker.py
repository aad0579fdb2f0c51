"""Brokers that stop, die, hang and come back in mid-stream: nothing is lost, nothing hangs."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsp.core.types import Lane
from dsp.errors import EndOfStream, WouldBlock
from dsp.testing.contract.harness import numbers
from dsp.testing.kafka import BrokerOptions, KafkaBroker, start_broker, start_cluster
from dsp.transport.base import Frame, HealthState, Transport, Undelivered
from tests.contract.kafka_contract import fresh_prefix
from tests.integration.kafka_stream import endpoints, stream

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def broker(kafka_broker: object) -> Iterator[KafkaBroker]:
    """A broker of our own, since we stop it; where the session has none, there is none for us."""
    with start_broker() as own:
        yield own


def url_of(*brokers: KafkaBroker) -> str:
    return f"kafka://{','.join(broker.bootstrap for broker in brokers)}/{fresh_prefix()}"


async def eventually(condition: Callable[[], bool], what: str, patience: float = 30.0) -> None:
    try:
        async with asyncio.timeout(patience):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"not within {patience} s: {what}")


async def undelivered(endpoint: Transport) -> list[int]:
    """Give the numbers of the frames that a closed endpoint could not deliver."""
    found: list[int] = []
    while True:
        try:
            inbound = await endpoint.receive(Lane.CONTROL)
        except EndOfStream:
            return found
        if isinstance(inbound, Undelivered):
            found += numbers(inbound.payloads)


async def degraded(endpoint: Transport) -> None:
    await eventually(
        lambda: endpoint.health().state in (HealthState.DEGRADED, HealthState.STALLED),
        "a health that says that the broker is away",
    )
    assert any("broker" in problem for problem in endpoint.health().problems)


async def test_a_broker_goes_and_returns_in_mid_stream(broker: KafkaBroker) -> None:
    """An orderly stop, and a kill -9: all frames arrive, once and in order."""
    async with endpoints("a", "b", url=url_of(broker)) as (a, b), stream(a, b) as flow:
        for end in (broker.stop, broker.kill):
            await asyncio.to_thread(end)
            await degraded(a)
            await asyncio.to_thread(broker.start)
            await flow.passed(200)
            await eventually(lambda: a.health().state is HealthState.OK, "health again")


async def test_a_full_queue_holds_the_sender_back_while_the_broker_is_away(
    broker: KafkaBroker,
) -> None:
    """No loss and no hang: send waits, CONTROL too in its turn; closing reports what is left."""
    small = {"send_queue_frames": 8, "drain_timeout": 0.3}
    async with endpoints("a", "b", url=url_of(broker), **small) as (a, b):
        await a.send(b.contact, (0).to_bytes(8, "big"), lane=Lane.DATA)
        inbound = await b.receive(Lane.DATA)
        assert isinstance(inbound, Frame)
        await asyncio.to_thread(broker.kill)
        try:
            sent = 0
            try:
                while sent < 100:
                    async with asyncio.timeout(1.0):
                        await a.send(b.contact, (sent + 1).to_bytes(8, "big"), lane=Lane.DATA)
                    sent += 1
            except TimeoutError:
                pass
            assert 8 <= sent <= 16, f"{sent} were accepted by a queue of 8 and 8 in flight"
            with pytest.raises(WouldBlock):
                a.send_nowait(b.contact, b"one more", lane=Lane.DATA)
            assert a.health().unacknowledged_frames > 0
            async with asyncio.timeout(10):
                await a.aclose()
                assert await undelivered(a) == list(range(1, sent + 1))
        finally:
            await asyncio.to_thread(broker.start)


async def test_a_broker_that_hangs_is_noticed(broker: KafkaBroker) -> None:
    """Stopped as it stands (SIGSTOP), it answers nothing; then it goes on, and so do we."""
    async with endpoints("a", "b", url=url_of(broker)) as (a, b), stream(a, b) as flow:
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            await degraded(a)
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        await flow.passed(200)
        await eventually(lambda: a.health().state is HealthState.OK, "health again")


@pytest.fixture
def small_disk(tmp_path: Path, kafka_broker: object) -> Iterator[Path]:
    """A file system with little room, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    tried = subprocess.run(mount, capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {tried.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


async def test_a_broker_whose_disk_is_full(small_disk: Path) -> None:
    """It ends itself: health tells, the sender is held back; with room again, all arrives."""
    room = ["mount", "-o", "remount,size=512m", str(small_disk)]
    with start_broker(BrokerOptions(data=small_disk)) as broker:
        async with (
            endpoints("a", "b", url=url_of(broker), send_queue_frames=16) as (a, b),
            stream(a, b, size=100_000) as flow,
        ):
            await degraded(a)
            await eventually(lambda: is_full(a), "a queue that takes no more")
            await asyncio.to_thread(broker.stop)
            assert "No space left on device" in broker.log
            await asyncio.to_thread(subprocess.run, room, check=True)
            await asyncio.to_thread(broker.start)
            await flow.passed(200)
            await eventually(lambda: a.health().state is HealthState.OK, "health again")


def is_full(sender: Transport) -> bool:
    """Tell whether the DATA lane of a sender that runs takes no more."""
    queued = sender.statistics().lanes[Lane.DATA].send_queue_frames
    return queued >= 16 and sender.health().unacknowledged_frames > 0


async def test_a_receiver_resumes_after_what_it_was_done_with(broker: KafkaBroker) -> None:
    """What was received and not done comes again to the next incarnation, and no more."""
    url = url_of(broker)
    async with endpoints("a", url=url) as (a,):
        async with endpoints("b", url=url) as (b,):
            to = b.contact
            for number in range(10):
                await a.send(to, number.to_bytes(8, "big"), lane=Lane.DATA)
            frames = [await b.receive(Lane.DATA) for _ in range(10)]
            for index in (0, 1, 2, 5, 9, 3):  # 4 is open: up to 3 can be forgotten
                frame = frames[index]
                assert isinstance(frame, Frame)
                b.done(frame)
        # Away, it misses nothing.
        for number in range(10, 12):
            await a.send(to, number.to_bytes(8, "big"), lane=Lane.DATA)
        async with endpoints("b", url=url) as (b,):
            got: list[int] = []
            while len(got) < 8:
                inbound = await b.receive(Lane.DATA)
                if isinstance(inbound, Frame):
                    got += numbers([inbound.payload])
            assert got == list(range(4, 12))


async def test_three_brokers_of_which_one_dies(kafka_broker: object) -> None:
    """Three copies, two of which must have a record: the death of a broker loses nothing."""
    kafka = {"replication_factor": 3, "min_insync_replicas": 2}
    with start_cluster(3) as brokers:
        url = url_of(*brokers)
        async with (
            endpoints("a", "b", url=url, kafka=kafka) as (a, b),
            stream(a, b) as flow,
        ):
            await asyncio.to_thread(brokers[0].kill)
            await flow.passed(1000)
            await eventually(lambda: a.health().state is HealthState.OK, "health again")
