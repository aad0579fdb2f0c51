"""Reading that blocks, away from the event loop, so that a cancelled read loses nothing."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from dsp.stream.sources.base import Chunk, Position, Source, SourceContext

__all__ = ["Kept", "BlockingSource"]

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Kept(Generic[T]):
    """Something that is waited for, again and again if need be, until it was had once."""

    def __init__(self) -> None:
        self._task: asyncio.Future[T] | None = None

    async def get(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Wait for what was begun before, or begin; cancelled, what was begun goes on."""
        if self._task is None:
            self._task = asyncio.ensure_future(begin())
        task = self._task
        try:
            result = await asyncio.shield(task)
        except asyncio.CancelledError:
            raise  # it may have ended in this very moment: the next call gets what it gave
        except BaseException:
            self._task = None
            raise
        self._task = None
        return result

    async def close(self) -> None:
        """Wait for what is under way: a thread cannot be stopped, and must not be surprised."""
        if self._task is not None:
            try:
                await self._task
            except Exception:
                logger.warning("what was under way at the end failed", exc_info=True)
            self._task = None

    async def cancel(self) -> None:
        """End what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None


class BlockingSource(Source):
    """A source whose reading blocks. Its methods below are called in a thread, one at a time."""

    def __init__(self) -> None:
        self._context: SourceContext | None = None
        self._reading: Kept[Chunk | None] = Kept()

    @abstractmethod
    def begin(self, position: Position, count: int) -> None:
        """Open what is read, at a position."""

    @abstractmethod
    def take(self, most: int) -> Chunk | None:
        """Read."""

    @abstractmethod
    def end(self) -> None:
        """Close what is read."""

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        self._context = context
        await context.off_loop(self.begin, position, count)

    async def read(self, most: int) -> Chunk | None:
        context = self._context
        assert context is not None
        return await self._reading.get(lambda: context.off_loop(self.take, most))

    async def close(self) -> None:
        await self._reading.close()
        self.end()
