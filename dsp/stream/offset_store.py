"""The file in which sources keep how far they are, from one run to the next."""

import sqlite3
from pathlib import Path

import orjson

from dsp.errors import ConfigError
from dsp.stream.sources.base import Position

__all__ = ["OffsetStore"]


class OffsetStore:
    """Keeps how far sources are, in a file that survives a crash.

    Args:
        directory: where the file is.
        application: whose sources they are.

    Raises:
        ConfigError: the directory cannot be used.
    """

    def __init__(self, directory: str, application: str) -> None:
        self._path = path = Path(directory) / f"{application}.offsets.sqlite"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            # What is forgotten when the power fails is read again: no reason to wait for the disk.
            self._file.execute("PRAGMA synchronous=NORMAL")
            self._file.execute(
                "CREATE TABLE IF NOT EXISTS offsets "
                "(source TEXT PRIMARY KEY, position BLOB, count INTEGER)"
            )
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"stream.state_directory: {path} cannot be used: {error}") from error

    def load(self, source: str) -> tuple[Position, int]:
        """Give where a source goes on, and how many records were dealt with."""
        query = "SELECT position, count FROM offsets WHERE source = ?"
        row = self._file.execute(query, (source,)).fetchone()
        return (orjson.loads(row[0]), row[1]) if row else (None, 0)

    def save(self, source: str, position: Position, count: int) -> None:
        """Remember how far a source is."""
        self._file.execute(
            "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)",
            (source, orjson.dumps(position), count),
        )

    def settle(self) -> None:
        """Wait until what was saved is on the disk. May be called in any thread."""
        file = sqlite3.connect(self._path)
        try:
            file.execute("PRAGMA wal_checkpoint(FULL)")
        finally:
            file.close()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()
