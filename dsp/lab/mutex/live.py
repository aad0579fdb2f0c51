"""The same experiments in real time over real sockets: every node an endpoint of its own."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter

from dsp.config import TransportConfig
from dsp.core.driver import MachineDriver, Step
from dsp.core.machine import Machine, Send
from dsp.core.randomness import derive_random
from dsp.core.types import Lane, NodeId, Peer
from dsp.lab.mutex.setting import Setting, algorithm, groups_of
from dsp.lab.mutex.simulator import Trace
from dsp.mutex.events import Admit, EnterRequested, ExitRequested, MutexEffect, MutexEvent
from dsp.mutex.member import Member
from dsp.mutex.seat import Seat
from dsp.mutex.wire import MutexCodec
from dsp.transport.base import Frame, Transport
from dsp.transport.session import create_session

__all__ = ["LIMIT", "run_live"]

LIMIT = 120.0
"""Seconds after which those who did not get in count as stuck."""


@dataclass(slots=True)
class _Counts:
    wants: list[int]
    inside: list[int]


class _Node:
    """An endpoint, a machine, and a user who asks again and again."""

    def __init__(self, name: NodeId, group: int, transport: Transport, trace: Trace) -> None:
        self.name = name
        self.group = group
        self.transport = transport
        self.trace = trace
        self.rivals: list[Peer] = []
        self.driver: MachineDriver[MutexEvent, MutexEffect] | None = None
        self._admitted = asyncio.Event()
        self._echoes: dict[bytes, tuple[int, float]] = {}
        self._answered = asyncio.Event()

    async def perform(self, effect: MutexEffect) -> None:
        if isinstance(effect, Admit):
            self._admitted.set()

    def observe(self, step: Step) -> None:
        self.trace.messages += sum(isinstance(effect, Send) for effect in step.effects)

    async def live(self, setting: Setting, counts: _Counts, first: float, began: float) -> None:
        assert self.driver is not None
        await asyncio.sleep(first)
        for entry in range(setting.entries):
            counts.wants[self.group] += 1
            self._note(counts, began)
            asked = perf_counter()
            self._admitted.clear()
            self.driver.submit(EnterRequested())
            await self._admitted.wait()
            self.trace.waits[self.name].append(perf_counter() - asked)
            self.trace.overlaps += counts.inside[1 - self.group] > 0
            counts.inside[self.group] += 1
            self._note(counts, began)
            await asyncio.sleep(setting.stay)
            counts.inside[self.group] -= 1
            counts.wants[self.group] -= 1
            self._note(counts, began)
            self.driver.submit(ExitRequested())
            paused = perf_counter()
            await self._probe(b"%d" % entry)
            await asyncio.sleep(max(0.0, setting.pause - (perf_counter() - paused)))

    def _note(self, counts: _Counts, began: float) -> None:
        wants, inside = (counts.wants[0], counts.wants[1]), (counts.inside[0], counts.inside[1])
        self.trace.timeline.append((perf_counter() - began, wants, inside))

    async def _probe(self, mark: bytes) -> None:
        """Time the slowest of parallel round trips to the other group, on the DATA lane."""
        self._answered.clear()
        self._echoes[mark] = (len(self.rivals), perf_counter())
        for peer in self.rivals:
            await self.transport.send(peer, b"?" + mark, lane=Lane.DATA)
        await self._answered.wait()

    async def echo(self) -> None:
        """Answer probes, and take the answers to our own."""
        while True:
            inbound = await self.transport.receive(Lane.DATA)
            if not isinstance(inbound, Frame):
                continue
            kind, mark = inbound.payload[:1], inbound.payload[1:]
            if kind == b"?":
                await self.transport.send(inbound.sender, b"!" + mark, lane=Lane.DATA)
            else:
                missing, sent = self._echoes[mark]
                self._echoes[mark] = (missing - 1, sent)
                if missing == 1:
                    self.trace.round_trips.append(perf_counter() - sent)
                    self._answered.set()
            self.transport.done(inbound)


def _machine(name: str, seat: Seat) -> Machine[MutexEvent, MutexEffect]:
    # What applications use, with its numbers; the others are for fixed groups anyway.
    return Member(seat, founder=True) if name == "2fgme" else algorithm(name)(seat)


async def run_live(
    setting: Setting,
    name: str,
    seed: int,
    *,
    url: str = "zmq+tcp://127.0.0.1:0",
    limit: float = LIMIT,
    progress: Callable[[], None] = lambda: None,
) -> Trace:
    """Run one experiment in real time.

    Args:
        setting: the parameters; ``hop`` is the network's own.
        name: a key of ``ALGORITHMS``.
        seed: of the first requests.
        url: a transport, with port 0.
        limit: seconds before those who did not get in count as stuck.
        progress: called when a node is done.
    """
    algorithm(name)
    groups = groups_of(setting.nodes)
    trace = Trace(waits={member: [] for group in groups for member in group})
    first = derive_random(seed, "mutex", "first")
    async with AsyncExitStack() as stack:
        nodes: list[_Node] = []
        for group, members in enumerate(groups):
            for member in members:
                session = create_session(TransportConfig(url=url), member)
                transport = await stack.enter_async_context(session)
                nodes.append(_Node(member, group, transport, trace))
        for node in nodes:
            await _drive(stack, node, nodes, _machine(name, Seat(node.name, groups)))
        # Connections are made by the first messages, which are not what is measured.
        echoes = [asyncio.create_task(node.echo()) for node in nodes]
        for node in nodes:
            await node._probe(b"warm up")
        trace.round_trips.clear()
        began = perf_counter()
        counts = _Counts([0, 0], [0, 0])
        users = [
            asyncio.create_task(node.live(setting, counts, first.uniform(0, setting.first), began))
            for node in nodes
        ]
        for user in users:
            user.add_done_callback(lambda done: progress())
        await _finish(users, limit, trace)
        for echo in echoes:
            echo.cancel()
        await asyncio.gather(*echoes, return_exceptions=True)
    return trace


async def _drive(
    stack: AsyncExitStack,
    node: _Node,
    nodes: Sequence[_Node],
    machine: Machine[MutexEvent, MutexEffect],
) -> None:
    node.rivals = [other.transport.contact for other in nodes if other.group != node.group]
    driver: MachineDriver[MutexEvent, MutexEffect] = MachineDriver(
        machine,
        node.transport,
        MutexCodec(),
        peers=[other.transport.contact for other in nodes if other is not node],
        perform=node.perform,
        observe=node.observe,
    )
    node.driver = await stack.enter_async_context(driver)


async def _finish(users: "Sequence[asyncio.Task[None]]", limit: float, trace: Trace) -> None:
    done, pending = await asyncio.wait(users, timeout=limit)
    trace.stuck = len(pending)
    for user in pending:
        user.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    for user in done:
        user.result()  # raises what went wrong in it
