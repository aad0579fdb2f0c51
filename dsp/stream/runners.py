"""Where the work of a body is done: away from the event loop, or, in a world, in virtual time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from dsp.transport.sim.virtual_time import VirtualTimeLoop

__all__ = ["Runner", "ThreadRunner", "InlineRunner", "make_runner"]

T = TypeVar("T")


class Runner(Protocol):
    """Calls functions that may take their time."""

    async def call(self, work: Callable[[], T], records: int) -> T:
        """Call a function that processes so many records."""
        ...

    async def close(self) -> None:
        """Let go of threads, once the calls under way are over."""
        ...


class ThreadRunner:
    """Worker threads: heartbeats, acknowledgements and protocols go on while bodies compute.

    Args:
        threads: how many calls may be under way at the same time.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"dsp {name}")

    async def call(self, work: Callable[[], T], records: int) -> T:
        # Cancelled, the thread goes on with what it does: a thread cannot be stopped.
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class InlineRunner:
    """Calls on the loop, after the time that the work is declared to take.

    Args:
        service_time: seconds per record.
    """

    def __init__(self, service_time: float) -> None:
        self._service_time = service_time

    async def call(self, work: Callable[[], T], records: int) -> T:
        await asyncio.sleep(self._service_time * records)
        return work()

    async def close(self) -> None:
        pass


def make_runner(threads: int, service_time: float, name: str) -> Runner:
    """Give the runner that fits the running loop."""
    if isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
        return InlineRunner(service_time / threads)
    return ThreadRunner(threads, name)
