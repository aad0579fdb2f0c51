"""A journal that makes a source lossless which cannot be replayed."""

import asyncio
import os
import sqlite3
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from dsp.errors import CodecError, ConfigError, DspError
from dsp.stream.codecs import Codec, make_codec
from dsp.stream.sources.base import Chunk, Position, Source, SourceContext, Unreadable
from dsp.stream.sources.blocking import Kept

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["Journaled"]

_TABLES = """
CREATE TABLE IF NOT EXISTS chunks
    (first INTEGER PRIMARY KEY, after INTEGER, codec TEXT, payload BLOB, failures BLOB);
CREATE TABLE IF NOT EXISTS next (number INTEGER);
"""


class Journaled(Source):
    """Writes what another source gives to a journal before it is given on.

    What is read is on disk before anybody sees it, and is deleted when all that came of it has
    reached the sinks. After a crash what is left is given again, with the same identities, before
    anything new. What the other source holds in its own memory is not in the journal yet.

    Args:
        source: one that is not replayable.
        path: of the journal, a file of its own.
        codec: of the values in it.
        fsync: whether to wait for the disk, so that it survives the power too and not only the
            process.
    """

    replayable = True

    def __init__(
        self,
        source: Source,
        path: str | os.PathLike[str],
        *,
        codec: "str | type[Message] | Codec" = "json",
        fsync: bool = True,
    ) -> None:
        if source.replayable:
            raise ConfigError(f"{type(source).__name__} can be replayed: it needs no journal")
        self.source = source
        self.drains = source.drains
        self.columnar = source.columnar
        self.path = Path(path)
        self._codec = make_codec("arrow" if source.columnar else codec)
        self._fsync = fsync
        self._file: sqlite3.Connection | None = None
        self._left: deque[int] = deque()
        self._next = 0
        self._dealt_with = 0
        self._context: SourceContext | None = None
        self._reading: Kept[Chunk | None] = Kept()
        self._writing: asyncio.Future[Chunk] | None = None
        self._cleaning: asyncio.Task[None] | None = None

    def check(self) -> None:
        self.source.check()
        folder = self.path.absolute().parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise ConfigError(f"{self.path}: nothing can be written to {folder}; make the folder")

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        self._context = context
        await context.off_loop(self._open_file, int(position or 0))
        await self.source.open(context, None, self._next)

    def _open_file(self, dealt_with: int) -> None:
        try:
            file = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            file.execute("PRAGMA journal_mode=WAL")
            file.execute(f"PRAGMA synchronous={'FULL' if self._fsync else 'NORMAL'}")
            file.executescript(_TABLES)
            file.execute("DELETE FROM chunks WHERE after <= ?", (dealt_with,))
            self._left.extend(row[0] for row in file.execute("SELECT first FROM chunks ORDER BY 1"))
            (number,) = file.execute("SELECT max(number) FROM next").fetchone()
        except sqlite3.Error as error:
            raise ConfigError(
                f"{self.path} cannot be used as a journal: {error}; give it a path of its own"
            ) from error
        self._file = file
        # The offsets may be of a journal that somebody removed: numbers must not come again.
        self._next = max(number or 0, dealt_with)

    async def read(self, most: int) -> Chunk | None:
        context = self._context
        assert context is not None
        if self._left:
            return await self._reading.get(lambda: context.off_loop(self._again))
        return await self._reading.get(lambda: self._new(most, context))

    async def _new(self, most: int, context: SourceContext) -> Chunk | None:
        chunk = await self.source.read(most)
        if chunk is None:
            return None
        # A task of its own: once read, it is written, whoever cancels the reading.
        self._writing = asyncio.ensure_future(context.off_loop(self._write, chunk))
        return await asyncio.shield(self._writing)

    # -- in a worker thread ---------------------------------------------------------------

    def _write(self, chunk: Chunk) -> Chunk:
        assert self._file is not None
        first = self._next
        failures = list(chunk.failures)
        try:
            payload = self._codec.encode(chunk.values)
            values = chunk.values
        except CodecError:
            values, failures, payload = self._one_by_one(chunk)
        middle = first + len(values)
        after = middle + len(failures)
        numbered = [replace(each, offset=middle + n) for n, each in enumerate(failures)]
        told = [[_text(each.value), each.error] for each in numbered]
        row = (first, after, self._codec.name, payload, orjson.dumps(told))
        try:
            self._file.execute("BEGIN IMMEDIATE")
            self._file.execute("INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", row)
            self._file.execute("DELETE FROM next")
            self._file.execute("INSERT INTO next VALUES (?)", (after,))
            self._file.execute("COMMIT")
        except sqlite3.Error as error:
            raise DspError(
                f"{self.path}: the journal cannot be written: {error}; {after - first} records "
                "that were read are lost"
            ) from error
        self._next = after
        return Chunk(values, after, range(first, middle), numbered)

    def _one_by_one(self, chunk: Chunk) -> tuple[list[Any], list[Unreadable], bytes]:
        """Find the values that the codec has no form for: they are dead letters."""
        fine: list[Any] = []
        failures = list(chunk.failures)
        for value in chunk.values:
            try:
                self._codec.encode([value])
                fine.append(value)
            except CodecError as error:
                failures.append(Unreadable(repr(value)[:1000], f"{self.path}: {error}"))
        return fine, failures, self._codec.encode(fine)

    def _again(self) -> Chunk:
        """Give a chunk of an earlier run."""
        assert self._file is not None
        first = self._left[0]
        query = "SELECT after, codec, payload, failures FROM chunks WHERE first = ?"
        after, codec, payload, told = self._file.execute(query, (first,)).fetchone()
        if codec != self._codec.name:
            raise ConfigError(
                f"{self.path} has records of the codec {codec}: read them with "
                f"Journaled(..., codec={codec!r}) before another one is used"
            )
        values = self._codec.decode(payload)
        middle = first + len(values)
        failures = [Unreadable(v, e, middle + n) for n, (v, e) in enumerate(orjson.loads(told))]
        self._left.popleft()
        return Chunk(values, after, range(first, middle), failures)

    def _delete(self) -> None:
        assert self._file is not None
        self._file.execute("DELETE FROM chunks WHERE after <= ?", (self._dealt_with,))

    # -- what is dealt with ---------------------------------------------------------------

    def dealt_with(self, position: Position) -> None:
        self._dealt_with = int(position)
        if self._cleaning is None:
            self._cleaning = asyncio.ensure_future(self._clean())

    async def _clean(self) -> None:
        assert self._context is not None
        done = 0
        while done < self._dealt_with and self._file is not None:
            done = self._dealt_with
            await self._context.off_loop(self._delete)
        self._cleaning = None

    def stop(self) -> None:
        self.source.stop()

    async def close(self) -> None:
        # What is being written is finished; what is waited for is not.
        await self._reading.cancel()
        await self.source.close()
        if under_way := [task for task in (self._writing, self._cleaning) if task is not None]:
            await asyncio.wait(under_way)
        file, self._file = self._file, None
        if file is not None:
            file.close()
        if self._writing is not None and (error := self._writing.exception()) is not None:
            raise error


def _text(value: object) -> str:
    return value if isinstance(value, str) else repr(value)
