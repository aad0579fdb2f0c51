"""The job on columns, with pyarrow."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from bench.pipeline_parts import job

COLUMN_BATCH = 16 * job.BATCH
FIELDS = ["number", "name", "speed", "note"]
USED = ["name", "speed"]


def warm() -> None:
    """Import what the bodies need: starting is not what is measured."""
    keep(parse(next(line_batches(1))))


@lru_cache(maxsize=1)
def _lines() -> Any:  # noqa: ANN401
    """The lines that are given again and again, as one column of text."""
    import pyarrow as pa

    return pa.record_batch({"line": pa.array(job.distinct_lines(), pa.string())})


def line_batches(records: int) -> Iterator[Any]:
    """Give so many lines as columns of text: parts of one that is made, as of the list for rows."""
    lines = _lines()
    at = 0
    while records > 0:
        batch = lines.slice(at, min(COLUMN_BATCH, records))
        yield batch
        records -= len(batch)
        at = (at + len(batch)) % len(lines)


@lru_cache(maxsize=1)
def _csv_options() -> tuple[Any, Any]:
    import pyarrow as pa
    from pyarrow import csv

    types = dict(zip(FIELDS, (pa.int64(), pa.string(), pa.float64(), pa.string()), strict=True))
    read = csv.ReadOptions(column_names=FIELDS, use_threads=False, block_size=1 << 22)
    return read, csv.ConvertOptions(column_types=types)


def parse(batch: Any) -> Any:  # noqa: ANN401 - pyarrow has no annotations
    """Read four fields: lines that follow each other in memory are a file."""
    import pyarrow as pa
    from pyarrow import csv

    column = batch.column(0)
    offsets = memoryview(column.buffers()[1]).cast("i")
    start, end = offsets[column.offset], offsets[column.offset + len(column)]
    text = column.buffers()[2].slice(start, end - start)
    read, convert = _csv_options()
    table = csv.read_csv(pa.BufferReader(text), read, convert_options=convert)
    return table.combine_chunks().to_batches()[0]


def keep(batch: Any) -> Any:  # noqa: ANN401
    """Leave out what is of no interest."""
    import pyarrow.compute as pc

    return batch.filter(pc.less(batch.column("speed"), job.LIMIT))


def convert_and_count(batch: Any) -> Any:  # noqa: ANN401
    """The second half of the job."""
    import pyarrow as pa
    import pyarrow.compute as pc

    speed = pc.divide(batch.column("speed"), 3.6)
    made = pa.record_batch({"name": batch.column("name"), "speed": speed})
    return pa.record_batch({"count": pa.array([made.num_rows], pa.int64())})


def work_on_lines(batch: Any) -> Any:  # noqa: ANN401
    """The job on a column of text."""
    return work_on_fields(parse(batch))


def work_on_fields(batch: Any) -> Any:  # noqa: ANN401
    """The job on fields."""
    return convert_and_count(keep(batch))


def write_parquet(path: str, records: int) -> None:
    """Write the fields of so many records into a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [pa.Table.from_batches([parse(batch)]) for batch in line_batches(job.DISTINCT)]
    once = pa.concat_tables(tables).combine_chunks()
    with pq.ParquetWriter(path, once.schema) as writer:
        for _ in range(-(-records // job.DISTINCT)):
            writer.write_table(once)


def parquet_batches(path: str, records: int) -> Iterator[Any]:
    """Read what the job looks at of so many records of the file that ``write_parquet`` wrote."""
    import pyarrow.parquet as pq

    left = records
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(COLUMN_BATCH, columns=USED):
            yield batch.slice(0, min(left, len(batch)))
            left -= len(batch)
            if left <= 0:
                return


def plain(records: int) -> int:
    """The job on columns of text in a loop over batches."""
    counts = map(work_on_lines, line_batches(records))
    return sum(batch.column(0)[0].as_py() for batch in counts)
