"""Parquet files as a sink.

A Parquet file has its table of contents at its end, so it cannot be read before it is finished.
What is taken goes to an Arrow file first, to which can be appended; when that holds enough rows, a
Parquet file is made of it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dsp.errors import ConfigError, MissingExtraError
from dsp.stream.batch import chosen
from dsp.stream.codecs import ArrowCodec
from dsp.stream.sinks.appended import AppendedFile, sync_folder
from dsp.stream.sinks.base import Sink, SinkBroken

__all__ = ["ParquetSink"]


class ParquetSink(Sink):
    """A folder of Parquet files, each with so many rows; the last one is made at the end.

    What is taken and not yet in a Parquet file is in ``_part-N.arrows`` there; readers of folders
    pass over names with ``_``. All records have the columns of the first ones: a record that does
    not fit is a dead letter. With ``effectively_once`` identities are kept in ``_ids``. Needs the
    extra ``arrow``.

    Args:
        path: of the folder; it is made, and what is in it stays.
        schema: of the files, a ``pyarrow.Schema``; that of the first records without it.
        rows_per_file: more make fewer and better compressed files; fewer are there sooner.
        compression: of the files.
        fsync: whether records are done only when they are on the disk.
    """

    columnar = True
    remembers = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        schema: Any = None,  # noqa: ANN401 - pyarrow comes with an extra
        rows_per_file: int = 100_000,
        compression: str = "zstd",
        fsync: bool = True,
    ) -> None:
        if rows_per_file < 1:
            raise ConfigError(f"rows_per_file is {rows_per_file}, at least 1 is needed")
        self.path = Path(path)
        self._schema = schema
        self._most = rows_per_file
        self._compression = compression
        self._fsync = fsync
        self._codec = ArrowCodec()
        self._number = 0
        self._rows = 0
        self._file: AppendedFile | None = None

    def check(self) -> None:
        _pyarrow()
        folder = self.path if self.path.exists() else self.path.absolute().parent
        if not folder.is_dir():
            raise ConfigError(f"{self.path}: {folder} is no folder; make it, or change the path")
        if not os.access(folder, os.W_OK):
            raise ConfigError(f"{folder} may not be written by this user: change its permissions")

    def open(self) -> None:
        self.check()
        self.path.mkdir(exist_ok=True)
        numbers = [int(each.stem.partition("-")[2]) for each in self.path.glob("part-*.parquet")]
        self._number = max(numbers, default=0)
        if numbers:
            # Made, and perhaps not yet let go of.
            self._arrows().unlink(missing_ok=True)
            _, pq = _pyarrow()
            self._schema = self._schema or pq.read_schema(self._part())
        self._next()

    def _arrows(self) -> Path:
        return self.path / f"_part-{self._number:06}.arrows"

    def _part(self) -> Path:
        return self.path / f"part-{self._number:06}.parquet"

    def _next(self) -> None:
        """Begin the next file, or go on with the one that was begun."""
        self._number += 1
        notes = self.path / "_ids"
        self._file = AppendedFile(
            self._arrows(), notes, fsync=self._fsync, remember=self.drop_repeats, whole=_whole
        )
        batches = list(_batches(self._file.read()))
        self._rows = sum(batch.num_rows for batch in batches)
        if batches:
            self._schema = self._schema or batches[0].schema

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        file = self._file
        assert file is not None
        count = len(ids)
        if self.drop_repeats:
            places = file.fresh(ids)
            if len(places) < count:
                values = chosen(values, places)
                ids = [ids[place] for place in places]
        if ids:
            file.append(self._codec.encode(self._fitted(values)), ids)
            self._rows += len(ids)
            if self._rows >= self._most:
                self._finish()
                self._next()
        self.dropped += count - len(ids)

    def take_together(self, several: Sequence[Any], identity: int) -> bool:
        """Take records, and remember them by one identity; see ``TakesTogether``."""
        file = self._file
        assert file is not None
        if not file.fresh([identity]):
            return False
        encoded = [self._codec.encode(self._fitted(values)) for values in several]
        file.append(b"".join(encoded), [identity])
        self._rows += sum(values.num_rows for values in several)
        if self._rows >= self._most:
            self._finish()
            self._next()
        return True

    def try_values(self, values: Any) -> None:  # noqa: ANN401
        """Raise what taking these would raise; see ``TakesTogether``."""
        self._codec.encode(self._fitted(values))

    def _fitted(self, batch: Any) -> Any:  # noqa: ANN401
        """Give a batch the columns that all have, in their order."""
        pa, _ = _pyarrow()
        if self._schema is None:
            self._schema = batch.schema
        schema = self._schema
        if batch.schema.equals(schema):
            return batch
        if {*batch.schema.names} != {*schema.names}:
            raise ValueError(
                f"the columns are {', '.join(schema.names)}, the record has "
                f"{', '.join(batch.schema.names)}"
            )
        table = pa.Table.from_batches([batch]).select(schema.names).cast(schema)
        return table.combine_chunks().to_batches()[0]

    def _finish(self) -> None:
        """Make a Parquet file of what was taken."""
        pa, pq = _pyarrow()
        file = self._file
        assert file is not None
        self._file = None
        if file.length:
            table = pa.Table.from_batches(_batches(file.read()))
            draft = self.path / f"_{self._part().name}"
            try:
                pq.write_table(table, draft, compression=self._compression)
                if self._fsync:
                    with draft.open("rb") as written:
                        os.fsync(written.fileno())
                draft.rename(self._part())
                if self._fsync:
                    sync_folder(self.path)
            except OSError as error:
                file.close()
                raise SinkBroken(f"{self._part()} cannot be written: {error}") from error
        file.close()
        # From here on the rows are in the Parquet file: a crash before this is noticed by ``open``.
        file.path.unlink()

    def forget(self, ends: Mapping[int, int]) -> None:
        if self._file is not None:
            self._file.forget(ends)

    def close(self) -> None:
        if self._file is not None:
            self._finish()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("arrow", "ParquetSink") from error
    return pa, pq


def _streams(data: bytes) -> Iterator[tuple[int, Any]]:
    """Read streams that were written one after the other: where each ends, and its batch."""
    pa, _ = _pyarrow()
    reader = pa.BufferReader(data)
    while reader.tell() < len(data):
        try:
            with pa.ipc.open_stream(reader) as stream:
                batch = stream.read_next_batch()
                for _ in stream:
                    pass
        except (pa.ArrowInvalid, OSError, StopIteration):
            return
        yield reader.tell(), batch


def _batches(data: bytes) -> Iterator[Any]:
    return (batch for _, batch in _streams(data))


def _whole(file: int, size: int) -> int:
    return max((end for end, _ in _streams(os.pread(file, size, 0))), default=0)
