"""Parquet files, as columns."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dsp.errors import ConfigError, MissingExtraError
from dsp.stream.sources.base import Chunk, Position
from dsp.stream.sources.blocking import BlockingSource
from dsp.stream.sources.lines import readable_file
from dsp.stream.sources.parts import Part

__all__ = ["ParquetSource"]

# Rows of a part that are given together.
MOST_ROWS = 1 << 16


class ParquetSource(BlockingSource):
    """The rows of a Parquet file, as columns. Replayable: positions are row numbers.

    A file that is damaged ends the application: nothing in it can be told apart. Needs the extra
    ``arrow``.

    Args:
        path: of the file.
        columns: the columns to read; all without it. Others cost nothing.
    """

    replayable = True
    columnar = True

    def __init__(
        self, path: str | os.PathLike[str], *, columns: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        self.path = Path(path)
        self._columns = list(columns) if columns is not None else None
        self._file: Any = None
        self._left: Iterator[Any] = iter(())
        self._groups: list[int] = []
        self._row = self._skip = self._done = self._size = 0

    def check(self) -> None:
        self._opened().close()

    def _opened(self) -> Any:  # noqa: ANN401 - pyarrow comes with an extra
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise MissingExtraError("arrow", "ParquetSource") from error
        readable_file(self.path)
        try:
            file = pq.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise ConfigError(f"{self.path} is no Parquet file: {error}") from error
        names = file.schema_arrow.names
        missing = [name for name in self._columns or () if name not in names]
        if missing:
            file.close()
            raise ConfigError(
                f"{self.path} has no column {', '.join(map(repr, missing))}: it has "
                f"{', '.join(names)}; check columns of the source"
            )
        return file

    def begin(self, position: Position, count: int) -> None:
        self._file = self._opened()
        self._row = int(position or 0)
        self._size = 0
        metadata = self._file.metadata
        try:
            self._check_rows(metadata.num_rows, self._row)
        except ConfigError:
            self._file.close()
            raise
        # Row groups that are dealt with are not even read.
        groups, start = list(range(metadata.num_row_groups)), 0
        while groups and start + metadata.row_group(groups[0]).num_rows <= self._row:
            start += metadata.row_group(groups.pop(0)).num_rows
        self._groups = groups
        self._skip = self._row - start

    def _check_rows(self, rows: int, done: int) -> None:
        if done > rows:
            raise ConfigError(
                f"{self.path} has {rows} rows, and an earlier run read {done}: it is another file "
                "now. Remove the offsets in stream.state_directory to read it from its start"
            )

    def take(self, most: int) -> Chunk | None:
        if most != self._size:
            self._resize(most)
        try:
            batch = next((each for each in self._left if each.num_rows), None)
        except (ValueError, OSError) as error:  # what Arrow raises is one of them
            raise ConfigError(f"{self.path} is damaged after row {self._row}: {error}") from error
        if batch is None:
            return None
        first = self._row
        self._row += batch.num_rows
        self._done += batch.num_rows
        return Chunk(batch, self._row, range(first, self._row))

    def _resize(self, most: int) -> None:
        """Begin to read in chunks of this size; pass over rows that were given."""
        if self._size:
            self._skip += self._done
        self._size, self._done = most, 0
        batches = self._file.iter_batches(most, row_groups=self._groups, columns=self._columns)
        self._left = _without(batches, self._skip)

    def end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def divisible(self) -> bool:
        """Whether ``parts`` can be told: row groups are found by the table of contents."""
        return True

    def parts(self, position: Position, count: int, size: int) -> Iterator[Part]:
        """Find row groups, or runs of rows of large ones; see ``Divisible``."""
        with self._opened() as file:
            metadata = file.metadata
            done = int(position or 0)
            self._check_rows(metadata.num_rows, done)
            start = 0
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                end = start + group.num_rows
                rows = max(1, group.num_rows * size // max(1, group.total_byte_size))
                for first in range(max(start, done), end, rows):
                    last = min(end, first + rows)
                    yield Part(first, last, first, last - first)
                start = end

    def read_part(self, part: Part) -> Iterator[Chunk]:
        """Read a part; see ``Divisible``."""
        self.begin(part.start, part.first)
        try:
            left = part.records
            while left and (chunk := self.take(min(left, MOST_ROWS))) is not None:
                left -= len(chunk.values)
                yield chunk
        finally:
            self.end()


def _without(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Leave out so many rows at the beginning."""
    for batch in batches:
        if rows >= batch.num_rows:
            rows -= batch.num_rows
        else:
            yield batch.slice(rows)
            rows = 0
