"""Parts of a source that can be read apart from each other, by anybody who has the file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from dsp.stream.sources.base import Chunk, Position

__all__ = ["Part", "Divisible"]


@dataclass(frozen=True, slots=True)
class Part:
    """Some records of a source that follow each other.

    Attributes:
        start: position of the first of them.
        end: position after the last one.
        first: offset of the first.
        records: how many there are.
    """

    start: int
    end: int
    first: int
    records: int


@runtime_checkable
class Divisible(Protocol):
    """A source whose parts can be read in any order and at the same time.

    An instance that is not open can be pickled, and a copy gives the same records.

    Attributes:
        path: where the records are.
    """

    path: Path

    @property
    def divisible(self) -> bool:
        """Whether it really is: some settings forbid it."""
        ...

    def parts(self, position: Position, count: int, size: int) -> Iterator[Part]:
        """Find parts, without making values. Blocks.

        Args:
            position: where to begin; None for the beginning.
            count: records before that.
            size: bytes of a part, roughly.

        Raises:
            ConfigError: it is another source now than the one that the position is of.
        """
        ...

    def read_part(self, part: Part) -> Iterator[Chunk]:
        """Give the records of a part, with their offsets. Blocks."""
        ...
