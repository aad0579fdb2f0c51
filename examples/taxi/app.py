"""The pipeline: trips, those that are valid, those in the zone, counted (paper 000, figure 4.7)."""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from dsp import Pipeline, Sink
from examples.taxi.load import Load, SteppedSource
from examples.taxi.trips import TIME, Trip, trips

__all__ = ["CAPACITY", "TripCount", "is_valid", "in_zone", "pipeline", "expected"]

CAPACITY: Final = 60.0
"""Records per second that one instance of ``in_zone`` looks up, as in the thesis."""
ZONE: Final = (-73.99, 40.73, -73.95, 40.77)


def is_valid(trip: Trip) -> bool:
    """Whether times and coordinates of a trip can be true."""
    seconds = trip["trip_time_in_secs"]
    if not isinstance(seconds, int) or seconds <= 0:
        return False
    places = [trip[f"{end}_{axis}"] for end in ("pickup", "dropoff") for axis in AXES]
    if not all(isinstance(each, float) and each for each in places):
        return False
    try:
        began, ended = (datetime.strptime(trip[name], TIME) for name in TIMES)
    except ValueError:
        return False
    return began < ended


AXES: Final = ("longitude", "latitude")
TIMES: Final = ("pickup_datetime", "dropoff_datetime")


def touches_zone(trip: Trip) -> bool:
    """Whether a trip begins or ends in the zone."""
    west, south, east, north = ZONE
    return any(
        west <= trip[f"{end}_longitude"] <= east and south <= trip[f"{end}_latitude"] <= north
        for end in ("pickup", "dropoff")
    )


async def in_zone(trip: Trip) -> bool:
    """Look up whether a trip begins or ends in the zone."""
    # A look-up waits for somebody else: on a machine with 2 cores, twelve instances that burn
    # CPU would have no more capacity than two. And waiting works in virtual time too.
    await asyncio.sleep(1 / CAPACITY)
    return touches_zone(trip)


class TripCount(Sink):
    """Counts trips.

    Attributes:
        trips: how many came.
        fares: what they cost together, in cents.
    """

    blocking = False

    def __init__(self) -> None:
        self.trips = 0
        self.fares = 0

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.trips += len(values)
        self.fares += sum(round(100 * trip["fare_amount"]) for trip in values)


def load() -> Load:
    """The load that the environment asks for: ``TAXI_FACTOR``, by which times are divided."""
    return Load.of_the_thesis(float(os.environ.get("TAXI_FACTOR", "15")))


def pipeline() -> Pipeline:
    """The taxi job."""
    wanted = load()
    described = Pipeline("taxi")
    source = SteppedSource(lambda: trips(wanted.records), wanted)
    valid = described.source(source, name="trips").filter(is_valid, name="valid", maximum=1)
    # The capacity is a parameter of the thesis, found beforehand. Measured while processes start on
    # a busy machine it would be low, and more of them would be started.
    zone = valid.filter(in_zone, name="in_zone", instances=1, capacity=CAPACITY)
    zone.sink(TripCount(), name="count")
    return described


def expected(records: int) -> TripCount:
    """Count in a plain loop what the pipeline has to count."""
    count = TripCount()
    count.write([trip for trip in trips(records) if is_valid(trip) and touches_zone(trip)], ())
    return count
