"""Bodies as functions of Spark against functions written by hand for ``mapInArrow``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

import dsp.spark
from bench.spark_parts.data import Contest, take_turns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["contests"]

TRIPS = "id long, seconds long, fare double, tip double"
GIVES = "id long, total double, long_one boolean"


def body(trip: dict[str, Any]) -> dict[str, Any]:
    """Make a record of one."""
    return {
        "id": trip["id"],
        "total": trip["fare"] + trip["tip"],
        "long_one": trip["seconds"] > 600,
    }


def columnar(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Do the same with columns."""
    made = [
        batch.column("id"),
        pc.add(batch.column("fare"), batch.column("tip")),
        pc.greater(batch.column("seconds"), 600),
    ]
    return pa.RecordBatch.from_arrays(made, names=["id", "total", "long_one"])


def contests(session: "SparkSession", records: int, runs: int) -> list[Contest]:
    """Compare both kinds of bodies."""
    from pyspark.sql import functions as f

    frame = (
        session.range(records, numPartitions=2)
        .select(
            "id",
            (f.col("id") % 1200).alias("seconds"),
            (f.col("id") % 50).cast("double").alias("fare"),
            (f.col("id") % 7).cast("double").alias("tip"),
        )
        .persist()
    )
    frame.count()
    schema = pa.schema([("id", pa.int64()), ("total", pa.float64()), ("long_one", pa.bool_())])

    def by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = [body(record) for record in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(made, schema)

    def columns_by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield columnar(batch)

    def run(function: Any) -> None:  # noqa: ANN401
        _drain(frame.mapInArrow(function, GIVES))

    rows = dsp.spark.map_in_arrow(body, GIVES)
    columns = dsp.spark.map_in_arrow(columnar, GIVES, kind="columns")
    few, many = records // 4, records
    small = frame.limit(few).persist()
    small.count()

    def run_small(function: Any) -> None:  # noqa: ANN401
        _drain(small.mapInArrow(function, GIVES))

    found = [
        take_turns(
            Contest("a body in mapInArrow", few, 0.8, "dsp.spark.map_in_arrow"),
            {
                "by hand, to_pylist and from_pylist": lambda: run_small(by_hand),
                "dsp.spark.map_in_arrow": lambda: run_small(rows),
            },
            runs,
        ),
        take_turns(
            Contest("a columnar body in mapInArrow", many, 0.95, "dsp.spark.map_in_arrow"),
            {
                "by hand": lambda: run(columns_by_hand),
                "dsp.spark.map_in_arrow": lambda: run(columns),
            },
            runs,
        ),
    ]
    frame.unpersist()
    small.unpersist()
    return found


def _drain(frame: "DataFrame") -> None:
    """Compute all of it, and keep nothing."""
    frame.write.format("noop").mode("overwrite").save()
