"""The loop in virtual time: waiting is free, the real world is out of reach, stalls are seen."""

import asyncio
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from dsp.errors import SimulationError, StalledError
from dsp.transport.sim.virtual_time import VirtualTimeLoop


def run(main: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def test_time_starts_at_zero_and_jumps() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        times = [loop.time()]
        for seconds in (3600, 0.25, 1e-9):
            await asyncio.sleep(seconds)
            times.append(loop.time())
        return times

    assert run(main()) == [0, 3600, 3600.25, pytest.approx(3600.250000001, abs=1e-12)]


def test_a_million_short_sleeps_do_not_drift() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        for _ in range(10_000):
            await asyncio.sleep(0.1)
        return loop.time()

    assert run(main()) == pytest.approx(1000, abs=1e-5)


def test_timers_fire_in_order_and_time_outs_work() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        async def say(name: str, after: float) -> None:
            await asyncio.sleep(after)
            order.append(name)

        async with asyncio.TaskGroup() as group:
            for name, after in (("c", 3), ("a", 1), ("b", 2)):
                group.create_task(say(name, after))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()
        return order

    assert run(main()) == ["a", "b", "c"]


FORBIDDEN: dict[str, Callable[[], object]] = {
    "socket": socket.socket,
    "thread": lambda: threading.Thread(target=print).start(),
    "sleep": lambda: time.sleep(0.001),
    "process": lambda: subprocess.Popen([sys.executable, "-c", ""]),
    "address": lambda: socket.getaddrinfo("localhost", 80),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_real_world_is_out_of_reach(name: str) -> None:
    async def main() -> None:
        with pytest.raises(SimulationError, match="in a simulated world"):
            FORBIDDEN[name]()

    run(main())


def test_asyncio_ways_into_the_real_world_are_closed() -> None:
    async def main() -> None:
        with pytest.raises(SimulationError):
            await asyncio.to_thread(print)
        with pytest.raises(SimulationError):
            await asyncio.open_connection("127.0.0.1", 9)
        with pytest.raises(SimulationError):
            await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        loop = asyncio.get_running_loop()
        with pytest.raises(SimulationError):
            loop.add_reader(0, print)

    run(main())


def test_outside_the_loop_the_real_world_is_as_before() -> None:
    VirtualTimeLoop().close()
    time.sleep(0)
    with socket.socket():
        pass
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


def test_a_stall_raises_and_names_who_waits() -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await asyncio.gather(asyncio.create_task(wait_for_ever(), name="the waiter"))

    with pytest.raises(StalledError, match=r"the waiter: .*wait_for_ever") as caught:
        run(main())
    assert "nothing can ever happen again" in str(caught.value)
