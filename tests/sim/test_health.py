"""What an endpoint says about itself, and what it notices by itself; in virtual time."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, StalledError
from dsp.testing.contract.harness import numbered, numbers
from dsp.transport.base import Frame, HealthState, Transport, TransportHealth, Undelivered
from dsp.transport.registry import create_transport
from dsp.transport.session import create_session
from dsp.transport.sim.network import SimNetwork
from dsp.transport.sim.virtual_time import VirtualTimeLoop

STALL_AFTER = 10.0
LONG = 600.0
QUEUE = 8
B = Peer(NodeId("b"), "sim://world/b")

Make = Callable[[TransportConfig, NodeId], Transport]


def run(main: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(main)


def config(node: str) -> TransportConfig:
    return TransportConfig(
        url=f"sim://world/{node}",
        send_queue_frames=QUEUE,
        receive_queue_frames=QUEUE,
        stall_after=STALL_AFTER,
        drain_timeout=0.0,
    )


@pytest.fixture(params=[create_transport, create_session], ids=["adapter", "session"])
def make(request: pytest.FixtureRequest) -> Callable[[str], Transport]:
    factory: Make = request.param
    return lambda node: factory(config(node), NodeId(node))


async def fill(sender: Transport, to: Peer = B) -> int:
    """Send until ``send`` waits for a virtual second; give how many were accepted."""
    for number in range(1000):
        try:
            async with asyncio.timeout(1.0):
                await sender.send(to, numbered(number), lane=Lane.DATA)
        except TimeoutError:
            return number
    raise AssertionError("send never waits")


async def read(endpoint: Transport, count: int) -> list[int]:
    """Receive this many frames."""
    frames = [await endpoint.receive(Lane.DATA) for _ in range(count)]
    return numbers(frame.payload for frame in frames if isinstance(frame, Frame))


def only_link(health: TransportHealth) -> Any:  # noqa: ANN401
    (link,) = health.links
    return link


def reports(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says about frames that do not move."""
    texts = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [text for text in texts if "none has moved" in text]


def test_an_idle_endpoint_is_well(
    make: Callable[[str], Transport], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        endpoint = make("a")
        assert endpoint.health().state is HealthState.NEW
        async with endpoint:
            await asyncio.sleep(LONG)
            health = endpoint.health()
            assert (health.state, health.problems, health.links) == (HealthState.OK, (), ())
            assert health.last_progress is None
        assert endpoint.health().state is HealthState.CLOSED

    run(main())
    assert reports(caplog) == []


def test_traffic_is_progress(make: Callable[[str], Transport]) -> None:
    async def main() -> None:
        async with make("a") as a, make("b") as b:
            await a.send(b.contact, numbered(0), lane=Lane.DATA)
            assert await read(b, 1) == [0]
            await asyncio.sleep(5.0)
            for endpoint in (a, b):
                health = endpoint.health()
                assert health.state is HealthState.OK
                assert health.last_progress == pytest.approx(5.0, abs=0.1)
            assert a.health().unacknowledged_frames == a.health().send_queue_frames == 0
            assert b.health().links == ()

    run(main())


def test_a_reader_that_never_reads_stalls_its_sender(
    make: Callable[[str], Transport], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with make("a") as a, make("b") as b:
            accepted = await fill(a)
            assert a.health().state is HealthState.OK, "it may read yet"
            await asyncio.sleep(2 * STALL_AFTER)
            assert len(reports(caplog)) == 1, "it was not asked, and told"
            await asyncio.sleep(LONG)
            health = a.health()
            assert health.state is HealthState.STALLED
            link = only_link(health)
            assert (link.peer, link.lane, link.connected) == (b.contact, Lane.DATA, True)
            assert link.stalled >= LONG
            assert link.waiting_frames == health.send_queue_frames == QUEUE
            assert b.health().receive_queue_frames == QUEUE + 1, "the frames, and a PeerUp"
            for endpoint in (a, b):
                assert (endpoint.health().last_progress or 0.0) >= LONG
            (problem,) = health.problems
            assert "b <sim://world/b> on data is connected, frames wait" in problem
            assert b.health().state is HealthState.OK
            # The send that was given up was accepted whole or not at all.
            assert await read(b, accepted) == list(range(accepted))
            await asyncio.sleep(1.0)
            health = a.health()
            assert (health.state, health.problems) == (HealthState.OK, ())
            assert only_link(health).stalled == 0.0
            assert len(reports(caplog)) == 1
            # The next time is news again.
            await fill(a)
            await asyncio.sleep(2 * STALL_AFTER)
            assert a.health().state is HealthState.STALLED
            assert len(reports(caplog)) == 2

    run(main())


def test_a_reader_that_is_slow_does_not_stall_its_sender(
    make: Callable[[str], Transport], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with make("a") as a, make("b") as b:
            accepted = await fill(a)
            for number in range(accepted):
                await asyncio.sleep(STALL_AFTER / 4)
                assert await read(b, 1) == [number]
                assert a.health().state is HealthState.OK

    run(main())
    assert reports(caplog) == []


def test_a_peer_that_is_away_degrades(
    make: Callable[[str], Transport], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with make("a") as a:
            await a.send(B, numbered(0), lane=Lane.DATA)
            await asyncio.sleep(2 * STALL_AFTER)
            health = a.health()
            assert health.state is HealthState.DEGRADED
            assert not only_link(health).connected
            (problem,) = health.problems
            assert "b <sim://world/b> on data is away" in problem
            async with make("b") as b:
                assert await read(b, 1) == [0]
                await asyncio.sleep(1.0)
                assert a.health().state is HealthState.OK

    run(main())
    assert ["is away" in text for text in reports(caplog)] >= [True]


def test_a_session_that_was_given_up_is_no_trouble() -> None:
    async def main() -> None:
        async with create_session(config("a"), NodeId("a")) as a:
            await a.send(B, numbered(0), lane=Lane.DATA)
            while not isinstance(back := await a.receive(Lane.CONTROL), Undelivered):
                pass
            assert back.payloads == (numbered(0),)
            await asyncio.sleep(LONG)
            health = a.health()
            assert (health.state, health.send_queue_frames) == (HealthState.OK, 0)

    run(main())


def test_frames_without_an_acknowledgement_are_counted() -> None:
    async def main() -> None:
        network = SimNetwork.of_running_loop("world")
        async with (
            create_session(config("a"), NodeId("a")) as a,
            create_session(config("b"), NodeId("b")) as b,
        ):
            await a.send(b.contact, numbered(0), lane=Lane.DATA)
            assert await read(b, 1) == [0]
            await asyncio.sleep(1.0)
            network.partition("b", "a", oneway=True)
            for number in range(1, 4):
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
            assert await read(b, 3) == [1, 2, 3]
            await asyncio.sleep(1.0)
            health = a.health()
            assert health.unacknowledged_frames == only_link(health).unacknowledged_frames == 3
            assert health.send_queue_frames == 0
            network.repair("b", "a", oneway=True)
            await asyncio.sleep(5.0)
            assert a.health().unacknowledged_frames == 0
            assert a.health().state is HealthState.OK

    run(main())


def test_an_endpoint_that_broke_says_why(make: Callable[[str], Transport]) -> None:
    async def main() -> None:
        a = make("a")
        await a.start()
        a._fail(RuntimeError("the disk is full"))  # type: ignore[attr-defined]
        health = a.health()
        assert health.state is HealthState.FAILED
        assert health.problems == ("RuntimeError('the disk is full')",)
        with pytest.raises(ClosedError, match="the disk is full"):
            await a.send(B, b"", lane=Lane.DATA)

    run(main())


def test_an_adapter_that_broke_breaks_its_session() -> None:
    async def main() -> None:
        a = create_session(config("a"), NodeId("a"))
        await a.start()
        a._adapter._fail(RuntimeError("the disk is full"))  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        health = a.health()
        assert health.state is HealthState.FAILED
        assert "the disk is full" in "".join(health.problems)

    run(main())


def test_the_watchdog_keeps_no_program_alive() -> None:
    """A program that can never go on is seen, though its transport watches over waiting frames."""

    async def main() -> None:
        async with (
            create_transport(config("a"), NodeId("a")) as a,
            create_transport(config("b"), NodeId("b")) as b,
        ):
            while True:
                await a.send(b.contact, b"", lane=Lane.DATA)

    with pytest.raises(StalledError):
        run(main())
