"""The pipeline of the tests with processes: numbers, at changing rates, through a slow body."""

import asyncio
import os

import orjson

from dsp import Collector, Pipeline
from examples.taxi.load import Load, SteppedSource

__all__ = ["CAPACITY", "STEPS", "APPLICATION", "load", "pipeline"]

APPLICATION = "tests.stream.elastic_app:pipeline"
CAPACITY = 25.0
"""Records per second that one instance of ``slow`` takes."""
STEPS = "ELASTIC_STEPS"
"""Variable of the environment with the load: (seconds, records per second) as JSON."""


def load() -> Load:
    """The load that the environment asks for."""
    steps = orjson.loads(os.environ[STEPS])
    return Load(tuple((float(seconds), float(rate)) for seconds, rate in steps))


async def slow(number: int) -> int:
    """Wait as a look-up would: instances that burn CPU add no capacity on a small machine."""
    await asyncio.sleep(1 / CAPACITY)
    return number


def pipeline() -> Pipeline:
    """Numbers from 0 on, each of them once."""
    wanted = load()
    described = Pipeline("elastic")
    source = SteppedSource(lambda: range(wanted.records), wanted)
    described.source(source, name="numbers").map(slow, name="slow").sink(Collector(), name="out")
    return described
