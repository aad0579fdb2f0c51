"""Worlds: hosts, crashes, partitions, holds, conditions, rules, oracles, failures."""

import asyncio
import gc
import weakref

import pytest

from dsp.core.types import Lane
from dsp.errors import ConfigError, SimulationError, StalledError
from dsp.testing import DROP, PASS, Deliver, Host, LinkConditions, Packet, World
from dsp.testing.world import DEFAULT_LIMIT
from dsp.transport.base import PeerDown, PeerUp
from tests.sim.nodes import endpoint, receiver, sender


def test_frames_arrive_after_the_latency(world: World) -> None:
    got: list[int] = []
    world.add_host("b", receiver(got))
    world.add_host("a", sender("b", 5, every=1))
    world.run_until(lambda: len(got) == 5)
    assert got == [0, 1, 2, 3, 4]
    assert world.now == pytest.approx(4.001)


async def test_a_coroutine_test_runs_inside_the_world(world: World) -> None:
    got: list[int] = []
    world.add_host("b", receiver(got))
    world.add_host("a", sender("b", 3))
    await asyncio.sleep(3600)
    assert got == [0, 1, 2]
    assert asyncio.get_running_loop().time() == 3600
    assert world.hosts["a"].finished
    await world.until(lambda: True)


def test_a_condition_that_never_holds_names_seed_and_hosts(world: World) -> None:
    world.add_host("b", receiver([]))
    with pytest.raises(TimeoutError, match=r"seed 0: .* 10 virtual seconds .*<Host b running"):
        world.run_until(lambda: False, limit=10)


def test_both_ways_partition_and_repair(world: World) -> None:
    got: list[int] = []
    world.add_host("b", receiver(got))
    world.add_host("a", sender("b", 30))
    world.run_for(0.95)
    world.partition("a", "b")
    world.run_for(1)
    world.repair("a", ["b"])
    world.run_until(lambda: world.hosts["a"].finished)
    world.run_for(1)
    assert got == [*range(10), *range(20, 30)]


def test_oneway_partition_leaves_the_other_way_open(world: World) -> None:
    to_a: list[int] = []
    to_b: list[int] = []

    def both(into: list[int], to: str) -> "object":
        async def main(host: Host) -> None:
            async with asyncio.TaskGroup() as group, endpoint(host) as transport:

                async def read() -> None:
                    while True:
                        into.append(int((await transport.receive(Lane.DATA)).payload))  # type: ignore[union-attr]

                reader = group.create_task(read())
                for number in range(10):
                    await transport.send(host.world.hosts[to].peer, b"%d" % number, lane=Lane.DATA)
                    await asyncio.sleep(0.1)
                reader.cancel()

        return main

    world.add_host("a", both(to_a, "b"))  # type: ignore[arg-type]
    world.add_host("b", both(to_b, "a"))  # type: ignore[arg-type]
    world.partition("a", "b", oneway=True)
    world.run_until(lambda: all(host.finished for host in world.hosts.values()))
    assert to_a == list(range(10))
    assert to_b == []


def test_hold_delays_and_release_keeps_the_order(world: World) -> None:
    got: list[int] = []
    world.add_host("b", receiver(got))
    world.add_host("a", sender("b", 20))
    world.hold("a", "b")
    world.run_for(100)
    assert got == []
    world.release("a", "b")
    world.run_for(1)
    assert got == list(range(20))


@pytest.mark.dsp_seeds(5)
def test_loss_duplication_and_reordering_happen_as_often_as_asked(world_seed: int) -> None:
    conditions = LinkConditions(loss=0.1, duplicate=0.1, reorder=0.2, reorder_delay=0.5)
    got: list[int] = []
    with World(world_seed, conditions) as world:
        world.add_host("b", receiver(got))
        world.add_host("a", sender("b", 2000, every=0.01))
        world.run_until(lambda: world.hosts["a"].finished)
        world.run_for(1)
    assert 1700 < len(set(got)) < 1900
    assert 100 < len(got) - len(set(got)) < 300
    assert got != sorted(got)


def test_bandwidth_takes_time(world: World) -> None:
    got: list[int] = []
    world.add_host("b", receiver(got))
    world.add_host("a", sender("b", 10, every=0))
    world.set_conditions("a", "b", LinkConditions(latency=0, bandwidth=70))
    world.run_until(lambda: len(got) == 10)
    assert world.now == pytest.approx(1, rel=0.01), "frames of 7 bytes on the wire, ten a second"
    assert got == list(range(10))


def test_rules_decide_about_frames(world: World) -> None:
    got: list[int] = []
    seen: list[Packet] = []

    def odd_ones_late(packet: Packet) -> "object":
        seen.append(packet)
        number = int(packet.payload)
        return DROP if number == 4 else Deliver(50) if number % 2 else PASS

    world.add_host("b", receiver(got))
    with world.rule(odd_ones_late):  # type: ignore[arg-type]
        world.add_host("a", sender("b", 6))
        world.run_for(10)
        assert got == [0, 2]
    world.run_for(60)
    assert got == [0, 2, 1, 3, 5]
    assert [packet.source for packet in seen] == ["a"] * 6


def test_a_crash_is_told_to_peers_unless_silent(world: World) -> None:
    events: list[object] = []
    world.add_host("b", receiver([], events.append))
    world.add_host("a", sender("b", 1000))
    world.run_for(1)
    world.crash("a")
    world.run_for(1)
    world.restart("a")
    world.run_for(1)
    world.crash("a", silent=True)
    world.run_for(1)
    a = world.hosts["a"].peer
    assert events == [PeerUp(a), PeerDown(a, "crashed"), PeerUp(a)]


def test_nothing_leaves_a_crashed_host(world: World) -> None:
    got: list[int] = []
    unwound: list[str] = []

    async def clingy(host: Host) -> None:
        async with endpoint(host) as transport:
            try:
                await asyncio.sleep(1000)
            finally:
                unwound.append("finally ran")
                await transport.send(host.world.hosts["b"].peer, b"666", lane=Lane.DATA)

    world.add_host("b", receiver(got))
    world.add_host("a", clingy)
    world.run_for(1)
    world.crash("a")
    world.run_for(100)
    assert unwound == ["finally ran"]
    assert got == []


def test_every_task_of_a_host_dies_with_it(world: World) -> None:
    beats: list[int] = []

    async def main(host: Host) -> None:
        async def beat() -> None:
            while True:
                await asyncio.sleep(1)
                beats.append(host.incarnation)

        async with asyncio.TaskGroup() as group:
            group.create_task(beat())

    world.add_host("a", main)
    world.run_for(3.5)
    world.bounce("a")
    world.run_for(2)
    assert beats == [1, 1, 1, 2, 2]
    assert world.hosts["a"].incarnation == 2


def test_frames_for_a_host_that_is_away_wait_for_it(world: World) -> None:
    got: list[int] = []
    world.add_host("b", receiver(got))
    world.run_for(1)
    world.crash("b")
    world.add_host("a", sender("b", 5, every=10))
    world.run_for(45)
    assert got == []
    world.restart("b")
    world.run_for(1)
    assert got == list(range(5))


def test_the_failure_of_a_host_fails_the_run_at_that_moment(world: World) -> None:
    async def main(host: Host) -> None:
        await asyncio.sleep(5)
        raise ZeroDivisionError("oops")

    world.add_host("a", main)
    with pytest.raises(ZeroDivisionError) as caught:
        world.run_for(100)
    assert world.now == 5
    assert caught.value.__notes__ == ["in host a #1 at 5.000000 s, seed 0"]


def test_tasks_that_a_host_leaves_behind_are_a_failure(world: World) -> None:
    async def main(host: Host) -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(100), name="stray")

    world.add_host("a", main)
    with pytest.raises(SimulationError, match="left tasks running: stray"):
        world.run_for(1)


def test_an_oracle_stops_the_run_at_the_step_that_breaks_it(world: World) -> None:
    got: list[int] = []

    def fewer_than_three() -> None:
        assert len(got) < 3

    world.oracle(fewer_than_three)
    world.add_host("b", receiver(got))
    world.add_host("a", sender("b", 10, every=1))
    with pytest.raises(AssertionError):
        world.run_for(100)
    assert world.now == pytest.approx(2.001)
    got.clear()


def test_a_world_in_which_nothing_can_happen_stalls(world: World) -> None:
    async def main(host: Host) -> None:
        await asyncio.Event().wait()

    world.add_host("a", main)
    with pytest.raises(StalledError, match="a#1"):
        world.run(asyncio.Event().wait())


def test_a_task_that_ignores_the_end_is_reported() -> None:
    async def main(host: Host) -> None:
        while True:
            try:
                await asyncio.sleep(DEFAULT_LIMIT)
            except asyncio.CancelledError:
                continue

    world = World()
    world.add_host("a", main)
    world.run_for(1)
    with pytest.raises(SimulationError, match="ignore being cancelled: a#1"):
        world.close()


def test_mistakes_of_a_test_have_clear_errors(world: World) -> None:
    world.add_host("a", receiver([]))
    with pytest.raises(SimulationError, match="there is a host 'a' already"):
        world.add_host("a", receiver([]))
    with pytest.raises(SimulationError, match="no host 'b'; there are a"):
        world.crash("b")
    with pytest.raises(SimulationError, match="is running; crash it first"):
        world.restart("a")
    world.run_for(1)
    world.crash("a")
    with pytest.raises(SimulationError, match="is not running"):
        world.crash("a")
    with pytest.raises(ConfigError, match=r"link loss is 1.5: a share"):
        LinkConditions(loss=1.5)
    with pytest.raises(ConfigError, match="link latency is -1: seconds"):
        LinkConditions(latency=-1)
    with pytest.raises(ConfigError, match="link bandwidth is 0"):
        LinkConditions().but(bandwidth=0)


def test_worlds_that_are_over_are_let_go_of() -> None:
    over: list[weakref.ref[World]] = []
    for seed in range(4):
        with World(seed) as world:
            world.add_host("b", receiver([]))
            world.add_host("a", sender("b", 5))
            world.run_for(0.3)
            over.append(weakref.ref(world))
        del world
    gc.collect()
    assert sum(each() is not None for each in over) <= 1  # the last, until another is made
