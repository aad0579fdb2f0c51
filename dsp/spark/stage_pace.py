"""How many records to a job: so many that what a job costs anyway is a small part of it.

A job takes about ``a + b * records`` seconds. ``a`` and ``b`` are fitted to the last jobs; both
fall while the virtual machine warms up, and rise when other work shares the cluster. Where all
cores are busy, a job waits for one, however small it is: then smaller jobs would take as long, and
do less.
"""

from collections import deque
from dataclasses import dataclass
from threading import Lock

__all__ = ["Pace"]

REMEMBERED = 32
# A job does so many times the work that it costs anyway: four fifths of it are for records.
WORTH = 4
# No record takes less; a fit of few and scattered times could say so.
LEAST = 1e-8


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of a job, and of each record in it."""

    job: float
    record: float

    def of(self, records: int) -> float:
        """Give the seconds of a job with so many records."""
        return self.job + self.record * records


class Pace:
    """Chooses the size of jobs. Safe to use from several threads.

    Args:
        most: records of a job, at most.
        longest: seconds that a job should take, at most, where that is not less than twice what it
            costs anyway.
    """

    def __init__(self, most: int, longest: float) -> None:
        self._most = most
        self._longest = longest
        self._jobs: deque[tuple[int, float]] = deque(maxlen=REMEMBERED)
        self._lock = Lock()
        self._cost: Cost | None = None

    def took(self, records: int, seconds: float) -> None:
        """A job with so many records took so long."""
        with self._lock:
            self._jobs.append((records, seconds))
            self._cost = fitted(list(self._jobs), self._cost)

    @property
    def cost(self) -> Cost | None:
        """What jobs cost, as far as it is known."""
        return self._cost

    @property
    def records(self) -> int:
        """Records that the next job should have."""
        cost = self._cost
        if cost is None:
            return self._most
        worth = WORTH * cost.job / cost.record
        in_time = (self._longest - cost.job) / cost.record
        # A job that is late without any record is not made quick by taking few: it does at least
        # as much work as it costs anyway.
        least = cost.job / cost.record
        return int(max(1, min(self._most, worth, max(in_time, least))))

    @property
    def capacity(self) -> float | None:
        """Records per second with jobs of that size; None before the first."""
        cost = self._cost
        if cost is None:
            return None
        records = self.records
        return records / cost.of(records)


def fitted(jobs: list[tuple[int, float]], before: Cost | None) -> Cost | None:
    """Fit the cost to records and seconds of jobs; None if none of them had a record.

    Args:
        jobs: the last ones.
        before: the fit to those before, if there were any.
    """
    if not any(records for records, _ in jobs):
        return None
    count = len(jobs)
    records = sum(n for n, _ in jobs) / count
    seconds = sum(t for _, t in jobs) / count
    spread = sum((n - records) ** 2 for n, _ in jobs)
    scatter = sum((t - seconds) ** 2 for _, t in jobs)
    together = sum((n - records) * (t - seconds) for n, t in jobs)
    if spread and scatter:
        # As far as sizes tell times at all: where jobs wait for cores, they tell little.
        each = together / spread * (together**2 / (spread * scatter))
    elif spread:
        each = 0.0
    elif before is not None:
        # All of a size tell nothing of the share of the job: it stays what it was.
        each = seconds * before.record / before.of(int(records))
    else:
        each = seconds / records / 3  # most of it is the job's, so that sizes grow
    # No job was quicker for each of its records, though some waited.
    each = max(min(each, min(t / n for n, t in jobs if n)), LEAST)
    shortest = min(t for _, t in jobs)
    return Cost(min(max(seconds - each * records, LEAST), shortest), each)
