"""How far a source is: what of it is dealt with, and where it goes on after a restart."""

import sqlite3
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from dsp.errors import ConfigError
from dsp.stream.sources.base import Position

__all__ = ["OffsetTracker", "OffsetStore", "Ends", "ends_of", "LANE_BITS"]


Ends = Mapping[int, int]
"""Behind the last record: an identity for each lane of them, by the lane.

Sources number records so that later ones have larger numbers, within lanes of 2**36 numbers: those
of Kafka are a partition each, others have one.
"""

LANE_BITS = 36


def ends_of(ids: Sequence[int]) -> Ends:
    """Give the ends of records that were read together."""
    if isinstance(ids, range) and len(ids) and ids[0] >> LANE_BITS == ids[-1] >> LANE_BITS:
        return {ids[0] >> LANE_BITS: ids[-1] + 1}
    ends: dict[int, int] = {}
    for each in ids:
        lane = each >> LANE_BITS
        ends[lane] = max(ends.get(lane, 0), each + 1)
    return ends


@dataclass(slots=True, eq=False)
class Pending:
    """A chunk that was read."""

    records: int
    position: Position
    ends: Ends
    done: bool = False


class OffsetTracker:
    """Finds the longest beginning of a source of which everything is dealt with.

    Attributes:
        count: records in it.
        position: where the source goes on after it.
        ends: of what was dealt with in this run.
    """

    def __init__(self, position: Position, count: int) -> None:
        self.ends: dict[int, int] = {}
        self.position = position
        self.count = count
        self._pending: deque[Pending] = deque()

    @property
    def open(self) -> int:
        """Chunks that are not dealt with."""
        return len(self._pending)

    @property
    def unfinished(self) -> int:
        """Records that are not dealt with."""
        return sum(pending.records for pending in self._pending if not pending.done)

    def read(self, records: int, position: Position, ends: Ends) -> Pending:
        """A chunk was read."""
        pending = Pending(records, position, ends)
        self._pending.append(pending)
        return pending

    def done(self, pending: Pending) -> bool:
        """A chunk is dealt with. True if the beginning grew."""
        pending.done = True
        grew = False
        while self._pending and self._pending[0].done:
            first = self._pending.popleft()
            self.count += first.records
            self.position = first.position
            self.ends.update(first.ends)
            grew = True
        return grew


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
