"""The lock in worlds: real sessions over a simulated network, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable

import pytest

from dsp.config import SessionConfig, TransportConfig
from dsp.core.machine import PeerLost, Reject
from dsp.core.types import NodeId, Peer
from dsp.errors import ClosedError, LeaseLost
from dsp.mutex.events import JoinRequested
from dsp.mutex.fence import Fence
from dsp.mutex.member import Member
from dsp.mutex.seat import Seat
from dsp.mutex.service import Entry, GroupMutex, RoutedMutex, open_mutex
from dsp.testing import Host, HostMain, LinkConditions, World
from dsp.transport.session import create_session

QUICK = SessionConfig(heartbeat_every=0.1, suspect_after=0.5, dead_after=2.0, resend_after=0.05)
LINKS = LinkConditions(latency=0.002, jitter=0.004)

Life = Callable[[GroupMutex, Host], Awaitable[None]]


class Room:
    """Hosts of two groups in a world, each with a lock, and a resource that they guard."""

    def __init__(self, world: World, first: int, second: int) -> None:
        self.world = world
        self.names = ([f"a{n}" for n in range(first)], [f"b{n}" for n in range(second)])
        self.fence = Fence()
        self.inside: dict[str, Entry] = {}
        self.effects: list[tuple[str, int]] = []
        self.refused: Counter[str] = Counter()
        self.visits: Counter[str] = Counter()
        world.oracle(self.check)

    def check(self) -> None:
        """No two groups have valid numbers inside."""
        valid = {name[0] for name, entry in self.inside.items() if self.valid(entry)}
        assert len(valid) < 2, self.inside

    def valid(self, entry: Entry) -> bool:
        return entry.number > self.fence.highest[1 - (entry.number & 1)]

    async def present(self, entry: Entry) -> None:
        self.fence.accept(entry.number)

    def peer(self, name: str) -> Peer:
        return Peer(NodeId(name), f"sim://world/{name}")

    def start(self, life: Life, *names: str) -> None:
        """Start hosts; without names, all of them."""
        for name in names or (*self.names[0], *self.names[1]):
            self.world.add_host(name, self.main(life))

    def main(self, life: Life) -> HostMain:
        async def main(host: Host) -> None:
            peers = [[self.peer(name) for name in group] for group in self.names]
            for group, letter in enumerate("ab"):
                if host.name not in self.names[group] and host.name[0] == letter:
                    peers[group].append(self.peer(host.name))
            config = TransportConfig(url=host.url, session=QUICK)
            async with (
                create_session(config, host.name) as session,
                open_mutex(
                    session, (peers[0], peers[1]), present=self.present, patience=0.2, check=True
                ) as mutex,
            ):
                await life(mutex, host)

        return main

    async def visit(self, mutex: GroupMutex, name: str, seconds: float = 0.01) -> None:
        """Be inside for some time, with an effect at both ends of it."""
        async with mutex.enter() as entry:
            self.inside[name] = entry
            try:
                self.act(name, entry)
                await asyncio.sleep(seconds)
                self.act(name, entry)
                self.visits[name] += 1
            finally:
                del self.inside[name]

    def act(self, name: str, entry: Entry) -> None:
        try:
            self.fence.accept(entry.number)
        except LeaseLost:
            self.refused[name] += 1
        else:
            self.effects.append((name, entry.number))


@pytest.mark.parametrize("seed", range(3))
def test_everybody_gets_in_again_and_again(seed: int) -> None:
    with World(seed, LINKS) as world:
        room = Room(world, 3, 3)
        done: list[str] = []

        async def life(mutex: GroupMutex, host: Host) -> None:
            for _ in range(5):
                await room.visit(mutex, host.name)
                await asyncio.sleep(host.random.uniform(0, 0.03))
            done.append(host.name)
            await world.until(lambda: len(done) == 6)

        room.start(life)
        world.run_until(lambda: len(done) == 6, limit=60)
        assert set(room.visits.values()) == {5}
        assert not room.refused
        # Numbers of the two groups never go back, as the resource saw them.
        for (one, first), (two, second) in zip(room.effects, room.effects[1:], strict=False):
            assert one[0] == two[0] or first < second


def test_cancelling_withdraws_the_request() -> None:
    with World(0, LINKS) as world:
        room = Room(world, 1, 1)
        story: list[str] = []

        async def first(mutex: GroupMutex, host: Host) -> None:
            async with mutex.enter():
                story.append("a inside")
                await world.until(lambda: "b gave up" in story)
            await mutex.joined()
            for _ in range(3):
                await room.visit(mutex, host.name)
            await world.until(lambda: "b inside" in story)

        async def second(mutex: GroupMutex, host: Host) -> None:
            await world.until(lambda: "a inside" in story)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await room.visit(mutex, host.name)
            story.append("b gave up")
            await asyncio.sleep(0.2)
            assert room.visits["b0"] == 0
            await room.visit(mutex, host.name)
            story.append("b inside")

        room.start(first, "a0")
        room.start(second, "b0")
        world.run_until(lambda: "b inside" in story, limit=30)
        assert room.visits == {"a0": 3, "b0": 1}


@pytest.mark.parametrize("seed", range(4))
def test_requests_cancelled_at_any_moment_leave_no_trace(seed: int) -> None:
    with World(seed, LINKS) as world:
        room = Room(world, 2, 2)
        done: list[str] = []

        async def life(mutex: GroupMutex, host: Host) -> None:
            for _ in range(20):
                try:
                    async with asyncio.timeout(host.random.uniform(0, 0.03)):
                        await room.visit(mutex, host.name, 0.005)
                except TimeoutError:
                    pass
            await room.visit(mutex, host.name)
            done.append(host.name)
            await world.until(lambda: len(done) == 4)

        room.start(life)
        world.run_until(lambda: len(done) == 4, limit=120)
        assert not room.refused


@pytest.mark.parametrize("seed", range(3))
def test_the_others_go_on_when_one_crashes_inside(seed: int) -> None:
    with World(seed, LINKS) as world:
        room = Room(world, 2, 3)
        done: list[str] = []

        async def life(mutex: GroupMutex, host: Host) -> None:
            while host.name == "a0" or room.visits[host.name] < 5:
                await room.visit(mutex, host.name, 0.05)
            done.append(host.name)
            await world.until(lambda: len(done) == 4)

        room.start(life)
        world.run_until(lambda: "a0" in room.inside and room.visits["a0"] > 1, limit=30)
        world.crash("a0", silent=True)
        world.run_until(lambda: len(done) == 4, limit=60)
        assert not room.refused


def test_one_that_was_cut_off_inside_is_refused_and_comes_back() -> None:
    with World(1, LINKS) as world:
        room = Room(world, 2, 3)
        story: list[str] = []

        async def life(mutex: GroupMutex, host: Host) -> None:
            while "over" not in story:
                await room.visit(mutex, host.name, 0.02)
                await asyncio.sleep(0.01)

        async def sleeper(mutex: GroupMutex, host: Host) -> None:
            await room.visit(mutex, host.name)
            with pytest.raises(LeaseLost):  # noqa: PT012 - raised by leaving the block
                async with mutex.enter() as entry:
                    room.inside[host.name] = entry
                    room.act(host.name, entry)
                    story.append("asleep")
                    await world.until(lambda: "awake" in story)
                    room.act(host.name, entry)  # it does not know yet
                    await world.until(lambda: entry.lost is not None, limit=30)
                    with pytest.raises(LeaseLost):
                        entry.check()
                    del room.inside[host.name]
            for _ in range(3):
                await room.visit(mutex, host.name)
            story.append("over")

        room.start(life, "a1", "b0", "b1", "b2")
        room.start(sleeper, "a0")
        world.run_until(lambda: "asleep" in story, limit=30)
        everybody = ["a1", "b0", "b1", "b2"]
        world.partition("a0", everybody)
        seen = sum(room.visits[name] for name in ("b0", "b1", "b2"))
        # The majority goes on without it; alone it takes nothing from anyone.
        world.run_until(
            lambda: sum(room.visits[name] for name in ("b0", "b1", "b2")) > seen + 10, limit=60
        )
        world.repair("a0", everybody)
        story.append("awake")
        world.run_until(lambda: "over" in story, limit=60)
        assert room.refused["a0"] == 1
        assert sum(room.refused.values()) == 1
        world.run_for(1)


def test_members_join_and_leave_while_others_visit() -> None:
    with World(2, LINKS) as world:
        room = Room(world, 2, 2)
        story: list[str] = []

        async def life(mutex: GroupMutex, host: Host) -> None:
            while "over" not in story:
                await room.visit(mutex, host.name)
                await asyncio.sleep(0.005)

        async def guest(mutex: GroupMutex, host: Host) -> None:
            await mutex.joined()
            for _ in range(3):
                await room.visit(mutex, host.name)
            await mutex.leave()
            story.append(f"{host.name} left")

        room.start(life)
        world.run_until(lambda: len(room.visits) == 4, limit=30)
        room.start(guest, "a7", "b7")
        world.run_until(lambda: {"a7 left", "b7 left"} <= {*story}, limit=60)
        before = sum(room.visits.values())
        world.run_until(lambda: sum(room.visits.values()) > before + 20, limit=60)
        assert room.visits["a7"] == room.visits["b7"] == 3
        story.append("over")
        world.run_for(5)
        assert not room.refused


def test_a_host_that_restarts_joins_anew() -> None:
    with World(3, LINKS) as world:
        room = Room(world, 2, 2)

        async def life(mutex: GroupMutex, host: Host) -> None:
            while True:
                await room.visit(mutex, host.name)
                await asyncio.sleep(0.005)

        room.start(life)
        world.run_until(lambda: "b0" in room.inside and len(room.visits) == 4, limit=30)
        world.bounce("b0")
        before = dict(room.visits)
        world.run_until(
            lambda: all(room.visits[name] > before[name] + 5 for name in before), limit=60
        )
        assert not room.refused


def test_tasks_of_one_member_take_turns() -> None:
    with World(4, LINKS) as world:
        room = Room(world, 1, 1)
        order: list[int] = []

        async def life(mutex: GroupMutex, host: Host) -> None:
            async def task(number: int) -> None:
                async with mutex.enter():
                    order.append(number)
                    await asyncio.sleep(0.01)

            async with asyncio.TaskGroup() as group:
                for number in range(5):
                    group.create_task(task(number))

        async def other(mutex: GroupMutex, host: Host) -> None:
            await mutex.joined()
            await world.until(lambda: len(order) == 5)

        room.start(life, "a0")
        room.start(other, "b0")
        world.run_until(lambda: len(order) == 5, limit=30)
        assert order == [0, 1, 2, 3, 4]
        world.run_for(1)


def test_a_lock_over_somebody_elses_endpoint() -> None:
    async def story() -> list[int]:
        groups = ((NodeId("a"),), (NodeId("b"),))
        locks: dict[str, RoutedMutex] = {}
        members: dict[str, Member] = {}
        loop = asyncio.get_running_loop()
        rejected: list[Reject] = []

        def sender(me: str) -> Callable[[NodeId, Hashable], None]:
            def send(to: NodeId, message: Hashable) -> None:
                loop.call_soon(locks[to].receive, NodeId(me), message)

            return send

        for me in ("a", "b"):
            member = members[me] = Member(Seat(NodeId(me), groups), patience=1.0)
            locks[me] = RoutedMutex(member, sender(me), rejected=rejected.append)
        for lock in locks.values():
            lock.submit(JoinRequested())
        numbers = []
        for me in ("a", "b", "a", "b"):
            async with locks[me].mutex.enter() as entry:
                numbers.append(entry.number)
        locks["a"].receive(NodeId("b"), "nonsense")
        assert len(rejected) == 1
        # The machine's time-outs are kept, too: a suspicion counts after a while. It was wrong, so
        # the other one joins anew.
        locks["a"].submit(PeerLost(NodeId("b")))
        assert members["a"].roster.known == {NodeId("b"): (1, 1)}
        await asyncio.sleep(1.5)
        assert members["a"].roster.known == {NodeId("b"): (1, 2)}
        for lock in locks.values():
            lock.close()
        with pytest.raises(ClosedError):
            async with locks["a"].mutex.enter():
                pass
        return numbers

    with World(5) as world:
        numbers = world.run(story())
    assert numbers == sorted(numbers)
    assert len({*numbers}) == 4


def test_a_fence_lets_a_group_pass_in_any_order() -> None:
    fence = Fence()
    for number in (4, 8, 6):
        fence.accept(number)
    fence.accept(9)
    with pytest.raises(LeaseLost, match="entry 8 is superseded, 9 was seen"):
        fence.accept(8)
    again = Fence(fence.highest)
    with pytest.raises(LeaseLost):
        again.accept(6)
    again.accept(10)
