"""What the ways of ``bench/spark_stages.py`` share: the batches, the work, and who times it."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = 1000
ZONES = 200


def make_batches(count: int) -> list[pa.RecordBatch]:
    """Give batches of trips; the number of a trip tells its batch."""
    random = np.random.default_rng(7)
    made = []
    for number in range(count):
        ids = np.arange(number * BATCH, (number + 1) * BATCH)
        zone, fare, tip = (
            random.integers(0, ZONES, BATCH),
            random.random(BATCH),
            random.random(BATCH),
        )
        columns = {"id": ids, "zone": zone, "fare": fare * 30, "tip": tip}
        made.append(pa.RecordBatch.from_pydict(columns))
    return made


def work(batch: "DataFrame") -> "DataFrame":
    """Filter, compute a column, join with a small table."""
    from pyspark.sql import functions as f

    names = pa.table({"zone": list(range(ZONES)), "name": [f"zone {n}" for n in range(ZONES)]})
    zones = f.broadcast(batch.sparkSession.createDataFrame(names))
    total = (f.col("fare") * 1.1 + f.col("tip")).alias("total")
    return batch.where("fare > 5").join(zones, "zone").select("id", "name", total)


class Way(ABC):
    """A way to do the work on batches that somebody offers."""

    name: str

    def __init__(self, session: "SparkSession") -> None:
        self.session = session

    @abstractmethod
    def run(self, batches: list[pa.RecordBatch], offered: "Offer") -> int:
        """Do the work for every batch once it is offered; give how many records came out."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of everything."""


class Offer:
    """When each batch is there, and when all that came of it was seen.

    Args:
        every: seconds between two batches; 0 for all of them at once.
    """

    def __init__(self, count: int, every: float) -> None:
        self.every = every
        self.began = time.perf_counter()
        self.count = count
        self._taken = 0
        self.ended = self.began
        self.latencies: list[float] = []
        self._marks: list[tuple[float, int]] = []

    @property
    def rate(self) -> float:
        """Records per second once a fifth is through: until then pipelines and queries start."""
        last = self._marks[-1][1]
        for when, through in self._marks:
            if through >= self.count / 5 and through < last and when < self.ended:
                return (last - through) * BATCH / (self.ended - when)
        return self.count * BATCH / (self.ended - self.began)

    def due(self, number: int) -> float:
        """When a batch is there."""
        return self.began + number * self.every

    def take(self, most: int) -> list[int]:
        """Wait until a batch is there that nobody took; give up to so many of those."""
        if self._taken == self.count:
            return []
        time.sleep(max(0.0, self.due(self._taken) - time.perf_counter()))
        first = self._taken
        now = time.perf_counter()
        there = self.count if not self.every else int((now - self.began) / self.every) + 1
        self._taken = min(self.count, first + most, max(there, first + 1))
        return [*range(first, self._taken)]

    def seen(self, ids: Any) -> None:  # noqa: ANN401 - a column of numbers of trips
        """All that came of the batches with these trips is there."""
        self.ended = now = time.perf_counter()
        numbers = np.unique(np.asarray(ids) // BATCH)
        self.latencies += [now - self.due(int(number)) for number in numbers]
        self._marks.append((now, len(self.latencies)))


@dataclass
class Figures:
    """What a way did."""

    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def values(self) -> dict[str, float]:
        """Records per second, and milliseconds from offered to seen."""
        cuts = quantiles(self.latencies, n=100) if len(self.latencies) > 1 else [0.0] * 99
        return {
            "rate": round(median(self.rates)) if self.rates else 0,
            "p50_ms": round(1e3 * cuts[49], 1),
            "p99_ms": round(1e3 * cuts[98], 1),
        }
