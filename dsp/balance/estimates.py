"""What a record of some key costs, read from two sketches: how often, and how long in all.

Cells in which nothing was counted have no ratio, and the paper does not say what holds for them.
Here: in a snapshot such a cell is 0, so a cell that fills up counts in full as a change. For an
estimate, a key with an empty cell was certainly never seen: it gets the mean of all records.
"""

from collections.abc import Sequence

from dsp.balance.events import Matrices
from dsp.balance.hashing import HashFamily, np
from dsp.balance.sketch import CountMin, Matrix, Values
from dsp.errors import CodecError

__all__ = ["Costs", "Estimator"]


class Estimator:
    """Reads estimates of several pairs of sketches at once: one by one they cost far more.

    Args:
        several: with the same hash functions; later changes of them are not seen.
    """

    def __init__(self, several: "Sequence[Costs]") -> None:
        self._family = several[0].family
        counts = np.stack([each.counts.matrix.reshape(-1) for each in several], axis=1)
        seconds = np.stack([each.seconds.matrix.reshape(-1) for each in several], axis=1)
        known = counts > 0.0
        means = np.array([each.mean for each in several])
        self._counts = counts
        self._ratios = np.where(known, seconds / np.where(known, counts, 1.0), means)
        self._each = np.arange(len(several))

    def estimate(self, keys: Sequence[bytes]) -> Matrix:
        """Give what a record of each key is likely to take: a row by key, a column by pair."""
        cells = self._family.cells(keys)
        # Of each pair the cell that was counted least.
        rows = self._counts.take(cells, axis=0).argmin(axis=0)
        least = cells[rows, np.arange(len(keys))[:, None]]
        estimates: Matrix = self._ratios[least, self._each]
        return estimates


class Costs:
    """How often keys came and how long they took, in two sketches with the same hash functions.

    Args:
        family: the hash functions.
    """

    def __init__(self, family: HashFamily) -> None:
        self.family = family
        self.counts = CountMin(family)
        self.seconds = CountMin(family)

    @property
    def mean(self) -> float:
        """Seconds that a record took on average; 0 before the first."""
        return self.seconds.total / self.counts.total if self.counts.total else 0.0

    def add(self, keys: Sequence[bytes], seconds: Sequence[float]) -> None:
        """Count records and what they took."""
        cells = self.family.cells(keys)
        self.counts.add(cells, None)
        self.seconds.add(cells, np.asarray(seconds, dtype=np.float64))

    def estimate(self, keys: Sequence[bytes]) -> Values:
        """Give what a record of each key is likely to take.

        As in paper 002, of the cell that was counted least: it is the one with the fewest others.
        """
        estimates: Values = Estimator([self]).estimate(keys)[:, 0]
        return estimates

    def ratios(self) -> Matrix:
        """Give the snapshot of the paper: seconds by count, 0 where nothing was counted."""
        counts = self.counts.matrix
        made = np.zeros_like(counts)
        np.divide(self.seconds.matrix, counts, out=made, where=counts > 0.0)
        return made

    def expected(self, others: "Costs") -> float:
        """Give what the records of others would have taken here, by cells and not by keys."""
        ratios = np.where(self.counts.matrix > 0.0, self.ratios(), self.mean)
        return float((ratios * others.counts.matrix).sum()) / self.family.rows

    def decay(self, factor: float) -> None:
        """Let what was seen so far count for less."""
        self.counts.decay(factor)
        self.seconds.decay(factor)

    def reset(self) -> None:
        """Forget everything."""
        self.counts.reset()
        self.seconds.reset()

    def merge(self, other: "Costs") -> None:
        """Add what others have seen."""
        self.counts.merge(other.counts)
        self.seconds.merge(other.seconds)

    # -- as values ------------------------------------------------------------------------

    def matrices(self) -> Matrices:
        """Give the cells as a message."""
        family = self.family
        return Matrices(
            family.rows,
            family.columns,
            family.seed,
            tuple(self.counts.matrix.reshape(-1).tolist()),
            tuple(self.seconds.matrix.reshape(-1).tolist()),
        )

    @classmethod
    def of(cls, message: Matrices, family: HashFamily) -> "Costs":
        """Read a message.

        Raises:
            CodecError: it has other hash functions, or cells that cannot be.
        """
        if (message.rows, message.columns, message.seed) != (
            family.rows,
            family.columns,
            family.seed,
        ):
            raise CodecError(
                f"matrices of {message.rows} x {message.columns} cells with seed {message.seed}, "
                f"where {family.rows} x {family.columns} with seed {family.seed} are used: "
                "give all processes the same [balance]"
            )
        made = cls(family)
        for sketch, values in ((made.counts, message.counts), (made.seconds, message.seconds)):
            cells = np.asarray(values, dtype=np.float64)
            size = family.rows * family.columns
            if len(cells) != size or not np.isfinite(cells).all() or cells.min() < 0.0:
                raise CodecError("matrices with cells that are missing, negative or not finite")
            sketch.matrix[:] = cells.reshape(family.rows, family.columns)
            sketch.total = float(cells.sum()) / family.rows
        return made

    def state(self) -> tuple[bytes, bytes, float, float]:
        """Give the cells and totals as an immutable value."""
        counts, seconds = self.counts, self.seconds
        return counts.matrix.tobytes(), seconds.matrix.tobytes(), counts.total, seconds.total

    def restore(self, state: tuple[bytes, bytes, float, float]) -> None:
        """Return to what ``state`` gave."""
        shape = self.counts.matrix.shape
        self.counts.matrix = np.frombuffer(state[0]).reshape(shape).copy()
        self.seconds.matrix = np.frombuffer(state[1]).reshape(shape).copy()
        self.counts.total, self.seconds.total = state[2], state[3]
