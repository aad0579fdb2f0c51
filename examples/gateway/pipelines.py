"""What the gateway can run. Nothing here knows of HTTP, so a world can test it."""

from collections.abc import Callable
from typing import Any

from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Collector
from dsp.stream.sources.base import QueueSource

__all__ = ["Readings", "hot_rooms"]


class Readings:
    """A pipeline with its two ends: readings go in at ``source``, alarms come out at ``alarms``."""

    def __init__(self, make: Callable[["Readings"], Pipeline], most: int = 1000) -> None:
        self.source = QueueSource(most)
        self.alarms = Collector()
        self.pipeline = make(self)


def celsius(reading: dict[str, Any]) -> dict[str, Any]:
    """Give a reading in degrees Celsius."""
    return {"room": reading["room"], "celsius": round((reading["fahrenheit"] - 32) / 1.8, 1)}


def hot_rooms(ends: Readings) -> Pipeline:
    """Tell of rooms that are over 30 degrees Celsius."""
    pipeline = Pipeline("hot-rooms")
    readings = pipeline.source(ends.source, name="readings").map(celsius)
    readings.filter(lambda reading: reading["celsius"] > 30, name="hot").sink(ends.alarms)
    return pipeline
