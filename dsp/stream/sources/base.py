"""The contract of a source, and the sources that come from values in memory."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dsp.errors import ClosedError, ConfigError

__all__ = [
    "Chunk",
    "Unreadable",
    "Position",
    "SourceContext",
    "Source",
    "IterableSource",
    "AsyncIterableSource",
    "QueueSource",
    "as_source",
]

Position = Any
"""Where a source goes on after a restart: anything that JSON can hold."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that a source found and could not make a value of: it goes to the dead letters.

    Attributes:
        value: what was found, as far as it can be shown.
        error: what is wrong with it.
        offset: its number, where the values of the chunk have offsets.
    """

    value: Any
    error: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records that were read together.

    Attributes:
        values: a list of values, or columns.
        position: where to go on after these.
        offsets: a number for each record that is the same whenever it is read, and larger for
            later ones; None if records are to be counted, first the values, then the failures.
        failures: records that could not be read; ``values`` may be empty if there are some.
    """

    values: Any
    position: Position = None
    offsets: Sequence[int] | None = None
    failures: Sequence[Unreadable] = ()


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What the engine gives a source.

    Attributes:
        off_loop: runs a blocking function away from the event loop.
        name: of the operator.
    """

    off_loop: Callable[..., Any]
    name: str


class Source(ABC):
    """Gives records, a chunk at a time.

    Attributes:
        replayable: whether ``open`` with an earlier position gives the same records again. What is
            read of a source that is not, and has no journal, is lost if its host dies.
        columnar: whether chunks hold columns.
        drains: whether ``stop`` makes it give what it took in already, and then end. Without that
            the engine just stops reading.
    """

    replayable: ClassVar[bool] = False
    drains: bool = False
    columnar: bool = False

    def check(self) -> None:  # noqa: B027
        """Look, before anything starts, whether this can work. Quick, and changes nothing.

        Raises:
            ConfigError: it cannot; names the place and what to do.
        """

    async def open(self, context: SourceContext, position: Position, count: int) -> None:  # noqa: B027
        """Begin, or go on.

        Args:
            context: what the engine gives.
            position: of the last chunk whose records are all dealt with; None at the beginning.
            count: how many records were dealt with before.
        """

    @property
    def waiting(self) -> int | None:
        """Records that are there and were not read yet; None if the source cannot tell. Quick.

        With it the load of the pipeline is known while records are held back for want of room.
        """
        return None

    @abstractmethod
    async def read(self, most: int) -> Chunk | None:
        """Wait for records, at least one and at most so many; None when there are no more.

        May be cancelled while it waits, and must lose nothing by that.
        """

    def dealt_with(self, position: Position) -> None:  # noqa: B027
        """All chunks up to the one with this position are dealt with: they are not needed again.

        Called on the event loop: must be quick.
        """

    def stop(self) -> None:  # noqa: B027
        """Take nothing more in. Called where ``drains`` is true."""

    async def close(self) -> None:  # noqa: B027
        """Let go of everything."""


class IterableSource(Source):
    """Values of an iterable.

    Args:
        values: the iterable; or a function that gives one, which makes it replayable if it always
            gives the same values.
        rate: records per second; as fast as possible without it.
    """

    replayable = True

    def __init__(
        self, values: Iterable[Any] | Callable[[], Iterable[Any]], *, rate: float | None = None
    ) -> None:
        if rate is not None and rate <= 0:
            raise ConfigError(f"rate is {rate:g}: records per second, over 0")
        self._make = values if callable(values) else lambda: values
        self._rate = rate
        self._left: Iterator[Any] = iter(())
        self._count = 0
        self._given = 0
        self._began = 0.0
        self._off_loop: Callable[..., Any] | None = None

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        self._left = iter(self._make())
        self._count = int(position or 0)
        self._given = 0
        self._began = asyncio.get_running_loop().time()
        self._off_loop = context.off_loop
        if self._count:
            await context.off_loop(self._take, self._count)

    def _take(self, most: int) -> list[Any]:
        values = []
        for value in self._left:
            values.append(value)
            if len(values) == most:
                break
        return values

    async def read(self, most: int) -> Chunk | None:
        most = await self._due(most)
        # A list is read here: a hop to another thread costs more than the records.
        assert self._off_loop is not None
        values = self._take(most)
        if not values:
            return None
        self._count += len(values)
        self._given += len(values)
        return Chunk(values, self._count)

    @property
    def waiting(self) -> int | None:
        if self._rate is None or self._off_loop is None:
            return None  # without a rate it is all that is left, however much that is
        passed = asyncio.get_running_loop().time() - self._began
        return max(0, int(passed * self._rate + 1e-9) - self._given)

    async def _due(self, most: int) -> int:
        """Wait until a record is due at the rate; tell how many are."""
        if self._rate is None:
            return most
        loop = asyncio.get_running_loop()
        next_at = self._began + (self._given + 1) / self._rate
        if next_at > loop.time():
            await asyncio.sleep(next_at - loop.time())
        due = int((loop.time() - self._began) * self._rate + 1e-9) - self._given
        return max(1, min(most, due))


class AsyncIterableSource(Source):
    """Values of an async iterable, as they come. Not replayable."""

    def __init__(self, values: AsyncIterable[Any]) -> None:
        self._values = values
        self._left: AsyncIterator[Any] | None = None
        self._next: asyncio.Task[Any] | None = None

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        self._left = aiter(self._values)

    async def read(self, most: int) -> Chunk | None:
        assert self._left is not None
        values: list[Any] = []
        while len(values) < most:
            if self._next is None:
                # A task of its own: a cancelled read must not cancel what the iterable does.
                self._next = asyncio.ensure_future(self._advance())
            if values and not self._next.done():
                await asyncio.sleep(0)
                if not self._next.done():
                    break
            try:
                value = await asyncio.shield(self._next)
            except StopAsyncIteration:
                break
            self._next = None
            values.append(value)
        return Chunk(values) if values else None

    async def _advance(self) -> Any:  # noqa: ANN401
        assert self._left is not None
        return await anext(self._left)

    async def close(self) -> None:
        if self._next is not None and not self._next.done():
            self._next.cancel()
            await asyncio.wait([self._next])
        close = getattr(self._left, "aclose", None)
        if close is not None:
            await close()


class QueueSource(Source):
    """Values that callbacks bring: ``put`` waits, ``put_nowait`` refuses, while the queue is full.

    Args:
        most: values that may wait.
    """

    drains = True

    def __init__(self, most: int = 10_000) -> None:
        self._queue: asyncio.Queue[Any] = asyncio.Queue(most)
        self._ended = False
        self._wake = asyncio.Event()

    async def put(self, value: Any) -> None:  # noqa: ANN401
        """Hand over a value; wait while the queue is full.

        Raises:
            ClosedError: after ``end``.
        """
        self._check_open()
        await self._queue.put(value)
        self._wake.set()

    def put_nowait(self, value: Any) -> None:  # noqa: ANN401
        """Hand over a value now, or raise ``asyncio.QueueFull``."""
        self._check_open()
        self._queue.put_nowait(value)
        self._wake.set()

    @property
    def waiting(self) -> int:
        return self._queue.qsize()

    def end(self) -> None:
        """Say that no more values will come."""
        self._ended = True
        self._wake.set()

    def stop(self) -> None:
        self.end()

    def _check_open(self) -> None:
        if self._ended:
            raise ClosedError("the queue was ended: no more values can be put")

    async def read(self, most: int) -> Chunk | None:
        while self._queue.empty():
            if self._ended:
                return None
            self._wake.clear()
            await self._wake.wait()
        values: list[Any] = []
        while len(values) < most and not self._queue.empty():
            values.append(self._queue.get_nowait())
        return Chunk(values)


def as_source(source: object) -> Source:
    """Give the source that an object stands for.

    Raises:
        ConfigError: neither a source nor something to iterate over.
    """
    if isinstance(source, Source):
        return source
    if isinstance(source, AsyncIterable):
        return AsyncIterableSource(source)
    if isinstance(source, str | bytes):
        raise ConfigError(f"{source!r:.80} is no source; for a file see dsp.stream.sources")
    if isinstance(source, Iterator):
        return OnceSource(source)
    if isinstance(source, Iterable):
        return IterableSource(source)
    raise ConfigError(f"{source!r:.80} is no source: give a Source, an iterable or async iterable")


class OnceSource(IterableSource):
    """Values of an iterator, which can be gone through once."""

    replayable = False
