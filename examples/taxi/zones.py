"""Parts of the city as a static table, and the look-up of trips in it as a stage on Spark."""

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ZONES", "TAKES", "GIVES", "touched_zones", "zones_of"]

Zone = tuple[str, float, float, float, float]

ZONES: Final[tuple[Zone, ...]] = (
    ("battery", -74.03, 40.69, -73.99, 40.72),
    ("village", -74.01, 40.72, -73.97, 40.74),
    ("midtown", -73.99, 40.74, -73.95, 40.77),
    ("harlem", -73.96, 40.78, -73.92, 40.82),
    ("queens", -73.95, 40.73, -73.88, 40.78),
    ("brooklyn", -73.99, 40.66, -73.92, 40.71),
)
"""Name, west, south, east, north; some of them overlap."""

TAKES: Final = (
    "pickup_longitude double, pickup_latitude double, dropoff_longitude double, "
    "dropoff_latitude double, fare_amount double"
)
GIVES: Final = "zone string, fare_amount double"


def touched_zones(trips: "DataFrame") -> "DataFrame":
    """Give a row for each zone in which a trip begins or ends."""
    from pyspark.sql.functions import broadcast

    columns = "zone string, west double, south double, east double, north double"
    zones = broadcast(trips.sparkSession.createDataFrame(list(ZONES), columns))
    ends = [
        trips[f"{end}_longitude"].between(zones.west, zones.east)
        & trips[f"{end}_latitude"].between(zones.south, zones.north)
        for end in ("pickup", "dropoff")
    ]
    return trips.join(zones, ends[0] | ends[1]).select("zone", "fare_amount")


def zones_of(trip: dict[str, Any]) -> list[str]:
    """Give the zones in which a trip begins or ends, in a plain loop."""
    return [
        name
        for name, west, south, east, north in ZONES
        if any(
            west <= trip[f"{end}_longitude"] <= east and south <= trip[f"{end}_latitude"] <= north
            for end in ("pickup", "dropoff")
        )
    ]
