"""A star (paper 002, figure 1): streams that meet in one operator and part again.

::

    doors --+          +-> alarms
            +-> enrich +
    motion -+          +-> log
"""

from typing import Any

from dsp import Collector, Pipeline

__all__ = ["pipeline", "enrich", "is_night", "EVENTS"]

EVENTS = 300
Event = dict[str, Any]


def _events(sensor: str) -> list[Event]:
    return [{"sensor": sensor, "number": n, "hour": n % 24} for n in range(EVENTS)]


def enrich(event: Event) -> Event:
    """Add whether it is night."""
    return {**event, "night": event["hour"] < 6}


def is_night(event: Event) -> bool:
    """Whether it happened at night."""
    return bool(event["night"])


def pipeline() -> Pipeline:
    """The star."""
    job = Pipeline("star")
    doors = job.source(_events("door"), name="doors")
    motion = job.source(_events("motion"), name="motion")
    events = job.merge(doors, motion).map(enrich, instances=2, service_time=0.004)
    events.filter(is_night, service_time=0.002).sink(Collector(), name="alarms")
    events.sink(Collector(), name="log")
    return job
