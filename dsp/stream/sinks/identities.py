"""Identities of records that a sink took, kept over restarts."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dsp.stream.offsets import LANE_BITS
from dsp.stream.sinks.base import SinkBroken

__all__ = ["Identities", "connect", "key"]

_TABLES = """
CREATE TABLE IF NOT EXISTS taken (id PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS file (name TEXT, length INTEGER);
"""
# SQLite takes a limited number of parameters in one question.
AT_ONCE = 500


def key(identity: int) -> int | bytes:
    """Give an identity as SQLite can hold it: integers have 64 bits there, with a sign."""
    return identity if identity < 1 << 63 else identity.to_bytes(16, "big")


def connect(path: Path, *, fsync: bool) -> sqlite3.Connection:
    """Open a database that survives a crash; with ``fsync`` one of the machine, too.

    Raises:
        SinkBroken: it cannot be used.
    """
    try:
        file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        file.execute("PRAGMA journal_mode=WAL")
        file.execute(f"PRAGMA synchronous={'FULL' if fsync else 'NORMAL'}")
    except sqlite3.Error as error:
        raise SinkBroken(f"{path} cannot be used: {error}; choose another path") from error
    return file


class Identities:
    """Which records are in a file, and how long the file is with them: written at once.

    Args:
        path: of the database.
        fsync: whether to wait for the disk.
    """

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self.path = path
        self._file = connect(path, fsync=fsync)
        self._file.executescript(_TABLES)

    def known(self) -> tuple[str, int] | None:
        """Give the name and the length of the file, if it was noted before."""
        row = self._file.execute("SELECT name, length FROM file").fetchone()
        return (row[0], row[1]) if row else None

    def fresh(self, ids: Sequence[int]) -> list[int]:
        """Give the places of records that are new, each once."""
        keys = [key(each) for each in ids]
        taken: set[int | bytes] = set()
        for start in range(0, len(keys), AT_ONCE):
            some = keys[start : start + AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._file.execute(f"SELECT id FROM taken WHERE id IN ({marks})", some)
            taken.update(row[0] for row in rows)
        places = []
        for place, each in enumerate(keys):
            if each not in taken:
                taken.add(each)
                places.append(place)
        return places

    def commit(self, ids: Iterable[int], name: str, length: int) -> None:
        """Note that records are taken, and how long the file is.

        Raises:
            SinkBroken: that is not possible; nothing is noted.
        """
        try:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                self._file.execute("DELETE FROM file")
                self._file.execute("INSERT INTO file VALUES (?, ?)", (name, length))
                keys = ((key(each),) for each in ids)
                self._file.executemany("INSERT OR IGNORE INTO taken VALUES (?)", keys)
        except sqlite3.Error as error:
            raise SinkBroken(f"{self.path} cannot be written: {error}") from error

    def forget(self, ends: Mapping[int, int]) -> None:
        """Keep no identities of records before these ends, nor of what was made of them.

        Raises:
            SinkBroken: that is not possible; nothing is forgotten.
        """
        try:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                for lane, end in ends.items():
                    if end <= 1 << 63:
                        span = (lane << LANE_BITS, end)
                        self._file.execute("DELETE FROM taken WHERE id >= ? AND id < ?", span)
                # What does not fit into SQLite's integers is behind all that does.
                made = self._file.execute("SELECT id FROM taken WHERE id >= x''").fetchall()
                old = [(each,) for (each,) in made if _is_before(each, ends)]
                self._file.executemany("DELETE FROM taken WHERE id = ?", old)
        except sqlite3.Error as error:
            raise SinkBroken(f"{self.path} cannot be written: {error}") from error

    def close(self) -> None:
        """Let go of the database."""
        self._file.close()


def _is_before(made: bytes, ends: Mapping[int, int]) -> bool:
    origin = int.from_bytes(made[8:], "big")
    return origin < ends.get(origin >> LANE_BITS, 0)
