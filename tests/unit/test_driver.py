"""The driver: readers, timer, effects in order, waiters, backlogs, and ends that are noticed."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from dsp.config import TransportConfig
from dsp.core.driver import MachineDriver, Step
from dsp.core.machine import (
    Cancelled,
    Fail,
    PeerAppeared,
    PeerLost,
    Received,
    Reject,
    Resolve,
    Send,
    SendFailed,
    Tick,
)
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import (
    ClosedError,
    CodecError,
    InvariantError,
    LocalProtocolError,
    OverloadError,
    ProtocolError,
)
from dsp.testing import Host, World
from dsp.transport.base import Transport
from dsp.transport.registry import create_transport


class TextCodec:
    """Messages are strings."""

    def encode(self, message: Any) -> bytes:  # noqa: ANN401
        return str(message).encode()

    def decode(self, data: bytes) -> Hashable:
        if data.startswith(b"\xff"):
            raise CodecError("not a text")
        return data.decode()


@dataclass(frozen=True)
class Do:
    """Perform these effects."""

    effects: tuple[object, ...]


@dataclass
class Script:
    """A machine that notes its events and answers with what the test prepared."""

    seen: list[object] = field(default_factory=list)
    deadline: float | None = None
    answers: dict[object, list[object]] = field(default_factory=dict)
    broken: bool = False

    def handle(self, event: object, now: float) -> Sequence[object]:
        if isinstance(event, Received) and event.message == "poison":
            raise ZeroDivisionError("poisoned")
        if event == "not now":
            raise LocalProtocolError("not in this state")
        self.seen.append(event)
        if isinstance(event, Tick):
            self.deadline = None
        if isinstance(event, Do):
            return event.effects
        return self.answers.get(event, [])

    def next_deadline(self) -> float | None:
        return self.deadline

    def check_invariants(self) -> None:
        if self.broken:
            raise InvariantError("broken")

    def state(self) -> Hashable:
        return tuple(map(repr, self.seen))

    def restore(self, state: Hashable) -> None:
        raise AssertionError("nobody explores this machine")

    def describe(self) -> Mapping[str, object]:
        return {"seen": len(self.seen)}


def host_of(script: Callable[["MachineDriver[Any, Any]"], Awaitable[None]], **options: Any) -> Any:  # noqa: ANN401
    """Make a host that runs a machine under a script."""

    async def main(host: Host) -> None:
        config = TransportConfig(url=host.url, send_queue_frames=2, receive_queue_frames=2)
        async with create_transport(config, host.name) as transport:
            machine = options.pop("machine", None) or Script()
            driver: MachineDriver[Any, Any] = MachineDriver(
                machine, transport, TextCodec(), **options
            )
            async with driver:
                await script(driver)

    return main


async def for_ever(_: "MachineDriver[Any, Any]") -> None:
    await asyncio.Event().wait()


async def speak(host: Host, *texts: bytes, lane: Lane = Lane.CONTROL) -> Transport:
    transport = create_transport(TransportConfig(url=host.url), host.name)
    await transport.start()
    for text in texts:
        await transport.send(host.world.hosts["node"].peer, text, lane=lane)
    return transport


async def test_messages_events_and_answers(world: World) -> None:
    machine = Script()
    machine.answers[Received(NodeId("peer"), "ping")] = [Send(NodeId("peer"), "pong")]
    world.add_host("node", host_of(for_ever, machine=machine))
    answers: list[object] = []

    async def peer(host: Host) -> None:
        transport = await speak(host, b"ping", b"\xff\xff")
        while not answers:
            inbound = await transport.receive(Lane.CONTROL)
            if hasattr(inbound, "payload"):
                answers.append(inbound.payload)
        await transport.aclose()

    world.add_host("peer", peer)
    await world.until(lambda: PeerLost(NodeId("peer")) in machine.seen)
    assert answers == [b"pong"]
    assert machine.seen == [
        PeerAppeared(NodeId("peer")),
        Received(NodeId("peer"), "ping"),
        PeerLost(NodeId("peer")),
    ]


async def test_garbage_and_rejects_are_counted(world: World) -> None:
    counts: list[int] = []

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        driver.submit(Do((Reject(NodeId("x"), "nonsense"),)))
        await asyncio.sleep(10)
        counts.append(driver.rejected)

    async def stranger(host: Host) -> None:
        transport = await speak(host, b"\xff")
        await transport.aclose()

    world.add_host("node", host_of(script))
    world.add_host("stranger", stranger)
    await world.until(lambda: bool(counts))
    assert counts == [2]


async def test_the_timer_follows_the_deadline(world: World) -> None:
    times: list[float] = []

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        machine: Any = driver.machine
        for deadline in (5.0, 2.0, 9.0):
            machine.deadline = deadline
            driver.submit(f"deadline {deadline}")
            await asyncio.sleep(0.5)
        await asyncio.sleep(20)
        times.extend(step.time for step in driver.history if step.event == Tick())

    world.add_host("node", host_of(script))
    await world.until(lambda: world.hosts["node"].finished)
    assert times == [pytest.approx(9.0)], "a later deadline replaces an earlier one"


async def test_a_deadline_in_the_past_fires_at_once(world: World) -> None:
    seen: list[object] = []

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        await asyncio.sleep(5)
        machine: Any = driver.machine
        machine.deadline = 1.0
        driver.submit("late")
        await asyncio.sleep(0.001)
        seen.extend(machine.seen)

    world.add_host("node", host_of(script))
    await world.until(lambda: bool(seen))
    assert seen == ["late", Tick()]


async def test_effects_are_performed_in_order_and_one_at_a_time(world: World) -> None:
    log: list[str] = []

    async def perform(effect: object) -> None:
        log.append(f"begin {effect}")
        await asyncio.sleep(1)
        log.append(f"end {effect}")

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        driver.submit(Do(("a", "b")))
        driver.submit(Do(("c",)))

    world.add_host("node", host_of(script, perform=perform))
    await world.until(lambda: world.hosts["node"].finished)
    assert log == [f"{what} {name}" for name in "abc" for what in ("begin", "end")]


async def test_requests_resolve_fail_and_are_withdrawn(world: World) -> None:
    outcomes: list[object] = []

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        outcomes.append(await driver.ask(lambda token: Do((Resolve(token, "granted"),))))
        with pytest.raises(ProtocolError, match="refused"):
            await driver.ask(lambda token: Do((Fail(token, "refused"),)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await driver.ask(lambda token: ("asked", token))
        outcomes.extend(driver.machine.seen[-2:])  # type: ignore[attr-defined]
        with pytest.raises(LocalProtocolError):
            await driver.ask(lambda token: "not now")

    world.add_host("node", host_of(script))
    await world.until(lambda: world.hosts["node"].finished)
    assert outcomes == ["granted", ("asked", 3), Cancelled(3)]


async def test_requests_end_when_the_driver_stops(world: World) -> None:
    outcomes: list[str] = []

    async def main(host: Host) -> None:
        config = TransportConfig(url=host.url)
        async with create_transport(config, host.name) as transport, asyncio.TaskGroup() as group:
            driver: MachineDriver[Any, Any] = MachineDriver(Script(), transport, TextCodec())

            async def ask() -> None:
                with pytest.raises(ClosedError, match="stopped"):
                    await driver.ask(lambda token: "never answered")
                outcomes.append("closed")

            async with driver:
                group.create_task(ask())
                await asyncio.sleep(1)
            with pytest.raises(ClosedError):
                driver.submit("too late")
            with pytest.raises(ClosedError):
                await driver.__aenter__()

    world.add_host("node", main)
    await world.until(lambda: world.hosts["node"].finished)
    assert outcomes == ["closed"]


async def test_a_slow_peer_delays_nobody_else_and_order_is_kept(world: World) -> None:
    got: dict[str, list[bytes]] = {"slow": [], "quick": []}

    def reader(pause: float) -> Any:  # noqa: ANN401
        async def main(host: Host) -> None:
            config = TransportConfig(url=host.url, receive_queue_frames=2)
            async with create_transport(config, host.name) as transport:
                while True:
                    inbound = await transport.receive(Lane.CONTROL)
                    if hasattr(inbound, "payload"):
                        got[host.name].append(inbound.payload)
                        await asyncio.sleep(pause)

        return main

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        for number in range(20):
            driver.submit(Do((Send(NodeId("slow"), number), Send(NodeId("quick"), number))))
        await asyncio.sleep(0.1)
        assert got["quick"] == [b"%d" % number for number in range(20)]
        assert len(got["slow"]) < 3

    world.add_host("slow", reader(1))
    world.add_host("quick", reader(0))
    peers = [host.peer for host in world.hosts.values()]
    world.add_host("node", host_of(script, peers=peers, drain_timeout=100))
    await world.until(lambda: world.hosts["node"].finished)
    await asyncio.sleep(10)
    assert got["slow"] == [b"%d" % number for number in range(20)]


def test_too_many_waiting_messages_end_the_driver(world: World) -> None:
    async def deaf(host: Host) -> None:
        config = TransportConfig(url=host.url, receive_queue_frames=2)
        async with create_transport(config, host.name):
            await asyncio.Event().wait()

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        driver.submit(Do(tuple(Send(NodeId("deaf"), number) for number in range(100))))
        await asyncio.sleep(10)

    world.add_host("deaf", deaf)
    world.add_host("node", host_of(script, peers=[world.hosts["deaf"].peer], max_pending=50))
    with pytest.raises(ExceptionGroup) as caught:
        world.run_for(20)
    assert caught.group_contains(OverloadError, match="50 messages wait .* for deaf")


async def test_messages_that_cannot_be_sent_come_back(world: World) -> None:
    machine = Script()

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        driver.submit(Do((Send(NodeId("nobody"), "hello"), Send(NodeId("astray"), "hi"))))
        await asyncio.sleep(1)

    peers = [Peer(NodeId("astray"), "sim://elsewhere/astray")]
    world.add_host("node", host_of(script, machine=machine, peers=peers))
    await world.until(lambda: world.hosts["node"].finished)
    assert machine.seen[1:] == [
        SendFailed(NodeId("nobody"), ("hello",)),
        SendFailed(NodeId("astray"), ("hi",)),
    ]


@pytest.mark.parametrize("fault", ["message", "invariant", "effect", "no performer"])
def test_no_fault_goes_unnoticed(world: World, fault: str) -> None:
    machine = Script()
    expected: type[Exception] = ZeroDivisionError

    async def perform(effect: object) -> None:
        raise ZeroDivisionError("effect")

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        if fault == "invariant":
            machine.broken = True
            with pytest.raises(InvariantError):
                driver.submit("anything")
        elif fault != "message":
            driver.submit(Do(("own effect",)))
        await asyncio.sleep(100)

    async def poisoner(host: Host) -> None:
        transport = await speak(host, b"poison")
        await transport.aclose()

    options: dict[str, Any] = {"machine": machine, "check": True}
    if fault == "effect":
        options["perform"] = perform
    expected = {"invariant": InvariantError, "no performer": LocalProtocolError}.get(
        fault, ZeroDivisionError
    )
    world.add_host("node", host_of(script, **options))
    if fault == "message":
        world.add_host("poisoner", poisoner)
    with pytest.raises(ExceptionGroup) as caught:
        world.run_for(50)
    assert caught.group_contains(expected)
    assert world.now < 1


async def test_steps_are_observed(world: World) -> None:
    steps: list[Step] = []

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        driver.submit("one")
        driver.add_peer(Peer(NodeId("p"), "sim://world/p"))
        assert NodeId("p") in driver.peers

    world.add_host("node", host_of(script, observe=steps.append))
    await world.until(lambda: world.hosts["node"].finished)
    assert [(step.event, step.effects) for step in steps] == [("one", ())]


async def test_stopping_with_work_left_is_bounded(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async def perform(effect: object) -> None:
        await asyncio.Event().wait()

    async def script(driver: "MachineDriver[Any, Any]") -> None:
        driver.submit(Do(("stuck", "never")))
        await asyncio.sleep(0)

    world.add_host("node", host_of(script, perform=perform, drain_timeout=2))
    await world.until(lambda: world.hosts["node"].finished)
    assert "2 effects not performed after 2 s" in caplog.text
