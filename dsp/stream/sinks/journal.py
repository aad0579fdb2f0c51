"""A database of records as a sink."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from dsp.stream.plain_json import dump_json
from dsp.stream.sinks.appended import writable_place
from dsp.stream.sinks.base import Sink, SinkBroken
from dsp.stream.sinks.identities import connect, key

__all__ = ["JournalSink"]


class JournalSink(Sink):
    """An SQLite database with a table ``records``: identity and value as JSON.

    The identity is the primary key: a record that comes again is left out, with every delivery and
    after every restart.

    Args:
        path: of the database; what is in it stays.
        fsync: whether records are done only when they are on the disk.
    """

    remembers = True

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = True) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self._file: sqlite3.Connection | None = None

    def check(self) -> None:
        writable_place(self.path)

    def open(self) -> None:
        self._file = connect(self.path, fsync=self._fsync)
        try:
            self._file.execute("CREATE TABLE IF NOT EXISTS records (id PRIMARY KEY, value TEXT)")
        except sqlite3.Error as error:
            raise SinkBroken(f"{self.path} cannot be used: {error}; choose another path") from error

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        file = self._file
        assert file is not None
        rows = [
            (key(each), dump_json(value).decode()) for value, each in zip(values, ids, strict=True)
        ]
        try:
            with file:
                file.execute("BEGIN IMMEDIATE")
                before = file.total_changes
                file.executemany("INSERT OR IGNORE INTO records VALUES (?, ?)", rows)
                taken = file.total_changes - before
        except sqlite3.Error as error:
            raise SinkBroken(f"{self.path} cannot be written: {error}") from error
        self.dropped += len(rows) - taken

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def values(self) -> Iterator[Any]:
        """Give the values in the order of their arrival, whether it is open or not."""
        file = sqlite3.connect(self.path)
        try:
            for (text,) in file.execute("SELECT value FROM records ORDER BY rowid"):
                yield orjson.loads(text)
        finally:
            file.close()
