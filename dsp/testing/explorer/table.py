"""Compact storage: which states were seen, and which are still to be expanded.

A Python set of 64-bit integers costs about 100 bytes for each state. Here a state costs 8 bytes of
fingerprint, 4 of parent link and 6 to 13 of open-addressing index, all in flat arrays.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["FingerprintTable", "Frontier"]

ActionT = TypeVar("ActionT")
StateT = TypeVar("StateT")

_FIRST_SIZE = 1 << 12


class FingerprintTable:
    """The fingerprints seen so far, numbered in order of arrival, each with a link to its parent.

    Args:
        links: keep the parent links; without them no trace can be given, and 4 bytes are saved.
    """

    __slots__ = ("_index", "_limit", "_links", "_mask", "fingerprints", "parents")

    def __init__(self, *, links: bool = True) -> None:
        self.fingerprints = array("Q")
        self.parents = array("I")
        self._links = links
        self._resize(_FIRST_SIZE)

    def __len__(self) -> int:
        return len(self.fingerprints)

    def _resize(self, size: int) -> None:
        index = array("I", bytes(4 * size))
        mask = size - 1
        for number, fingerprint in enumerate(self.fingerprints, 1):
            at = fingerprint & mask
            while index[at]:
                at = (at + 1) & mask
            index[at] = number
        self._index = index
        self._mask = mask
        self._limit = size * 5 // 8

    def add_all(
        self, found: Sequence[tuple[ActionT, StateT, int]], parent: int
    ) -> list[tuple[ActionT, StateT, int]]:
        """Add the successors of one state.

        Args:
            found: (action, state, fingerprint) of each successor.
            parent: the link to store with those that are new.

        Returns:
            Those that are new, in the order given.
        """
        fingerprints, index, mask = self.fingerprints, self._index, self._mask
        new = []
        for item in found:
            fingerprint = item[2]
            at = fingerprint & mask
            while number := index[at]:
                if fingerprints[number - 1] == fingerprint:
                    break
                at = (at + 1) & mask
            else:
                fingerprints.append(fingerprint)
                index[at] = len(fingerprints)
                if self._links:
                    self.parents.append(parent)
                new.append(item)
                if len(fingerprints) > self._limit:
                    self._resize(2 * (mask + 1))
                    index, mask = self._index, self._mask
        return new

    def add_linked(self, found: Sequence[int], links: Sequence[int]) -> list[int]:
        """Add fingerprints, each with a parent of its own.

        Returns:
            The positions of those that are new.
        """
        return [
            position
            for position, (fingerprint, link) in enumerate(zip(found, links, strict=True))
            if self.add_all(((None, None, fingerprint),), link)
        ]


class Frontier:
    """States of one level, as flat numbers. The width of a state may grow from push to push.

    Args:
        chunks: states to begin with, as pairs of a width and numbers.

    Attributes:
        chunks: the states in the order of pushing.
    """

    __slots__ = ("_current", "_length", "_width", "chunks")

    def __init__(self, chunks: "Sequence[tuple[int, array[int]]]" = ()) -> None:
        self.chunks = list(chunks)
        self._width = -1
        self._current = array("I")
        self._length = sum(len(numbers) // width for width, numbers in self.chunks)

    def __len__(self) -> int:
        return self._length

    def push(self, state: Sequence[int]) -> None:
        """Put a state at the end."""
        if len(state) != self._width:
            self._width = len(state)
            self._current = array("I")
            self.chunks.append((self._width, self._current))
        self._current.extend(state)
        self._length += 1

    def at(self, positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """The states at some positions, which must ascend."""
        first, left = 0, iter(positions)
        position = next(left, None)
        for width, chunk in self.chunks:
            behind = first + len(chunk) // width
            while position is not None and position < behind:
                start = (position - first) * width
                yield tuple(chunk[start : start + width])
                position = next(left, None)
            first = behind

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for width, chunk in self.chunks:
            for start in range(0, len(chunk), width):
                yield tuple(chunk[start : start + width])
