"""Files of rows as sinks: JSON lines and CSV."""

import csv
import io
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from dsp.errors import ConfigError
from dsp.stream.plain_json import dump_json
from dsp.stream.sinks.appended import AppendedFile, whole_lines, writable_place
from dsp.stream.sinks.base import Sink

__all__ = ["FileSink", "JsonLinesSink", "CsvSink"]


class FileSink(Sink):
    """A file of lines, to which records are appended.

    With ``effectively_once`` the identities of records are kept in a database beside the file,
    ``PATH.ids``, and records that are there are left out, after a crash of the application too. It
    takes a few dozen bytes for each record. With ``stream.state_directory`` those of records that
    no restart brings again are removed, some 100,000 records later; without it all are kept.

    Args:
        path: of the file; what is in it stays.
        fsync: whether records are done only when they are on the disk. Without it they are done
            when the system has them: they survive the application, and not the power.
    """

    remembers = True

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = True) -> None:
        self.path = Path(path)
        self._fsync = fsync
        self._file: AppendedFile | None = None

    def check(self) -> None:
        writable_place(self.path)

    def open(self) -> None:
        writable_place(self.path)
        self._file = AppendedFile(
            self.path,
            self.path.with_name(f"{self.path.name}.ids"),
            fsync=self._fsync,
            remember=self.drop_repeats,
            whole=whole_lines,
        )

    @abstractmethod
    def lines(self, values: list[Any]) -> bytes:
        """Give the lines of values, with their ends.

        Raises:
            Exception: a value that cannot be written; it becomes a dead letter.
        """

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        file = self._file
        assert file is not None
        count = len(ids)
        if self.drop_repeats:
            places = file.fresh(ids)
            if len(places) < count:
                values = [values[place] for place in places]
                ids = [ids[place] for place in places]
        if values:
            file.append(self.lines(values), ids)
        self.dropped += count - len(ids)

    def take_together(self, several: Sequence[Any], identity: int) -> bool:
        """Take records, and remember them by one identity; see ``TakesTogether``."""
        file = self._file
        assert file is not None
        if not file.fresh([identity]):
            return False
        values = [value for some in several for value in some]
        file.append(self.lines(values) if values else b"", [identity])
        return True

    def try_values(self, values: Any) -> None:  # noqa: ANN401
        """Raise what taking these would raise; see ``TakesTogether``."""
        self.lines(values)

    def forget(self, ends: Mapping[int, int]) -> None:
        if self._file is not None:
            self._file.forget(ends)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class JsonLinesSink(FileSink):
    """A file with one JSON value per line."""

    def lines(self, values: list[Any]) -> bytes:
        option = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY
        return b"".join([dump_json(value, option) for value in values])


class CsvSink(FileSink):
    """A CSV file with a header. Values are dictionaries with the same keys.

    A value with other keys is a dead letter. None is written as nothing, lists and dictionaries as
    JSON.

    Args:
        path: of the file; what is in it stays.
        columns: names, in their order; without it those of the file's header, or those of the
            first value.
        delimiter: between fields.
        fsync: whether records are done only when they are on the disk.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        delimiter: str = ",",
        fsync: bool = True,
    ) -> None:
        super().__init__(path, fsync=fsync)
        self._wanted = list(columns) if columns is not None else None
        self._delimiter = delimiter
        self._columns: list[str] | None = None

    def check(self) -> None:
        super().check()
        if self.path.exists():
            with self.path.open("rb") as file:
                self._header(file.readline())

    def _header(self, line: bytes) -> list[str] | None:
        """Read the header that is there, if any."""
        if not line.endswith(b"\n"):
            return self._wanted
        found = next(csv.reader([line.decode()], delimiter=self._delimiter), [])
        if self._wanted is not None and found != self._wanted:
            raise ConfigError(
                f"{self.path} has the columns {', '.join(found)}, and the sink writes "
                f"{', '.join(self._wanted)}: use another path, or the same columns"
            )
        return found

    def open(self) -> None:
        super().open()
        assert self._file is not None
        with self.path.open("rb") as file:
            self._columns = self._header(file.readline())

    def lines(self, values: list[Any]) -> bytes:
        assert self._file is not None
        columns = self._columns if self._columns is not None else _columns_of(values[0])
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        if not self._file.length:
            writer.writerow(columns)
        writer.writerows([_row(value, columns) for value in values])
        data = text.getvalue().encode()
        self._columns = columns
        return data


def _columns_of(value: object) -> list[str]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a CSV file takes dictionaries, not {type(value).__name__}")
    return [str(name) for name in value]


def _row(value: object, columns: list[str]) -> list[Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a CSV file takes dictionaries, not {type(value).__name__}")
    if value.keys() != {*columns}:
        raise ValueError(f"the columns are {', '.join(columns)}, the value has {', '.join(value)}")
    fields = (value[name] for name in columns)
    return [
        dump_json(field, 0).decode() if isinstance(field, list | dict) else field
        for field in fields
    ]
