"""CSV files."""

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dsp.errors import ConfigError
from dsp.stream.sources.base import Chunk, Position, Unreadable
from dsp.stream.sources.lines import LinesSource, readable_file, shown
from dsp.stream.sources.parts import Part

__all__ = ["CsvSource"]


class CsvSource(LinesSource):
    """The rows of a CSV file, a dictionary each. Replayable: positions are bytes in the file.

    A row with too many or too few fields, or with a field that its type does not take, is a dead
    letter.

    Args:
        path: of the file.
        columns: the columns to give; all without it. If the file has no header, the names of all.
        header: whether the first line has the names.
        types: makes the value of a field of its text, by column: ``{"fare": float}``.
        delimiter: between fields.
        multiline: whether quoted fields may have line ends. Reads more slowly, and a quote that is
            never closed swallows many lines.
        encoding: of the text.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        header: bool = True,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        delimiter: str = ",",
        multiline: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(path, encoding=encoding)
        if not header and not columns:
            raise ConfigError(f"{path}: without a header, columns=[...] has to name the fields")
        self._columns = list(columns) if columns is not None else None
        self._header = header
        self._types = dict(types or {})
        self._delimiter = delimiter
        self._multiline = multiline
        self._names: list[str] = []
        self._wanted: list[tuple[int, str]] | None = None
        self._rows: Iterator[list[str]] = iter(())
        self._raw: list[bytes] = []

    def check(self) -> None:
        readable_file(self.path)
        with self.path.open("rb") as file:
            self._choose(file.readline())

    def _choose(self, first: bytes) -> None:
        """Find out which fields there are, and which are wanted."""
        if self._header:
            try:
                names = next(self._reader([first.decode(self.encoding or "utf-8-sig")]), [])
            except ValueError as error:
                raise ConfigError(f"{self.path}: its first line is no header: {error}") from error
            names = [name.removeprefix("\ufeff").strip() for name in names]
        else:
            names = self._columns or []
        if not names:
            raise ConfigError(f"{self.path} is empty, and a CSV file has a header: header=False?")
        wanted = names if self._columns is None else self._columns
        missing = [name for name in (*wanted, *self._types) if name not in names]
        if missing:
            raise ConfigError(
                f"{self.path} has no column {', '.join(map(repr, dict.fromkeys(missing)))}: it has "
                f"{', '.join(names)}; check columns, types and delimiter of the source"
            )
        self._names = names
        every = list(wanted) == names and not self._types
        self._wanted = None if every else [(names.index(name), name) for name in wanted]

    @property
    def divisible(self) -> bool:
        return not self._multiline

    def parts(self, position: Position, count: int, size: int) -> Iterator[Part]:
        if position is None and self._header:
            with self._opened(None) as file:
                position = len(file.readline())
        return super().parts(position, count, size)

    def read_part(self, part: Part) -> Iterator[Chunk]:
        if not self._names:
            with self._opened(None) as file:
                self._choose(file.readline())
        return super().read_part(part)

    def begin(self, position: Position, count: int) -> None:
        super().begin(position, count)
        assert self._file is not None
        at = self._file.tell()
        self._file.seek(0)
        self._choose(self._file.readline())
        if at or not self._header:
            self._file.seek(at)
        if self._multiline:
            self._rows = self._reader(self._decoded())

    def _reader(self, lines: Iterable[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self._delimiter, strict=True)

    # -- a record in each line ------------------------------------------------------------

    def parse(self, lines: Iterable[bytes]) -> list[Any]:
        encoding = self.encoding or "utf-8"
        texts = [line.decode(encoding) for line in lines]
        try:
            rows = list(self._reader(texts))
        except csv.Error as error:
            raise ValueError(_explained(error)) from error
        if len(rows) != len(texts):
            raise ValueError("a quote is not closed in this line; see multiline of CsvSource")
        return self._values(rows)

    def _values(self, rows: list[list[str]]) -> list[Any]:
        names, wanted = self._names, self._wanted
        width = len(names)
        for row in rows:
            if len(row) != width:
                raise ValueError(f"{len(row)} fields, where the file has {width} columns")
        if wanted is None:
            return [dict(zip(names, row, strict=True)) for row in rows]
        values = [{name: row[place] for place, name in wanted} for row in rows]
        for name, make in self._types.items():
            for value in values:
                if name in value:
                    try:
                        value[name] = make(value[name])
                    except (ValueError, TypeError, ArithmeticError) as error:
                        raise ValueError(f"column {name!r}: {error}") from error
        return values

    # -- records over several lines -------------------------------------------------------

    def _decoded(self) -> Iterator[str]:
        assert self._file is not None
        for line in self._file:
            self._raw.append(line)
            # What cannot be decoded comes through, and is found in its row.
            yield line.decode(self.encoding or "utf-8", "surrogateescape")

    def take(self, most: int) -> Chunk | None:
        if not self._multiline:
            return super().take(most)
        assert self._file is not None
        values: list[Any] = []
        offsets: list[int] = []
        failures: list[Unreadable] = []
        while len(values) + len(failures) < most:
            self._raw.clear()
            try:
                row = next(self._rows, None)
                if row is None:
                    break
                if not row:
                    continue
                "".join(row).encode(self.encoding or "utf-8")
                values += self._values([row])
                offsets.append(self._number)
            except (ValueError, csv.Error) as error:
                where = f"{self.path}, record {self._number + 1}"
                raw = shown(b"".join(self._raw))
                failures.append(Unreadable(raw, f"{where}: {error}", self._number))
            self._number += 1
        if not values and not failures:
            return None
        return Chunk(values, self._file.tell(), offsets, failures)


def _explained(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "a quote is not closed in this line; see multiline of CsvSource"
    return str(error)
