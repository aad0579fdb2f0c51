"""Bounded queues that lose nothing when a waiter is cancelled."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from dsp.errors import BusyError, WouldBlock

__all__ = ["BoundedQueue"]

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """A FIFO bounded in items and bytes, for many producers and one consumer.

    ``asyncio.Queue`` does not bound bytes and cannot be closed. Here an item is added or taken in
    the same step in which the call returns, so a cancelled ``put`` added nothing and a cancelled
    ``get`` took nothing. Producers that wait are served in the order in which they came.

    Args:
        max_items: most items at once.
        max_bytes: most bytes at once. A single larger item is taken when the queue is empty.
        on_room: called in the step in which an item is taken, if ``has_room`` has said no before.
    """

    # What waits here may wait long, and users get it: bytes of its own.
    takes_views = False

    def __init__(
        self, max_items: int, max_bytes: int, on_room: Callable[[], None] | None = None
    ) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._on_room = on_room
        self._items: deque[tuple[T, int]] = deque()
        self.bytes = 0
        """Bytes of the items inside."""
        self._refused = False
        self.taken = 0
        """How many items were ever taken."""
        self._producers: deque[asyncio.Future[None]] = deque()
        self._consumer: asyncio.Future[None] | None = None
        self._ended: Callable[[], Exception] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def has_room(self, size: int) -> bool:
        """Tell whether an item of this size would be taken now; if not, ``on_room`` tells when."""
        items = self._items
        if not items or (len(items) < self._max_items and self.bytes + size <= self._max_bytes):
            return True
        self._refused = True
        return False

    def notify(self) -> None:
        """Let ``on_room`` be called when the next item is taken, as if ``has_room`` had said no."""
        self._refused = True

    def put_nowait(self, item: T, size: int) -> None:
        """Add an item.

        Raises:
            WouldBlock: there is no room, or others wait for it already.
            Exception: what ``end`` was told.
        """
        if self._ended is not None:
            raise self._ended()
        if self._producers or not self.has_room(size):
            raise WouldBlock(f"queue full: {len(self._items)} items, {self.bytes} bytes")
        self.force(item, size)

    def try_put(self, item: T, size: int) -> bool:
        """Add an item if there is room and nobody waits for it; tell whether it was added."""
        items = self._items
        if items and (
            self._producers or len(items) >= self._max_items or self.bytes + size > self._max_bytes
        ):
            return False
        if self._ended is not None or self._producers:
            return False
        items.append((item, size))
        self.bytes += size
        if self._consumer is not None:
            self._wake_consumer()
        return True

    async def put(self, item: T, size: int) -> None:
        """Add an item; wait for room.

        Raises:
            Exception: what ``end`` was told, before or while waiting.
        """
        if self._ended is not None:
            raise self._ended()
        if self._producers or not self.has_room(size):
            await self._wait_for_room(size)
        self.force(item, size)

    async def _wait_for_room(self, size: int) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._producers.append(waiter)
        try:
            # Room that a small item would fit in may be too little for ours: look again.
            while True:
                await waiter
                if self._ended is not None:
                    raise self._ended()
                if self.has_room(size):
                    return
                waiter = asyncio.get_running_loop().create_future()
                self._producers[0] = waiter
        finally:
            self._producers.remove(waiter)
            # Hand the turn on: whether we used the room or were cancelled, there may be more.
            self._wake_producer()

    def force(self, item: T, size: int) -> None:
        """Add an item whatever the bound. For events that must not wait, such as ``PeerDown``."""
        self._items.append((item, size))
        self.bytes += size
        self._wake_consumer()

    def force_all(self, items: Sequence[tuple[T, int]], size: int) -> None:
        """Add items with their sizes whatever the bound, and the sum of the sizes."""
        self._items.extend(items)
        self.bytes += size
        if self._consumer is not None:
            self._wake_consumer()

    def take(self, most_items: int, most_bytes: int) -> tuple[list[T], int]:
        """Take items from the front within two bounds; give them and the sum of their sizes."""
        queued = self._items
        taken: list[T] = []
        total = 0
        while queued and len(taken) < most_items:
            item, size = queued[0]
            if total + size > most_bytes:
                break
            queued.popleft()
            total += size
            taken.append(item)
        if taken:
            self.bytes -= total
            self.taken += len(taken)
            self._wake_producer()
        return taken, total

    def get_nowait(self) -> T | None:
        """Take the first item, or None if there is none."""
        if not self._items:
            return None
        item, size = self._items.popleft()
        self.bytes -= size
        self.taken += 1
        if self._producers:
            self._wake_producer()
        elif self._refused and self._on_room is not None:
            self._refused = False
            self._on_room()
        return item

    def peek(self) -> T | None:
        """Look at the first item, or None if there is none."""
        return self._items[0][0] if self._items else None

    async def get(self) -> T:
        """Take the first item; wait for one.

        Raises:
            BusyError: another task waits here.
            Exception: what ``end`` was told, once the queue is empty.
        """
        if self._consumer is not None:
            raise BusyError("another task is receiving here; one receiver at a time")
        while not self._items:
            if self._ended is not None:
                raise self._ended()
            self._consumer = asyncio.get_running_loop().create_future()
            try:
                await self._consumer
            finally:
                self._consumer = None
        item = self.get_nowait()
        assert item is not None
        return item

    def drain(self) -> list[T]:
        """Take everything."""
        items = [item for item, _ in self._items]
        self.taken += len(items)
        self._items.clear()
        self.bytes = 0
        self._wake_producer()
        return items

    def end(self, error: Callable[[], Exception]) -> None:
        """Take no more items: producers get ``error()`` now, the consumer once it is empty."""
        if self._ended is None:
            self._ended = error
        for waiter in self._producers:
            if not waiter.done():
                waiter.set_result(None)
        self._wake_consumer()

    def _wake_producer(self) -> None:
        if self._producers and not self._producers[0].done():
            self._producers[0].set_result(None)

    def _wake_consumer(self) -> None:
        if self._consumer is not None and not self._consumer.done():
            self._consumer.set_result(None)
