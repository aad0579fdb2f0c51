"""The taxi job with a stage on Spark: on the mesh, then as one query on Spark; the same counts.

``python -m examples.taxi.spark``. On the mesh every operator is a process, and the one with the
stage holds a small Spark. On Spark all of it is one Structured Streaming query.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

import dsp.spark
from dsp import Pipeline, Sink
from dsp.cli.live import view_on
from dsp.cli.output import print_rows
from dsp.cli.run import print_summary
from dsp.cli.running import Outcome, run_pipeline
from dsp.cli.running_spark import run_on_spark
from dsp.config import load_config
from dsp.errors import DspError
from dsp.spark import SparkSettings
from dsp.stream.sources import IterableSource
from examples.taxi.app import is_valid
from examples.taxi.trips import trips
from examples.taxi.zones import GIVES, TAKES, ZONES, touched_zones, zones_of

__all__ = ["ZoneCount", "expected", "main", "pipeline"]

REFERENCE: Final = "examples.taxi.spark:pipeline"


class ZoneCount(Sink):
    """Counts trips and what they cost, by zone.

    Attributes:
        trips: how many, by zone.
        fares: what they cost together, in cents, by zone.
    """

    blocking = False

    def __init__(self) -> None:
        self.trips: dict[str, int] = defaultdict(int)
        self.fares: dict[str, int] = defaultdict(int)

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        for value in values:
            self.trips[value["zone"]] += 1
            self.fares[value["zone"]] += round(100 * value["fare_amount"])


def records() -> int:
    """How many trips there are: ``TAXI_TRIPS``."""
    return int(os.environ.get("TAXI_TRIPS", "30000"))


def rate() -> float:
    """How many come per second: ``TAXI_RATE``."""
    return float(os.environ.get("TAXI_RATE", "3000"))


def pipeline() -> Pipeline:
    """The taxi job with ``in_zone`` on Spark."""
    job = Pipeline("taxi-zones")
    count = records()
    source = IterableSource(lambda: trips(count), rate=rate())
    in_zone = dsp.spark.stage(touched_zones, GIVES, takes=TAKES, settings="local[2]")
    valid = job.source(source, name="trips").filter(is_valid, name="valid", maximum=1)
    valid.columns(in_zone, name="in_zone", maximum=1).sink(ZoneCount(), name="count")
    return job


def expected() -> ZoneCount:
    """Count in a plain loop what the pipeline has to count."""
    count = ZoneCount()
    for trip in trips(records()):
        if is_valid(trip):
            for zone in zones_of(trip):
                count.write([{"zone": zone, "fare_amount": trip["fare_amount"]}], ())
    return count


def compare(outcomes: dict[str, Outcome]) -> list[str]:
    """Show the counts side by side; say what is wrong."""
    counts = {name: outcome.bodies["count"] for name, outcome in outcomes.items()}
    counts["a plain loop"] = expected()
    header = ("zone", *(f"{name}: trips, fares" for name in counts))
    rows = [
        (zone, *(f"{c.trips[zone]}, {c.fares[zone] / 100:.2f}" for c in counts.values()))
        for zone, *_ in ZONES
    ]
    print_rows(
        ([Text(cell) for cell in row] for row in rows),
        ("  ".join(f"{t} {cell}" for t, cell in zip(header, row, strict=True)) for row in rows),
        header=header,
    )
    right = counts["a plain loop"]
    return [
        f"{name} counts {sum(found.trips.values())}, a plain loop {sum(right.trips.values())}"
        for name, found in counts.items()
        if (found.trips, found.fares) != (right.trips, right.fares)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the job twice, and compare."""
    parser = argparse.ArgumentParser(prog="examples.taxi.spark", description=__doc__)
    parser.add_argument("--master", metavar="URL", default="local[2]", help="of the whole query")
    parser.add_argument("--transport", metavar="URL", default="zmq://127.0.0.1:0")
    options = parser.parse_args(arguments)
    outcomes: dict[str, Outcome] = {}
    try:
        mesh = load_config(overrides={"transport": {"url": options.transport}})
        print(f"1. {records()} taxi trips on the mesh, with a stage on Spark", flush=True)
        with view_on(quiet=False) as view:
            outcomes["mesh"] = run_pipeline(REFERENCE, mesh, view)
        print_summary(outcomes["mesh"])
        if outcomes["mesh"].code:
            return outcomes["mesh"].code
        print(f"\n2. the same as one query on Spark {options.master}", flush=True)
        with view_on(quiet=False) as view:
            settings = SparkSettings(options.master)
            outcomes["Spark"] = run_on_spark(REFERENCE, load_config(), settings, view)
        print_summary(outcomes["Spark"])
        if outcomes["Spark"].code:
            return outcomes["Spark"].code
    except DspError as error:
        print(error, file=sys.stderr)
        return 1
    print()
    faults = compare(outcomes)
    print("\n".join(["FAILED:", *faults]) if faults else "ok: the same counts on both")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
