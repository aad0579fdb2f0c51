"""Taxi trips, made up: the fields of the DEBS 2015 Grand Challenge, seeded, some rows corrupt.

The data set of that challenge is 2 million real trips; these have its fields and its formats, and
the faults that one finds there: coordinates of 0, text cut off, times that run backwards.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import md5
from random import Random
from typing import Any, Final

__all__ = ["FIELDS", "Trip", "trips"]

Trip = dict[str, Any]

FIELDS: Final = (
    "medallion",
    "hack_license",
    "pickup_datetime",
    "dropoff_datetime",
    "trip_time_in_secs",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "payment_type",
    "fare_amount",
    "surcharge",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "total_amount",
)
TIME: Final = "%Y-%m-%d %H:%M:%S"
START: Final = datetime(2013, 1, 1)
CITY: Final = (-73.95, 40.75)
TAXIS: Final = 500
CORRUPT: Final = 0.03


def trips(count: int, seed: int = 2015) -> Iterator[Trip]:
    """Make so many trips; the same ones for the same seed."""
    random = Random(seed)
    began = START
    for _ in range(count):
        began += timedelta(seconds=random.expovariate(2.0))
        trip = _trip(random, began)
        if random.random() < CORRUPT:
            _corrupt(random, trip)
        yield trip


def _trip(random: Random, began: datetime) -> Trip:
    taxi = random.randrange(TAXIS)
    seconds = int(random.lognormvariate(6.4, 0.6))
    miles = round(seconds / 3600 * random.uniform(8, 16), 2)
    fare = round(2.5 + 2.5 * miles + 0.5 * (seconds // 240), 1)
    surcharge = 0.5 if began.hour >= 20 or began.hour < 6 else 0.0
    by_card = random.random() < 0.55
    tip = round(fare * random.uniform(0.1, 0.3), 2) if by_card else 0.0
    tolls = 4.8 if random.random() < 0.04 else 0.0
    values = (
        md5(b"medallion %d" % taxi, usedforsecurity=False).hexdigest().upper(),
        md5(b"license %d" % (taxi * 2 + random.randrange(2)), usedforsecurity=False)
        .hexdigest()
        .upper(),
        began.strftime(TIME),
        (began + timedelta(seconds=seconds)).strftime(TIME),
        seconds,
        miles,
        *_place(random),
        *_place(random),
        "CRD" if by_card else "CSH",
        fare,
        surcharge,
        0.5,
        tip,
        tolls,
        round(fare + surcharge + 0.5 + tip + tolls, 2),
    )
    return dict(zip(FIELDS, values, strict=True))


def _place(random: Random) -> tuple[float, float]:
    longitude, latitude = CITY
    return (
        round(random.gauss(longitude, 0.03), 6),
        round(random.gauss(latitude, 0.03), 6),
    )


def _corrupt(random: Random, trip: Trip) -> None:
    match random.randrange(4):
        case 0:
            trip["pickup_longitude"] = trip["pickup_latitude"] = 0.0
        case 1:
            trip["dropoff_datetime"] = trip["dropoff_datetime"][:7]
        case 2:
            trip["pickup_datetime"], trip["dropoff_datetime"] = (
                trip["dropoff_datetime"],
                trip["pickup_datetime"],
            )
        case _:
            trip["trip_time_in_secs"] = "n/a"
