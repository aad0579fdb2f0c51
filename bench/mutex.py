"""Mutual exclusion: what a machine costs for each event, and what an entry costs over ZeroMQ.

    python bench/mutex.py [--json] [--entries 200] [--rivals 6]

Events are those of a run of 12 and 12 members in virtual time, timed around ``handle``. An entry
is uncontended, and no permission is at hand: every competitor has to be asked. Beside it, in turns
and over sockets of the same kind, one request-reply to each competitor in parallel, in pyzmq
itself and through sessions without any lock.
"""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

import orjson
import zmq
import zmq.asyncio

sys.path.insert(0, str(Path(__file__).parent.parent))

from dsp.config import TransportConfig
from dsp.core.machine import Machine, Received, Send
from dsp.core.types import Lane, NodeId
from dsp.lab.mutex.setting import groups_of
from dsp.mutex.events import Admit, EnterRequested, ExitRequested, MutexEffect, MutexEvent
from dsp.mutex.member import Member
from dsp.mutex.seat import Seat
from dsp.mutex.service import GroupMutex, open_mutex
from dsp.mutex.two_fgme import TwoFGME
from dsp.transport.base import Frame
from dsp.transport.session import Session, create_session

URL = "zmq+tcp://127.0.0.1:0"


def microseconds_per_event(
    make: Callable[[Seat], Machine[MutexEvent, MutexEffect]], rounds: int = 30
) -> float:
    """Mean time of ``handle`` while all members of 12 and 12 enter again and again."""
    groups = groups_of(24)
    members = {name: make(Seat(name, groups)) for group in groups for name in group}
    waiting: list[tuple[NodeId, MutexEvent]] = []
    spent, events = 0.0, 0
    for _ in range(rounds):
        waiting += [(name, EnterRequested()) for name in members]
        while waiting:
            batch, waiting = waiting, []
            for name, event in batch:
                began = perf_counter()
                effects = members[name].handle(event, 0.0)
                spent += perf_counter() - began
                events += 1
                for effect in effects:
                    if isinstance(effect, Send):
                        waiting.append((effect.to, Received(name, effect.message)))
                    elif isinstance(effect, Admit):
                        waiting.append((name, ExitRequested()))
    return 1e6 * spent / events


def founder(seat: Seat) -> Machine[MutexEvent, MutexEffect]:
    """What applications run: with membership and numbers."""
    return Member(seat, founder=True)


class RawRivals:
    """Competitors in pyzmq itself: a DEALER to each, which a ROUTER answers."""

    def __init__(self, count: int) -> None:
        self._context = zmq.asyncio.Context()
        self._routers = [self._context.socket(zmq.ROUTER) for _ in range(count)]
        ports = [router.bind_to_random_port("tcp://127.0.0.1") for router in self._routers]
        self._dealers = [self._context.socket(zmq.DEALER) for _ in range(count)]
        for dealer, port in zip(self._dealers, ports, strict=True):
            dealer.connect(f"tcp://127.0.0.1:{port}")
        self._answering = [asyncio.create_task(self._answer(router)) for router in self._routers]

    @staticmethod
    async def _answer(router: zmq.asyncio.Socket) -> None:
        while True:
            await router.send_multipart(await router.recv_multipart())

    async def ask_all(self) -> None:
        """One request-reply to each, in parallel."""
        await asyncio.gather(*(dealer.send(b"request") for dealer in self._dealers))
        await asyncio.gather(*(dealer.recv() for dealer in self._dealers))

    def close(self) -> None:
        """Let go of the sockets."""
        for task in self._answering:
            task.cancel()
        for socket in (*self._dealers, *self._routers):
            socket.close(linger=0)
        self._context.term()


class SessionRivals:
    """Competitors behind sessions, without a lock: they answer on the DATA lane."""

    def __init__(self, me: Session, rivals: list[Session]) -> None:
        self._me = me
        self._rivals = rivals
        self._answering = [asyncio.create_task(self._answer(rival)) for rival in rivals]

    @staticmethod
    async def _answer(rival: Session) -> None:
        while True:
            inbound = await rival.receive(Lane.DATA)
            if isinstance(inbound, Frame):
                await rival.send(inbound.sender, inbound.payload, lane=Lane.DATA)

    async def ask_all(self) -> None:
        """One request-reply to each, in parallel."""
        for rival in self._rivals:
            self._me.send_nowait(rival.contact, b"request", lane=Lane.DATA)
        for _ in self._rivals:
            await self._me.receive(Lane.DATA)

    async def close(self) -> None:
        """Stop answering."""
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)


async def entry_costs(entries: int, rivals: int) -> dict[str, float]:
    """Median seconds of an entry, and of request-replies beside it."""
    async with AsyncExitStack() as stack:
        names = [NodeId("a"), *(NodeId(f"b{n}") for n in range(rivals))]
        sessions = [
            await stack.enter_async_context(create_session(TransportConfig(url=URL), name))
            for name in names
        ]
        contacts = [session.contact for session in sessions]
        groups = (contacts[:1], contacts[1:])
        locks: list[GroupMutex] = [
            await stack.enter_async_context(open_mutex(session, groups)) for session in sessions
        ]
        raw = RawRivals(rivals)
        stack.callback(raw.close)
        through = SessionRivals(sessions[0], sessions[1:])
        stack.push_async_callback(through.close)

        async def enter() -> None:
            async with locks[0].enter():
                pass

        async def take_all() -> None:
            """Have the competitors hold every permission again. Not measured."""
            for lock in locks[1:]:
                async with lock.enter():
                    pass

        costs: dict[str, list[float]] = {"entry": [], "raw": [], "sessions": []}
        for number in range(entries + 10):
            await take_all()
            for name, action in (
                ("entry", enter),
                ("raw", raw.ask_all),
                ("sessions", through.ask_all),
            ):
                seconds = await _timed(action)
                if number >= 10:  # connections are made by the first ones
                    costs[name].append(seconds)
    return {name: median(values) for name, values in costs.items()}


async def _timed(action: Callable[[], Awaitable[None]]) -> float:
    began = perf_counter()
    await action()
    return perf_counter() - began


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--entries", type=int, default=200)
    parser.add_argument("--rivals", type=int, default=6)
    options = parser.parse_args()
    costs = asyncio.run(entry_costs(options.entries, options.rivals))
    report = {
        "us per event, 2-FGME": fmean(microseconds_per_event(TwoFGME) for _ in range(5)),
        "us per event, member": fmean(microseconds_per_event(founder) for _ in range(5)),
        "us per entry": 1e6 * costs["entry"],
        "us per request-reply to each, raw pyzmq": 1e6 * costs["raw"],
        "us per request-reply to each, sessions": 1e6 * costs["sessions"],
        "entry / raw": costs["entry"] / costs["raw"],
        "entry / sessions": costs["entry"] / costs["sessions"],
    }
    if options.json:
        print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())
        return
    for name, value in report.items():
        print(f"{name:42} {value:10.2f}")


if __name__ == "__main__":
    main()
