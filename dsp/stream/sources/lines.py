"""Files of lines: text, and JSON lines."""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from dsp.errors import ConfigError
from dsp.stream.sources.base import Chunk, Position, Unreadable
from dsp.stream.sources.blocking import BlockingSource
from dsp.stream.sources.parts import Part

__all__ = ["LinesSource", "JsonLinesSource", "readable_file"]

# What of a line that cannot be read is shown.
SHOWN = 1000
# Lines of a part that become values together.
LINES_AT_ONCE = 4096


def readable_file(path: Path) -> None:
    """Look whether a file can be read.

    Raises:
        ConfigError: it cannot; says why and what to do.
    """
    if not path.exists():
        folder = path.absolute().parent
        where = f"{folder} has no such file" if folder.is_dir() else f"there is no folder {folder}"
        raise ConfigError(f"{path}: {where}; check the path of the source")
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: name a file in it")
    if not os.access(path, os.R_OK):
        raise ConfigError(f"{path} may not be read by this user: change its permissions")


class LinesSource(BlockingSource):
    """The lines of a file, without their ends. Replayable: positions are bytes in the file.

    Empty lines are left out. A line that cannot be decoded is a dead letter. The last line counts
    with or without its end: the file has to be finished.

    Args:
        path: of the file.
        encoding: of its text; None for values that are bytes.
    """

    replayable = True

    def __init__(self, path: str | os.PathLike[str], *, encoding: str | None = "utf-8") -> None:
        super().__init__()
        self.path = Path(path)
        self.encoding = encoding
        self._file: BinaryIO | None = None
        self._number = 0

    def check(self) -> None:
        readable_file(self.path)

    def begin(self, position: Position, count: int) -> None:
        self._file = self._opened(position)
        self._number = count

    def _opened(self, position: Position) -> BinaryIO:
        readable_file(self.path)
        file = self.path.open("rb", buffering=1 << 18)
        size = os.fstat(file.fileno()).st_size
        if position is not None and int(position) > size:
            file.close()
            raise ConfigError(
                f"{self.path} has {size} bytes, and an earlier run read {position}: it is another "
                "file now. Remove the offsets in stream.state_directory to read it from its start"
            )
        file.seek(int(position or 0))
        return file

    def take(self, most: int) -> Chunk | None:
        assert self._file is not None
        while lines := list(islice(self._file, most)):
            position = self._file.tell()
            found = [line for line in (line.rstrip(b"\r\n") for line in lines) if line]
            if found:
                return self._chunk(found, position)
        return None

    def _chunk(self, lines: list[bytes], position: Position) -> Chunk:
        """Make values of lines: all at once, or one by one if some of them are wrong."""
        first = self._number
        self._number += len(lines)
        try:
            return Chunk(self.parse(lines), position, range(first, self._number))
        except ValueError:
            pass
        values: list[Any] = []
        offsets: list[int] = []
        failures: list[Unreadable] = []
        for offset, line in enumerate(lines, first):
            try:
                values += self.parse([line])
                offsets.append(offset)
            except ValueError as error:
                where = f"{self.path}, record {offset + 1}"
                failures.append(Unreadable(shown(line), f"{where}: {error}", offset))
        return Chunk(values, position, offsets, failures)

    @property
    def divisible(self) -> bool:
        """Whether ``parts`` can be told: records are lines."""
        return True

    def parts(self, position: Position, count: int, size: int) -> Iterator[Part]:
        """Find parts of whole lines; see ``Divisible``."""
        with self._opened(position) as file:
            start = file.tell()
            while block := file.read(size):
                if not block.endswith(b"\n"):
                    block += file.readline()
                records = _lines(block)
                if records:
                    yield Part(start, start + len(block), count, records)
                count += records
                start += len(block)

    def read_part(self, part: Part) -> Iterator[Chunk]:
        """Read a part; see ``Divisible``."""
        with self._opened(part.start) as file:
            data = file.read(part.end - part.start)
        lines = [line for line in (line.rstrip(b"\r") for line in data.split(b"\n")) if line]
        self._number = part.first
        for start in range(0, len(lines), LINES_AT_ONCE):
            yield self._chunk(lines[start : start + LINES_AT_ONCE], part.end)

    def parse(self, lines: Iterable[bytes]) -> list[Any]:
        """Make a value of each line.

        Raises:
            ValueError: one of them has none; says what is wrong with it.
        """
        if self.encoding is None:
            return [*lines]
        encoding = self.encoding
        return [line.decode(encoding) for line in lines]

    def end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class JsonLinesSource(LinesSource):
    """The values of a file with one JSON value per line. Replayable.

    A line that is not JSON is a dead letter.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path, encoding=None)

    def parse(self, lines: Iterable[bytes]) -> list[Any]:
        return [orjson.loads(line) for line in lines]


def _lines(block: bytes) -> int:
    """Count the lines of a block that are not empty."""
    ends = block.count(b"\n")
    if block[:1] in b"\r\n" or b"\n\n" in block or b"\n\r" in block:
        return sum(1 for line in block.split(b"\n") if line.rstrip(b"\r"))
    return ends if block.endswith(b"\n") else ends + 1


def shown(line: bytes) -> str:
    """Give bytes as text that JSON can hold, for people."""
    return line[:SHOWN].decode("utf-8", "backslashreplace")
