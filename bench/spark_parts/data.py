"""What the parts of ``bench/spark.py`` share: trips in files, turns, medians."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from examples.taxi.trips import trips

__all__ = ["Contest", "write_trips", "take_turns"]

# Spark's file source reads whole files: several of them give every task something to do.
FILES = 8


@dataclass
class Contest:
    """Ways to do one thing, compared.

    Attributes:
        name: of the thing.
        records: of each run.
        goal: ratio to the best of the others that is wanted; 0 where there is none.
        ours: name of our way.
        seconds: of each run, by way.
    """

    name: str
    records: int
    goal: float
    ours: str
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def rate(self, way: str) -> float:
        """Records per second, the median."""
        return self.records / median(self.seconds[way])

    @property
    def ratio(self) -> float:
        """Ours against the best of the others."""
        return self.rate(self.ours) / max(self.rate(w) for w in self.seconds if w != self.ours)

    def values(self) -> dict[str, Any]:
        """Give all of it as plain values."""
        rates = {way: round(self.rate(way)) for way in self.seconds}
        return {
            "name": self.name,
            "records": self.records,
            "rates": rates,
            "seconds": self.seconds,
            "ratio": round(self.ratio, 3),
            "goal": self.goal,
        }

    def lines(self) -> list[str]:
        """Give all of it as text."""
        rates = [f"  {w:44} {self.rate(w) / 1000:9.1f} k records/s" for w in self.seconds]
        verdict = f", wanted {self.goal}" if self.goal else ""
        return [
            f"{self.name}: {self.records} records",
            *rates,
            f"  {self.ours}: {self.ratio:.2f} of the best of the others{verdict}",
        ]


def take_turns(contest: Contest, ways: dict[str, Callable[[], object]], runs: int) -> Contest:
    """Run each way in turn, once to warm up, so that noise hits all of them alike."""
    for turn in range(runs + 1):
        for way, run in ways.items():
            began = time.perf_counter()
            run()
            if turn:
                contest.seconds.setdefault(way, []).append(time.perf_counter() - began)
    return contest


def write_trips(folder: Path, count: int) -> tuple[Path, Path]:
    """Write trips as JSON lines: all into one file, and the same ones into several in a folder."""
    several = folder / "trips"
    several.mkdir()
    lines = [orjson.dumps(trip) + b"\n" for trip in trips(count)]
    whole = folder / "trips.jsonl"
    whole.write_bytes(b"".join(lines))
    for number in range(FILES):
        (several / f"{number}.json").write_bytes(b"".join(lines[number::FILES]))
    return whole, several
