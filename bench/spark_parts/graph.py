"""The taxi graph, compiled, against Structured Streaming queries with the same functions."""

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

import dsp
from bench.spark_parts.data import Contest, take_turns, write_trips
from dsp.spark import SparkSettings, run_graph
from dsp.stream.sources import JsonLinesSource
from examples.taxi.app import TripCount, is_valid, touches_zone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["contests"]

SCHEMA = (
    "trip_time_in_secs string, pickup_longitude double, pickup_latitude double, "
    "dropoff_longitude double, dropoff_latitude double, pickup_datetime string, "
    "dropoff_datetime string, fare_amount double"
)
FARES = pa.schema([("fare_amount", pa.float64())])


def contests(session: "SparkSession", master: str, records: int, runs: int) -> list[Contest]:
    """Compare the compiled graph with queries that are written by hand."""
    with tempfile.TemporaryDirectory(prefix="dsp-bench-") as name:
        folder = Path(name)
        whole, several = write_trips(folder, records)
        expected = _compiled(whole, master)
        queries = _Queries(session, several, folder, expected)
        return [
            take_turns(
                Contest("the taxi graph, as a stream", records, 0.9, "dsp, compiled"),
                {
                    "by hand: JSON by Spark, plain UDFs": queries.with_udfs,
                    "by hand: JSON by Spark, mapInArrow": queries.with_arrow,
                    "by hand: lines, orjson in mapInArrow": queries.with_lines,
                    "dsp, compiled": lambda: _same(_compiled(whole, master), expected),
                },
                runs,
            )
        ]


def _compiled(path: Path, master: str) -> tuple[int, int]:
    job = dsp.Pipeline("taxi")
    trips = job.source(JsonLinesSource(path), name="trips")
    count = TripCount()
    trips.filter(is_valid).filter(touches_zone).sink(count, name="count")
    with run_graph(job, settings=SparkSettings(master)) as run:
        run.join()
    return count.trips, count.fares


def _same(found: tuple[int, int], expected: tuple[int, int]) -> None:
    assert found == expected, f"{found} counted, {expected} wanted"


def _numbered(trip: dict[str, Any]) -> dict[str, Any]:
    """Undo what a column of one type made of numbers and text."""
    seconds = trip["trip_time_in_secs"]
    return trip | {"trip_time_in_secs": int(seconds) if seconds.isdigit() else seconds}


class _Queries:
    """Queries that somebody who knows Spark would write; each ends when all files are read."""

    def __init__(
        self, session: "SparkSession", trips: Path, folder: Path, expected: tuple[int, int]
    ) -> None:
        self._session = session
        self._trips = str(trips)
        self._folder = folder
        self._expected = expected

    def with_udfs(self) -> None:
        """Columns by Spark's JSON reader, a plain UDF for each function."""
        from pyspark.sql.functions import struct, udf

        valid = udf(lambda row: is_valid(_numbered(row.asDict())), "boolean").asNondeterministic()
        inside = udf(lambda row: touches_zone(row.asDict()), "boolean").asNondeterministic()
        frame = self._session.readStream.schema(SCHEMA).json(self._trips)
        chosen = frame.filter(valid(struct("*"))).filter(inside(struct("*")))
        self._count(chosen.select("fare_amount"))

    def with_arrow(self) -> None:
        """Columns by Spark's JSON reader, the functions in mapInArrow."""

        def choose(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                rows = (_numbered(row) for row in batch.to_pylist())
                fares = [row["fare_amount"] for row in rows if is_valid(row) and touches_zone(row)]
                yield pa.RecordBatch.from_arrays([pa.array(fares, pa.float64())], schema=FARES)

        frame = self._session.readStream.schema(SCHEMA).json(self._trips)
        self._count(frame.mapInArrow(choose, "fare_amount double"))

    def with_lines(self) -> None:
        """Lines by Spark, everything else in mapInArrow."""

        def choose(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                rows = map(orjson.loads, batch.column(0).to_pylist())
                fares = [row["fare_amount"] for row in rows if is_valid(row) and touches_zone(row)]
                yield pa.RecordBatch.from_arrays([pa.array(fares, pa.float64())], schema=FARES)

        frame = self._session.readStream.text(self._trips)
        self._count(frame.mapInArrow(choose, "fare_amount double"))

    def _count(self, fares: "DataFrame") -> None:
        found = [0, 0]

        def take(batch: "DataFrame", number: int) -> None:
            cents = batch.selectExpr("count(*)", "sum(round(100 * fare_amount))").first()
            assert cents is not None
            found[0] += cents[0]
            found[1] += int(cents[1] or 0)

        query = (
            fares.writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self._folder / uuid.uuid4().hex))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        _same((found[0], found[1]), self._expected)
