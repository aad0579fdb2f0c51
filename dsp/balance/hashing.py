"""Which cell of each row of a sketch a key belongs to.

Theory: a key is taken to 64 bits first, then every row maps those to a column by a function of its
own from a strongly universal family (pair-multiply-shift): two different keys share a cell of a row
with probability at most 1/columns, up to a part in 2**32 where the columns are no power of two.
Keys of up to 7 bytes keep all that tells them apart. Longer ones are hashed with the seed, and two
of them are the same in 64 bits once in 2**64: their 32-bit words and the length go through two
multilinear functions, which are strongly universal in their upper 32 bits; of keys too long for
that a keyed blake2b is taken in their place. Nothing depends on the process that asks.
"""

from collections.abc import Sequence
from hashlib import blake2b

from dsp.core.randomness import derive_random
from dsp.errors import MissingExtraError

try:
    import numpy as np
    from numpy.typing import NDArray
except ModuleNotFoundError as error:
    raise MissingExtraError("balance", "a sketch of what records cost") from error

__all__ = ["Cells", "HashFamily", "np"]

Cells = NDArray[np.intp]
"""Places in a flattened matrix: a row for each row of the sketch, a column for each key."""

Words = NDArray[np.uint64]

# Bytes of keys that fit into 64 bits with their length, and of those that go by their words.
SHORT, LONG = 7, 63
# So few short keys are hashed one by one: an operation on an array costs as much as some keys do.
FEW = 6
ALL = (1 << 64) - 1
HALF, TOP = np.uint64(32), np.uint64(56)
LOW = np.uint64(0xFFFF_FFFF)
# Keys whose cells are remembered. All are forgotten when there are more: it costs time, no more.
REMEMBERED = 1 << 15


class HashFamily:
    """One hash function for each row of a sketch, drawn by a seed.

    Args:
        rows: functions.
        columns: values of each.
        seed: other seeds draw other functions.
    """

    def __init__(self, rows: int, columns: int, seed: int = 0) -> None:
        if rows < 1 or not 1 <= columns < 1 << 32:
            raise ValueError(f"a sketch of {rows} rows and {columns} columns makes no sense")
        self.rows, self.columns, self.seed = rows, columns, seed
        random = derive_random(seed, "sketch", rows, columns)
        self._secret = random.getrandbits(128).to_bytes(16, "little")
        drawn = [[random.getrandbits(64) for _ in range(3)] for _ in range(rows)]
        numbers = np.array(drawn, dtype=np.uint64)
        self._first, self._second, self._third = (numbers[:, i : i + 1] for i in range(3))
        self._functions = [(*each, row * columns) for row, each in enumerate(drawn)]
        # Two functions of the 32-bit words of a key and its length.
        drawn = [[random.getrandbits(64) for _ in range(2 + (LONG + 1) // 4)] for _ in range(2)]
        numbers = np.array(drawn, dtype=np.uint64)
        self._start, self._of_length = numbers[:, 0], numbers[:, 1]
        self._of_words = numbers[:, 2:].T
        self._offsets = (np.arange(rows, dtype=np.uint64) * np.uint64(columns))[:, None]
        self._slots: dict[bytes, int] = {}
        self._table = np.empty((64, rows), dtype=np.intp)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HashFamily):
            return NotImplemented
        return (self.rows, self.columns, self.seed) == (other.rows, other.columns, other.seed)

    def __hash__(self) -> int:
        raise TypeError("a hash family is not a key")

    def cells(self, keys: Sequence[bytes]) -> Cells:
        """Give the cell of every key in every row."""
        slots = self._slots
        try:
            places = list(map(slots.__getitem__, keys))
        except KeyError:
            fresh = list(dict.fromkeys([key for key in keys if key not in slots]))
            if len(slots) + len(fresh) > REMEMBERED:
                slots.clear()
                fresh = list(dict.fromkeys(keys))
            self._learn(fresh)
            places = list(map(slots.__getitem__, keys))
        return self._table[np.array(places, dtype=np.intp)].T

    def _learn(self, keys: list[bytes]) -> None:
        start, end = len(self._slots), len(self._slots) + len(keys)
        if end > len(self._table):
            larger = np.empty((max(end, 2 * len(self._table)), self.rows), dtype=np.intp)
            larger[:start] = self._table[:start]
            self._table = larger
        few = len(keys) <= FEW and max(map(len, keys)) <= SHORT
        self._table[start:end] = list(map(self._cells_of, keys)) if few else self._hashed(keys).T
        self._slots.update(zip(keys, range(start, end), strict=True))

    def _cells_of(self, key: bytes) -> list[int]:
        """Do for one short key what ``_hashed`` does for many."""
        bits = len(key) << 56 | int.from_bytes(key, "little")
        high, low, columns = bits >> 32, bits & 0xFFFF_FFFF, self.columns
        return [
            (((first + high) * (second + low) + third & ALL) >> 32) * columns // (1 << 32) + offset
            for first, second, third, offset in self._functions
        ]

    def _hashed(self, keys: list[bytes]) -> Cells:
        prints = self._prints(keys)
        mixed = (self._first + (prints >> HALF)) * (self._second + (prints & LOW)) + self._third
        columns = ((mixed >> HALF) * np.uint64(self.columns)) >> HALF
        return (columns + self._offsets).astype(np.intp)

    def _prints(self, keys: list[bytes]) -> Words:
        """Give 64 bits for each key."""
        lengths = np.fromiter(map(len, keys), dtype=np.uint64, count=len(keys))
        longest = int(lengths.max())
        if longest > LONG:
            keys = [key if len(key) <= LONG else self._shortened(key) for key in keys]
            longest = LONG
        width = longest // 8 + 1
        # As an array of byte strings, keys are filled up with zeros: lengths tell them apart.
        words: Words = np.array(keys, dtype=f"S{8 * width}").view("<u8")
        if longest <= SHORT:
            return words | lengths << TOP
        words = words.reshape(len(keys), width)
        halves = np.stack([words >> HALF, words & LOW], axis=2).reshape(len(keys), 2 * width)
        sums = (
            halves @ self._of_words[: 2 * width] + np.outer(lengths, self._of_length) + self._start
        )
        mixed = (sums[:, 0] & ~LOW) | (sums[:, 1] >> HALF)
        return np.where(lengths <= SHORT, words[:, 0] | lengths << TOP, mixed)

    def _shortened(self, key: bytes) -> bytes:
        return blake2b(key, digest_size=LONG, key=self._secret).digest()
