"""The lock over real ZeroMQ, a process for each member: one is killed, one stopped and
continued."""

import asyncio
import os
import signal
import sys
from typing import Any

import orjson
import pytest

from dsp.errors import LeaseLost
from dsp.mutex.fence import Fence

URL = "zmq+tcp://127.0.0.1:0"
PATIENCE = 120.0


class Visitor:
    """A member's process, and what it has told."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process
        self.address = ""
        self.visits = 0
        self.effects = 0
        self.closed = False

    def tell(self, order: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps(order) + b"\n")

    async def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        while self._state() != "T":
            await asyncio.sleep(0.001)

    def _state(self) -> str:
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0]


class House:
    """The resource, guarded by a fence, and everybody who visits it."""

    def __init__(self) -> None:
        self.fence = Fence()
        self.accepted: list[int] = []
        self.refused: list[tuple[str, int]] = []
        self.visitors: dict[str, Visitor] = {}
        self.to_stop = self.to_kill = ""
        self.stopped_with = 0
        self.news = asyncio.Event()

    async def start(self, name: str, suspect_after: float) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.mutex.visitor",
            name,
            URL,
            str(suspect_after),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self.visitors[name] = Visitor(name, process)

    async def listen(self, visitor: Visitor) -> None:
        assert visitor.process.stdout is not None
        while line := await visitor.process.stdout.readline():
            await self.take(visitor, orjson.loads(line))
            self.news.set()

    async def take(self, visitor: Visitor, report: dict[str, Any]) -> None:
        match report["kind"]:
            case "ready":
                visitor.address = report["address"]
            case "visited":
                visitor.visits = report["count"]
            case "closed":
                visitor.closed = True
            case "present" | "effect":
                await self.show(visitor, report)

    async def show(self, visitor: Visitor, report: dict[str, Any]) -> None:
        number, effect = report["number"], report["kind"] == "effect"
        try:
            self.fence.accept(number)
        except LeaseLost:
            refused = True
            self.refused.append((visitor.name, number))
        else:
            refused = False
            if effect:
                self.accepted.append(number)
                visitor.effects += 1
        if effect and not refused and visitor.effects >= 4:
            # It is inside, and waits for the answer: it can do nothing before we let it.
            if visitor.name == self.to_kill:
                self.to_kill = ""
                visitor.process.kill()
                return
            # After the first of its two effects: the second will show the number once more.
            if visitor.name == self.to_stop and visitor.effects % 2 == 1:
                self.to_stop = ""
                await visitor.stop()
                self.stopped_with = number
        highest = self.fence.highest[1 - (number & 1)]
        visitor.tell({"answer": report["id"], "refused": refused, "highest": highest})

    async def until(self, condition: Any, what: str) -> None:  # noqa: ANN401
        try:
            async with asyncio.timeout(PATIENCE):
                while not condition():
                    self.news.clear()
                    await self.news.wait()
        except TimeoutError:
            story = {v.name: (v.visits, v.effects, v.closed) for v in self.visitors.values()}
            raise AssertionError(f"not within {PATIENCE} s: {what}; {story}") from None


async def visit(sizes: tuple[int, int], entries: int, suspect_after: float) -> House:
    """Everybody visits; b0 is killed inside, a0 stopped inside and continued."""
    house = House()
    names = [
        [f"{letter}{n}" for n in range(size)] for letter, size in zip("ab", sizes, strict=True)
    ]
    everybody = [*names[0], *names[1]]
    for name in everybody:
        await house.start(name, suspect_after)
    listening = [asyncio.create_task(house.listen(v)) for v in house.visitors.values()]
    visitors = house.visitors
    try:
        await house.until(lambda: all(v.address for v in visitors.values()), "all are there")
        groups = [[(name, visitors[name].address) for name in group] for group in names]
        house.to_kill = "b0"
        for name in everybody:
            visitors[name].tell({"groups": groups, "entries": entries})
        await house.until(lambda: house.to_kill == "", "b0 is inside and killed")
        house.to_stop = "a0"
        await house.until(lambda: house.stopped_with, "a0 is inside and stopped")
        stopped = visitors["a0"]
        await house.until(
            lambda: house.fence.highest[1] > house.stopped_with, "the other group got in"
        )
        stopped.process.send_signal(signal.SIGCONT)
        await house.until(
            lambda: ("a0", house.stopped_with) in house.refused, "a0 is refused with its number"
        )
        alive = [v for v in visitors.values() if v.name != "b0"]
        await house.until(lambda: all(v.visits == entries for v in alive), "all were inside")
        for visitor in alive:
            assert visitor.process.stdin is not None
            visitor.process.stdin.close()
        await house.until(lambda: all(v.closed for v in alive), "all have closed")
        for visitor in alive:
            assert await visitor.process.wait() == 0
    finally:
        for visitor in visitors.values():
            if visitor.process.returncode is None:
                os.kill(visitor.process.pid, signal.SIGKILL)
            await visitor.process.wait()
        await asyncio.gather(*listening)
    return house


def check(house: House) -> None:
    """As the resource saw it, the groups took turns: no number of a group that was over."""
    highest = [0, 0]
    for number in house.accepted:
        assert number > highest[1 - (number & 1)]
        highest[number & 1] = max(highest[number & 1], number)


@pytest.mark.timeout(600)
def test_one_is_killed_and_one_stopped_and_continued() -> None:
    check(asyncio.run(visit((2, 3), entries=16, suspect_after=2.0)))


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_a_hundred_entries_each_of_six_and_six() -> None:
    check(asyncio.run(visit((6, 6), entries=100, suspect_after=3.0)))
