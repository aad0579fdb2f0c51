"""Where the work of a body is done: away from the event loop, or, in a world, in virtual time."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import perf_counter
from typing import Any, Protocol, TypeVar

from dsp.transport.sim.virtual_time import VirtualTimeLoop

__all__ = ["Runner", "ThreadRunner", "InlineRunner", "make_runner"]

T = TypeVar("T")


class Runner(Protocol):
    """Calls functions that may take their time."""

    async def call(self, work: Callable[[], T], records: int, seconds: float | None = None) -> T:
        """Call a function that processes so many records, which take so long if that is known.

        It may return without giving others their turn: the caller sees to that.
        """
        ...

    def declared(self, values: Sequence[Any]) -> list[float] | None:
        """Tell what each of some values takes, if that is declared and not measured."""
        ...

    def at_once(self, most: int) -> int:
        """Tell how many records to process in one call, if there are so many at most."""
        ...

    def is_short(self, records: int) -> bool:
        """Tell whether a call for so many records may be made here and now, on the loop."""
        ...

    def here(self, work: Callable[[], T], records: int) -> T:
        """Make a short call here and now."""
        ...

    async def close(self) -> None:
        """Let go of threads, once the calls under way are over."""
        ...


# Calls that are looked back on, and how many are made in threads after one that was too slow.
LOOK_BACK = 4
FIRST_PENANCE = 64
# A call on the loop that takes so many times longer than it may is taken for a surprise.
SURPRISE = 25


class ThreadRunner:
    """Worker threads: heartbeats, acknowledgements and protocols go on while bodies compute.

    A hop to a thread and back costs more than a cheap body takes for a batch, and two threads that
    both compute wait for each other. So calls that are known to be short are made on the loop, and
    in a thread again as soon as one was not. Where several threads are asked for, they are used.

    Args:
        threads: how many calls may be under way at the same time.
        inline_time: seconds that a call on the loop may take; 0 to use threads always.
        clock: tells the time, in seconds, on any thread.
    """

    def __init__(
        self,
        threads: int,
        name: str,
        inline_time: float = 0.0,
        *,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._clock = clock
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"dsp {name}")
        self._inline_time = inline_time if threads == 1 else 0.0
        # Seconds per record. A thread that waits for another one looks slow, so the quickest call
        # tells what a body needs, and the last ones only that it is not far from that.
        self._each: deque[float] = deque(maxlen=LOOK_BACK)
        self._quickest = inf
        self._penance = 0
        self._next_penance = FIRST_PENANCE

    def declared(self, values: Sequence[Any]) -> list[float] | None:
        return None

    async def call(self, work: Callable[[], T], records: int, seconds: float | None = None) -> T:
        if not records or not self._inline_time:
            # Cancelled, the thread goes on with what it does: a thread cannot be stopped.
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        if self.is_short(records):
            return self.here(work, records)
        self._penance = max(0, self._penance - 1)
        result, took = await asyncio.get_running_loop().run_in_executor(
            self._pool, self._timed, work
        )
        self._note(took / records)
        return result

    def here(self, work: Callable[[], T], records: int) -> T:
        result, took = self._timed(work)
        self._took(took, records)
        return result

    def _timed(self, work: Callable[[], T]) -> tuple[T, float]:
        started = self._clock()
        return work(), self._clock() - started

    def is_short(self, records: int) -> bool:
        if not self._inline_time or self._penance or len(self._each) < LOOK_BACK:
            return False
        usual = sum(self._each) / len(self._each)
        return (
            self._quickest * records <= self._inline_time
            and usual * records <= SURPRISE * self._inline_time
        )

    def _note(self, each: float) -> None:
        self._each.append(each)
        self._quickest = min(self._quickest, each)

    def _took(self, seconds: float, records: int) -> None:
        self._note(seconds / records)
        if seconds > SURPRISE * self._inline_time:
            self._each.clear()
            self._quickest = inf
            self._penance = self._next_penance
            self._next_penance *= 2

    def at_once(self, most: int) -> int:
        if not self._inline_time or self._penance or not self._each:
            return most
        short = int(self._inline_time / max(self._quickest, 1e-9))
        # A body that is slow for a single record runs in threads, as many records as there are.
        return min(most, short) if short else most

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class InlineRunner:
    """Calls on the loop, after the time that the work is declared to take.

    Args:
        service_time: seconds per record, or a function that gives them for a value.
        inline: whether what takes no time may be called without a hop.
    """

    def __init__(
        self, service_time: float | Callable[[Any], float], *, inline: bool = False
    ) -> None:
        self._service_time = service_time
        self._is_short = inline and service_time == 0

    def declared(self, values: Sequence[Any]) -> list[float] | None:
        given = self._service_time
        return [given(value) for value in values] if callable(given) else [given] * len(values)

    async def call(self, work: Callable[[], T], records: int, seconds: float | None = None) -> T:
        given = self._service_time
        if seconds is None:
            # What takes a time by its values is called with it.
            seconds = 0.0 if callable(given) else given * records
        await asyncio.sleep(seconds)
        return work()

    def at_once(self, most: int) -> int:
        return most

    def is_short(self, records: int) -> bool:
        return self._is_short

    def here(self, work: Callable[[], T], records: int) -> T:
        return work()

    async def close(self) -> None:
        pass


def make_runner(
    threads: int,
    service_time: float | Callable[[Any], float],
    name: str,
    inline_time: float = 0.0,
) -> Runner:
    """Give the runner that fits the running loop."""
    if isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
        # As many calls are under way at the same time as there are threads: each takes its time.
        return InlineRunner(service_time, inline=inline_time > 0)
    return ThreadRunner(threads, name, inline_time)
