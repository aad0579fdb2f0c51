"""A pipeline for ``dsp run --engine spark`` that is killed while it runs."""

import os
from pathlib import Path
from typing import Any

from dsp import Pipeline
from dsp.stream.sinks import JsonLinesSink, ParquetSink
from dsp.stream.sources import IterableSource, LinesSource

LONG = 40_000
RATE = 6_000
"""Records per second, at most: so slow that a kill finds some of them still to come."""


def records() -> int:
    """Give how many are made, beside the lines of a file."""
    return int(os.environ.get("DSP_TEST_RECORDS", LONG))


def folder() -> Path:
    """Where everything is."""
    return Path(os.environ["DSP_TEST_FOLDER"])


def shown(number: int) -> dict[str, Any]:
    """Make a record."""
    return {"number": number, "kind": "even" if number % 2 == 0 else "odd"}


def kept(record: dict[str, Any]) -> bool:
    """Choose some."""
    return bool(record["number"] % 5)


def pipeline() -> Pipeline:
    """Two sources, a key, two ways, two sinks."""
    job = Pipeline("crashing")
    count = records()
    source = IterableSource(lambda: range(count), rate=min(RATE, count / 4))
    numbers = job.source(source, name="numbers")
    lines = job.source(LinesSource(folder() / "lines.txt"), name="lines").map(int, name="parsed")
    shaped = job.merge(numbers, lines).map(shown)
    by_kind = shaped.key_by(lambda record: record["kind"]).filter(kept)
    by_kind.sink(JsonLinesSink(folder() / "out.jsonl"), name="lines-out")
    shaped.filter(lambda record: not kept(record), name="others").sink(
        ParquetSink(folder() / "out.parquet", rows_per_file=4000), name="columns-out"
    )
    return job
