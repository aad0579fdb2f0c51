"""The job as dsp pipelines. Processes of a run import these by name.

Three processes: the application with source and sink, and two that work. No instance comes or goes:
what is measured is the way of a record, not scaling.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

from bench.pipeline_parts import columns, job
from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Sink
from dsp.stream.sources.base import Chunk, Source

RECORDS = "DSP_BENCH_RECORDS"
PARQUET = "DSP_BENCH_PARQUET"


def wanted() -> int:
    """How many records a run has; its processes get it from their environment."""
    return int(os.environ.get(RECORDS, "0"))


class Chunks(Source):
    """Gives what an iterator gives, a chunk at a time."""

    def __init__(self, chunks: Iterator[Any], *, columnar: bool = False) -> None:
        self._chunks = chunks
        self.columnar = columnar

    async def read(self, most: int) -> Chunk | None:
        values = next(self._chunks, None)
        return Chunk(values) if values is not None else None


class Count(Sink):
    """Counts records."""

    blocking = False

    def __init__(self) -> None:
        self.count = 0

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.count += len(values)


class Total(Count):
    """Adds up counts."""

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.count += sum(values)


class ConvertAndCount(Count):
    """The second half of the job, where its result is wanted."""

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.count += job.convert_and_count(values)


class ColumnTotal(Count):
    """Adds up a column of counts."""

    columnar = True

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.count += sum(values.column(0).to_pylist())


def one_process() -> Pipeline:
    """Each body an operator of its own, as the plain loop calls them."""
    pipeline = Pipeline("bench-one")
    lines = pipeline.source(Chunks(job.batches(wanted())))
    kept = lines.map(job.parse, elastic=False).filter(job.keep, elastic=False)
    kept.map(job.convert, elastic=False).sink(Count())
    return pipeline


def _work(lines: list[str]) -> list[int]:
    return [job.convert_and_count(job.parse_and_keep(lines))]


def rows() -> Pipeline:
    """The whole job in two instances, each of which gets a share of the lines."""
    pipeline = Pipeline("bench-rows")
    lines = pipeline.source(Chunks(job.batches(wanted(), job.WIDE_BATCH)))
    lines.batches(_work, name="work", instances=2, minimum=2, maximum=2).sink(Total())
    return pipeline


def halves() -> Pipeline:
    """Two instances parse and filter; what they keep goes back to be mapped and counted."""
    pipeline = Pipeline("bench-halves")
    lines = pipeline.source(Chunks(job.batches(wanted(), job.WIDE_BATCH)))
    kept = lines.batches(job.parse_and_keep, instances=2, minimum=2, maximum=2)
    kept.sink(ConvertAndCount())
    return pipeline


def line_columns() -> Pipeline:
    """The same lines as a column of text, parsed by pyarrow."""
    columns.warm()
    pipeline = Pipeline("bench-line-columns", codec="arrow")
    lines = pipeline.source(Chunks(columns.line_batches(wanted()), columnar=True))
    counts = lines.columns(columns.work_on_lines, instances=2, minimum=2, maximum=2)
    counts.sink(ColumnTotal())
    return pipeline


def parquet_columns() -> Pipeline:
    """The fields that the job looks at, from a Parquet file, as columns."""
    columns.warm()
    pipeline = Pipeline("bench-parquet-columns", codec="arrow")
    chunks = columns.parquet_batches(os.environ.get(PARQUET, ""), wanted())
    fields = pipeline.source(Chunks(chunks, columnar=True))
    counts = fields.columns(columns.work_on_fields, instances=2, minimum=2, maximum=2)
    counts.sink(ColumnTotal())
    return pipeline
