"""A diamond (paper 002, figure 1): a stream that parts and comes together again.

::

    readings -> scale -+-> celsius ----+-> label -> store
                       +-> fahrenheit -+
"""

from typing import Any

from dsp import Collector, Pipeline

__all__ = ["pipeline", "scale", "celsius", "fahrenheit", "label", "READINGS"]

READINGS = 400


def scale(reading: int) -> float:
    """Turn what a sensor says into degrees."""
    return reading / 10 - 20


def celsius(degrees: float) -> tuple[str, float]:
    """Say it in degrees Celsius."""
    return "C", degrees


def fahrenheit(degrees: float) -> tuple[str, float]:
    """Say it in degrees Fahrenheit."""
    return "F", degrees * 9 / 5 + 32


def label(said: Any) -> str:  # noqa: ANN401
    """Write it down."""
    unit, degrees = said
    return f"{degrees:.1f} {unit}"


def pipeline() -> Pipeline:
    """The diamond."""
    job = Pipeline("diamond")
    degrees = job.source(range(READINGS), name="readings").map(scale, service_time=0.002)
    left = degrees.map(celsius, service_time=0.003)
    right = degrees.map(fahrenheit, service_time=0.006)
    job.merge(left, right).map(label, service_time=0.002).sink(Collector(), name="store")
    return job
