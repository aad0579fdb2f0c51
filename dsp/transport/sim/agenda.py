"""What happens when on a simulated network: actions in the order of times, then of entry.

An agenda of its own rather than ``loop.call_at`` for each frame: asyncio's heap does not keep the
order of timers that are due at the same time, and links are FIFO.
"""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context

__all__ = ["Agenda"]


class Agenda:
    """Actions at times on the clock of the loop that it is on; one timer for all of them."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._entries: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        # A context of its own: the network belongs to no host that happens to use it.
        self._context = Context()

    @property
    def now(self) -> float:
        """The time on the loop's clock; 0 before anything ran."""
        return self._loop.time() if self._loop is not None else 0.0

    def use_running_loop(self) -> None:
        """Count time by the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def after(self, delay: float, action: Callable[[], None]) -> None:
        """Do something some seconds from now."""
        self.at(self.now + delay, action)

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Do something at a time."""
        heapq.heappush(self._entries, (when, self._count, action))
        self._count += 1
        if self._entries[0][2] is action:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._entries:
            assert self._loop is not None
            self._timer = self._loop.call_at(self._entries[0][0], self._run, context=self._context)

    def _run(self) -> None:
        self._timer = None
        try:
            while self._entries and self._entries[0][0] <= self.now:
                heapq.heappop(self._entries)[2]()
        finally:
            self._arm()
