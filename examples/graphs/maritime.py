"""Fishing boats in a zone, and how fast boats are (paper 000, figure 2.3).

::

    signals -> parse -+-> avg_speed ----------------------+-> store
                      +-> in_eez -> is_fishing -> counter +
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from dsp import Collector, Pipeline

__all__ = ["AverageSpeed", "Counter", "pipeline", "signals", "parse", "in_eez", "is_fishing"]

Ship = dict[str, Any]
KINDS = ("fishing", "cargo", "tanker", "passenger")
EEZ = (-6.0, 46.0, -1.0, 49.0)


def signals(count: int = 600, seed: int = 23) -> Iterator[str]:
    """Signals as ships send them: name, kind, longitude, latitude, knots."""
    random = Random(seed)
    for _ in range(count):
        ship = random.randrange(200)
        longitude, latitude = random.uniform(-9, 0), random.uniform(45, 51)
        kind, knots = KINDS[ship % len(KINDS)], random.uniform(2, 20)
        yield f"ship-{ship},{kind},{longitude:.4f},{latitude:.4f},{knots:.1f}"


def parse(signal: str) -> Ship:
    """Read a signal."""
    name, kind, longitude, latitude, knots = signal.split(",")
    return {
        "name": name,
        "kind": kind,
        "place": (float(longitude), float(latitude)),
        "knots": float(knots),
    }


def in_eez(ship: Ship) -> bool:
    """Whether a ship is in the exclusive economic zone."""
    west, south, east, north = EEZ
    longitude, latitude = ship["place"]
    return bool(west <= longitude <= east and south <= latitude <= north)


def is_fishing(ship: Ship) -> bool:
    """Whether a ship is a fishing boat."""
    return bool(ship["kind"] == "fishing")


class AverageSpeed:
    """The mean speed of each kind of ship so far. Its state can be partitioned by kind."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float]] = {}

    def __call__(self, ship: Ship) -> dict[str, Any]:
        """Take in a ship; give the mean speed of its kind."""
        count, total = self._sums.get(ship["kind"], (0, 0.0))
        self._sums[ship["kind"]] = count, total = count + 1, total + ship["knots"]
        return {"kind": ship["kind"], "count": count, "mean": total / count}


class Counter:
    """Counts. There is one number for all boats, so it cannot be partitioned."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, ship: Ship) -> dict[str, Any]:
        """Take in a boat; give how many there were."""
        self.count += 1
        return {"fishing": self.count}


def pipeline() -> Pipeline:
    """The maritime job."""
    job = Pipeline("maritime")
    ships = job.source(list(signals()), name="signals").map(parse, instances=2, service_time=0.002)
    # Both keep their state where they are, so neither may have siblings.
    speeds = ships.map(AverageSpeed(), name="avg_speed", elastic=False)
    boats = ships.filter(in_eez, service_time=0.004).filter(is_fishing, service_time=0.002)
    counts = boats.map(Counter(), name="counter", elastic=False)
    job.merge(speeds, counts).sink(Collector(), name="store")
    return job
