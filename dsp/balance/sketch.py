"""Count-Min: how often a key came, or what it weighed in all, in a matrix of fixed size.

Paper 002, section 5.1. Every row has a hash function of its own; a key adds its weight to one cell
of each row, and the smallest of its cells is the estimate. It is never too small, and with
probability 1 - delta too large by no more than epsilon times the weight of all other keys.
"""

from collections.abc import Sequence
from math import isfinite
from struct import Struct
from typing import Final, Self

from dsp.balance.hashing import Cells, HashFamily, np
from dsp.balance.settings import size_for
from dsp.errors import CodecError

__all__ = ["CountMin", "Matrix", "Values", "size_for"]

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
Values = np.ndarray[tuple[int], np.dtype[np.float64]]

_HEAD = Struct("<4sIIQd")
_MAGIC: Final = b"CM1\0"
_MOST_CELLS: Final = 1 << 24


class CountMin:
    """A Count-Min sketch of weights by key.

    Not safe to change from several threads at once.

    Args:
        family: the hash functions. Sketches that share them, equal ones at least, can be merged.

    Attributes:
        total: weight of all keys.
    """

    def __init__(self, family: HashFamily) -> None:
        self.family = family
        self.matrix: Matrix = np.zeros((family.rows, family.columns))
        self.total = 0.0

    @classmethod
    def sized(cls, epsilon: float, delta: float, seed: int = 0) -> Self:
        """Make a sketch that is off by more than ``epsilon`` of the rest in ``delta`` of cases."""
        return cls(HashFamily(*size_for(epsilon, delta), seed))

    # -- by key ---------------------------------------------------------------------------

    def update(self, keys: Sequence[bytes], weights: Sequence[float] | None = None) -> None:
        """Add weights of keys: 1 each without ``weights``.

        Raises:
            ValueError: a weight is negative or not finite, or there is not one for each key.
        """
        if weights is None:
            self.add(self.family.cells(keys), None)
            return
        if len(weights) != len(keys):
            raise ValueError(f"{len(weights)} weights for {len(keys)} keys")
        values = np.asarray(weights, dtype=np.float64)
        if len(values) and not (np.isfinite(values).all() and values.min() >= 0.0):
            raise ValueError("a weight is negative or not finite: estimates would be too small")
        self.add(self.family.cells(keys), values)

    def estimate(self, keys: Sequence[bytes]) -> Values:
        """Give the estimated weight of each key."""
        return self.at(self.family.cells(keys)).min(axis=0)  # type: ignore[no-any-return]

    # -- by cell, where several sketches share hash functions -----------------------------

    def add(self, cells: Cells, weights: Values | None) -> None:
        """Add weights to the cells of keys."""
        count = cells.shape[1]
        if not count:
            return
        flat = self.matrix.reshape(-1)
        spread = None if weights is None else np.broadcast_to(weights, cells.shape).reshape(-1)
        flat += np.bincount(cells.reshape(-1), spread, minlength=flat.size)
        self.total += count if weights is None else float(weights.sum())

    def at(self, cells: Cells) -> Matrix:
        """Give what is in the cells of keys, a row for each row of the sketch."""
        return self.matrix.reshape(-1)[cells]

    # -- as a whole -----------------------------------------------------------------------

    def merge(self, other: "CountMin") -> None:
        """Add all that another sketch has seen.

        Raises:
            ValueError: it has other hash functions.
        """
        if self.family != other.family:
            raise ValueError(
                f"{_named(other.family)} cannot be merged into {_named(self.family)}: "
                "give both the same epsilon, delta and seed"
            )
        self.matrix += other.matrix
        self.total += other.total

    def decay(self, factor: float) -> None:
        """Let everything so far count for less."""
        self.matrix *= factor
        self.total *= factor

    def reset(self) -> None:
        """Forget everything."""
        self.matrix[:] = 0.0
        self.total = 0.0

    def to_bytes(self) -> bytes:
        """Give the sketch as bytes, the same on every machine."""
        family = self.family
        head = _HEAD.pack(_MAGIC, family.rows, family.columns, family.seed, self.total)
        return head + self.matrix.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a sketch.

        Raises:
            CodecError: not the bytes of one.
        """
        if len(data) < _HEAD.size:
            raise CodecError(f"{len(data)} bytes are no sketch")
        magic, rows, columns, seed, total = _HEAD.unpack_from(data)
        cells = rows * columns
        if magic != _MAGIC or not 0 < cells <= _MOST_CELLS or len(data) != _HEAD.size + 8 * cells:
            raise CodecError(f"{len(data)} bytes are no sketch, or one of another release")
        values = np.frombuffer(data, "<f8", offset=_HEAD.size)
        if not (isfinite(total) and np.isfinite(values).all() and values.min() >= 0.0):
            raise CodecError("a sketch with weights that are negative or not finite")
        made = cls(HashFamily(rows, columns, seed))
        made.matrix[:] = values.reshape(rows, columns)
        made.total = total
        return made


def _named(family: HashFamily) -> str:
    return f"a sketch of {family.rows} x {family.columns} cells, seed {family.seed}"
