"""Ten nodes that send each other numbered frames, and a bad day for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

from dsp.config import SessionConfig, TransportConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import EndOfStream
from dsp.testing import Host, LinkConditions, World
from dsp.transport.base import Frame, Undelivered
from dsp.transport.session import Session
from tests.session.ledger import Ledger, Life

if TYPE_CHECKING:
    from dsp.transport.base import Transport

__all__ = ["BadDay", "DEAD_AFTER"]

DEAD_AFTER = 3.0
SHORT_CUT = 1.2
SETTLE = 60.0


def settings(url: str) -> TransportConfig:
    """Small queues, so that windows fill, and little patience, so that days are short."""
    session = SessionConfig(
        heartbeat_every=0.3, suspect_after=1.0, dead_after=DEAD_AFTER, resend_after=0.08
    )
    return TransportConfig(
        url=url,
        session=session,
        send_queue_frames=16,
        receive_queue_frames=24,
        send_queue_bytes=32 * 1024,
        receive_queue_bytes=32 * 1024,
        max_frame_bytes=8 * 1024,
        drain_timeout=2.0,
    )


class WatchedSession(Session):
    """A session that tells a ledger what it puts into its inbox, where a crash may find it."""

    ledger: Ledger
    life: Life

    def _arrived_together(
        self, sender: Peer, lane: Lane, payloads: tuple[bytes, ...], receipt: object
    ) -> None:
        super()._arrived_together(sender, lane, payloads, receipt)
        self.ledger.arrive(self.life, lane, payloads)


class BadDay:
    """A world of nodes, what happens to it, and the books that are kept about it.

    Args:
        world: decides by its seed.
        nodes: how many.
        friends: to how many others a node sends.
        frames: how many frames a node sends in a life.
        span: seconds of trouble, before everything is mended.
    """

    def __init__(
        self,
        world: World,
        *,
        nodes: int = 10,
        friends: int = 2,
        frames: int = 50,
        span: float = 5.0,
    ) -> None:
        self.world = world
        self.names = [NodeId(f"n{number}") for number in range(nodes)]
        self.friends = friends
        self.frames = frames
        self.span = span
        self.random = world.random("bad day")
        self.ledger = Ledger()
        self.sessions: dict[NodeId, WatchedSession] = {}
        self.leaving: dict[NodeId, asyncio.Event] = {}
        self.over = False

    # -- a node ---------------------------------------------------------------------------

    async def main(self, host: Host) -> None:
        life: Life = (host.name, host.incarnation)
        session = WatchedSession.from_config(settings(host.url), host.name)
        session.ledger, session.life = self.ledger, life
        leaving = self.leaving[host.name] = asyncio.Event()
        await session.start()
        self.sessions[host.name] = session
        try:
            async with asyncio.TaskGroup() as group:
                for lane in Lane:
                    group.create_task(self.receive(host, life, session, lane))
                sender = group.create_task(self.send(host, life, session))
                await leaving.wait()
                sender.cancel()
                await session.aclose()
        finally:
            session.abort()

    async def send(self, host: Host, life: Life, session: Session) -> None:
        random = host.random
        others = [name for name in self.names if name != host.name]
        friends = [*random.sample(others, self.friends)]
        if random.random() < 0.2:
            friends.append(host.name)
        for _ in range(self.frames):
            if self.over:
                return
            if random.random() < 0.4:
                await asyncio.sleep(random.expovariate(4.0))
            name, lane = random.choice(friends), random.choice(list(Lane))
            payload = self.ledger.offer(life, name, lane, random.choice([0, 10, 100, 5000]))
            # Whether a send that is cancelled was accepted is known by what comes of it, so a
            # leaving node takes its time to send the last one.
            await asyncio.shield(session.send(host.world.hosts[name].peer, payload, lane=lane))

    async def receive(self, host: Host, life: Life, session: "Transport", lane: Lane) -> None:
        random = host.random
        with suppress(EndOfStream):
            while True:
                inbound = await session.receive(lane)
                if isinstance(inbound, Frame):
                    self.ledger.take(life, lane, inbound.payload)
                    session.done(inbound)
                    if random.random() < 0.05:
                        await asyncio.sleep(random.random() * 0.3)
                elif isinstance(inbound, Undelivered):
                    self.ledger.name(life, inbound.lane, inbound.peer.id, inbound.payloads)

    # -- what happens to them -------------------------------------------------------------

    def run(self) -> None:
        """Live through the day, mend everything, and check the books."""
        links = LinkConditions(
            loss=self.random.choice([0.0, 0.05, 0.2]),
            duplicate=self.random.choice([0.0, 0.1, 0.3]),
            reorder=self.random.choice([0.0, 0.1, 0.3]),
            jitter=self.random.choice([0.0, 0.01]),
        )
        self.world.network.conditions = links
        for name in self.names:
            self.world.add_host(name, self.main)
        self.world.run(self.trouble())
        self.over = True
        deadline = self.world.now + SETTLE
        while self.ledger.unsettled() and self.world.now < deadline:
            self.world.run_for(0.5)
        self.world.run_for(DEAD_AFTER + 1)
        for session in self.sessions.values():
            for conversation in session._conversations.values():
                conversation.machine.check_invariants()
        self.ledger.check()

    async def trouble(self) -> None:
        kinds: list[Callable[[Random], Awaitable[None]]] = [self.crash, self.leave, self.cut]
        async with asyncio.TaskGroup() as group:
            ends = self.world.now + self.span
            while self.world.now < ends:
                await asyncio.sleep(self.random.expovariate(1.5))
                kind = self.random.choices(kinds, weights=[2, 1, 3])[0]
                group.create_task(_run(kind(Random(self.random.random()))))

    async def crash(self, random: Random) -> None:
        host = self.world.hosts[random.choice(self.names)]
        if not host.running:
            return
        self.ledger.die((host.name, host.incarnation))
        self.suffer(host.name)
        self.world.crash(host.name, silent=random.random() < 0.5)
        await asyncio.sleep(random.choice([0.0, 0.5, 4.0]))
        self.world.restart(host.name)

    async def leave(self, random: Random) -> None:
        host = self.world.hosts[random.choice(self.names)]
        if not host.running or self.leaving[host.name].is_set():
            return
        incarnation = host.incarnation
        self.suffer(host.name)
        self.leaving[host.name].set()
        await asyncio.sleep(random.choice([3.0, 5.0]))
        if host.incarnation == incarnation and host.finished:
            self.world.restart(host.name)

    async def cut(self, random: Random) -> None:
        some = random.sample(self.names, random.randint(1, 3))
        others = [name for name in self.names if name not in some]
        others = random.sample(others, random.randint(1, len(others)))
        oneway, long = random.random() < 0.5, random.random() < 0.3
        if long:
            for one in some:
                for other in others:
                    self.ledger.trouble(one, other)
        self.world.partition(some, others, oneway=oneway)
        await asyncio.sleep(
            DEAD_AFTER + 2 * random.random() if long else SHORT_CUT * random.random()
        )
        self.world.repair(some, others, oneway=oneway)

    def suffer(self, name: NodeId) -> None:
        for other in self.names:
            self.ledger.trouble(name, other)


async def _run(work: Awaitable[Any]) -> None:
    await work
