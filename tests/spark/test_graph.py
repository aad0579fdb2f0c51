"""Whole pipelines on Spark: the same records as on the mesh, each with the same identity."""

import asyncio
import csv
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import dsp
from dsp.config import Config
from dsp.errors import ConfigError, DspError
from dsp.spark import SparkSettings, stage
from dsp.spark.graph import run_graph
from dsp.spark.graph_stages import Rows
from dsp.stream.sinks import CsvSink, JsonLinesSink, ParquetSink, SinkBroken
from dsp.stream.sources import CsvSource, JsonLinesSource, LinesSource, ParquetSource
from examples.graphs import diamond
from examples.taxi.app import is_valid, touches_zone
from examples.taxi.trips import FIELDS, trips
from tests.spark.graphs import compared, lengths, on_mesh, on_spark, records, words
from tests.spark.page import run_page_here

pytestmark = [pytest.mark.usefixtures("spark_session"), pytest.mark.timeout(240)]

TRIPS = 3000


def failing(number: int) -> int:
    if number % 40 == 7:
        raise ValueError(f"{number} is not for me")
    return number * 3


async def slowly(number: int) -> int:
    await asyncio.sleep(0.001)
    return number + 1


# -- the same as on the mesh --------------------------------------------------------------------


def test_a_diamond() -> None:
    def make(sink: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("diamond")
        scaled = job.source(range(diamond.READINGS), name="readings").map(diamond.scale)
        parts = scaled.map(diamond.celsius), scaled.map(diamond.fahrenheit)
        job.merge(*parts).map(diamond.label).sink(sink, name="store")
        return job

    _, summary = compared(make)
    # Its bodies run once for each record, though two ways lead to the sink.
    assert summary.operators["scale"].records_in == diamond.READINGS
    assert summary.records_out == 2 * diamond.READINGS
    assert summary.lost == 0


def test_taxi_trips_of_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(trips(TRIPS))
        file.write("too,few,fields\n\n")
    number: dict[str, Any] = {
        f"{end}_{axis}": float
        for end in ("pickup", "dropoff")
        for axis in ("longitude", "latitude")
    }
    # "n/a" is no number: these are dead letters already when they are read.
    types = number | {"trip_time_in_secs": int, "fare_amount": float}

    def make(sink: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("taxi")
        source = job.source(CsvSource(path, types=types), name="trips")
        source.filter(is_valid).filter(touches_zone).sink(sink, name="count")
        return job

    _, summary = compared(make)
    wanted = [trip for trip in trips(TRIPS) if is_valid(trip) and touches_zone(trip)]
    assert summary.records_out == len(wanted)
    assert summary.operators["trips"].dead_letters > 1


def test_edges_with_keys_groups_and_bodies_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "text.jsonl"
    lines = [{"text": f"line {n} of {n % 7} words and {n % 3} more"} for n in range(500)]
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\nno json\n")

    def text(line: dict[str, Any]) -> str:
        return str(line["text"])

    def make(sink: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("words")
        found = job.source(JsonLinesSource(path), name="lines").map(text).flat_map(words)
        measured = found.key_by(lambda word: word).batches(lengths)
        short = measured.filter(lambda each: each["length"] < 5, name="short")
        other = measured.key_by(lambda each: each["length"]).map(dict, name="other")
        job.merge(short, other).sink(sink, name="all")
        return job

    compared(make)


def test_columns_and_rows_meet(tmp_path: Path) -> None:
    import pyarrow.compute as pc

    path = tmp_path / "numbers.parquet"
    table = pa.table({"n": pa.array(range(5000), pa.int64())})
    pq.write_table(table, path, row_group_size=700)

    def doubled(batch: pa.RecordBatch) -> pa.Table:
        return pa.table({"n": pc.multiply(batch.column("n"), 2)})

    def make(sink: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("columns")
        numbers = job.source(ParquetSource(path), name="numbers").columns(doubled)
        numbers.filter(lambda row: row["n"] % 3 == 0, name="thirds").sink(sink, name="all")
        return job

    compared(make)


def test_async_bodies_dead_letters_and_lists() -> None:
    letters: list[dsp.Collector] = []

    def make(sink: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("letters")
        letters.append(dsp.Collector())
        job.dead_letters(letters[-1])
        numbers = job.source(list(range(400)), name="numbers").map(failing)
        numbers.map(slowly, threads=8).sink(sink, name="all")
        return job

    _, summary = compared(make)
    assert summary.dead_letters == 10
    told = [
        sorted((each["id"], each["operator"], each["value"], each["error"]) for each in sink.values)
        for sink in letters
    ]
    assert told[0] == told[1]
    assert ("failing", 7, "ValueError: 7 is not for me") in [each[1:] for each in told[1]]
    assert "def failing" not in letters[1].values[0]["traceback"]
    assert "raise ValueError" in letters[1].values[0]["traceback"]


ZONES = [{"zone": n, "name": f"zone {n}"} for n in range(5)]


def named_parts(trips: DataFrame) -> DataFrame:
    """Choose trips, join them with a table, and make several rows of each."""
    zones = trips.sparkSession.createDataFrame(pa.Table.from_pylist(ZONES))
    parts = F.explode(F.sequence(F.lit(1), F.col("zone"))).alias("part")
    return trips.where("fare > 20").join(F.broadcast(zones), "zone").select("id", "name", parts)


def test_a_stage_on_spark_is_part_of_the_query() -> None:
    rows: list[dict[str, Any]] = [{"id": n, "zone": 1 + n % 6, "fare": n / 5} for n in range(300)]
    rows[70]["fare"] = "dear"
    body = stage(
        named_parts, "id long, name string, part long", takes="id long, zone long, fare double"
    )
    found = []
    told = []
    for run in (on_mesh, on_spark, on_spark):
        job, sink, letters = dsp.Pipeline("parts"), dsp.Collector(), dsp.Collector()
        job.dead_letters(letters)
        trips = job.source(rows, name="trips").filter(lambda trip: trip["id"] != 200, name="some")
        parts = trips.columns(body, name="parts", maximum=1)
        odd = parts.filter(lambda part: part["id"] % 2 == 1, name="odd")
        odd.key_by(lambda part: part["name"]).map(dict, name="copied").sink(sink, name="all")
        summary = run(job)
        told.append(records(sink))
        assert len({*sink.ids}) == len(sink.ids)
        assert summary.lost == summary.repeats == 0
        operators = summary.operators
        counts = {name: operators[name].records_out for name in ("some", "parts", "odd", "copied")}
        made = sorted((each["id"], each["name"], each["part"]) for each in sink.values)
        found.append((made, counts, [letter["value"] for letter in letters.values]))
    assert found[0] == found[1] == found[2]
    assert told[1] == told[2]  # another run has other batches, and knows its records by the same
    wanted = [
        (row["id"], f"zone {row['zone']}", part)
        for row in rows
        if row["id"] not in (70, 200) and row["fare"] > 20 and row["zone"] < 5 and row["id"] % 2
        for part in range(1, row["zone"] + 1)
    ]
    assert found[1][0] == wanted
    assert [letter["id"] for letter in found[1][2]] == [70]
    assert "column fare is double" in letters.values[0]["error"]


def test_rows_of_a_record_are_told_apart_in_whatever_order_they_come() -> None:
    rows = pa.RecordBatch.from_pylist([{"part": n % 3} for n in range(7)])
    backwards = rows.take(pa.array(range(6, -1, -1)))
    parents = [1, 2, 1, 2, 2, 1, 2]
    ids = Rows(5).identities(rows, parents)
    again = Rows(5).identities(backwards, parents[::-1])
    assert len({*ids}) == 7
    told = zip(ids, parents, rows.to_pylist(), strict=True)
    after = zip(again, parents[::-1], backwards.to_pylist(), strict=True)
    assert sorted(map(str, told)) == sorted(map(str, after))


def test_a_key_that_cannot_be_made_is_a_dead_letter(caplog: pytest.LogCaptureFixture) -> None:
    job = dsp.Pipeline("keys")
    sink = dsp.Collector()
    values = [{"k": n} if n % 10 else {} for n in range(100)]
    job.source(values).key_by(lambda value: value["k"]).map(dict).sink(sink)
    summary = on_spark(job)
    assert (len(sink.values), summary.dead_letters) == (90, 10)
    assert "key_by: KeyError" in caplog.text


# -- files that are written ---------------------------------------------------------------------


def readable(number: int) -> dict[str, Any]:
    return {"n": number, "text": f"number {number}"} if number % 10 else {"other": number}


@pytest.mark.parametrize("kind", [JsonLinesSink, CsvSink, ParquetSink])
def test_sinks_hold_the_same_as_on_the_mesh(
    kind: type[JsonLinesSink | CsvSink | ParquetSink], tmp_path: Path
) -> None:
    found = []
    for runner in (on_mesh, on_spark):
        folder = tmp_path / runner.__name__
        folder.mkdir()
        job = dsp.Pipeline("files")
        letters = dsp.Collector()
        job.dead_letters(letters)
        path = folder / "out"
        job.source([*range(1, 300)], name="numbers").map(readable).sink(kind(path), name="file")
        summary = runner(job)
        found.append((_rows(path), len(letters.values), summary.records_out))
    assert found[0] == found[1]
    # With one that has other columns nobody but JSON lines can do anything; CSV has a header.
    assert len(found[1][0]) == {JsonLinesSink: 299, CsvSink: 271, ParquetSink: 270}[kind]


def _rows(path: Path) -> list[str]:
    if path.is_dir():
        parts = sorted(path.glob("part-*.parquet"))
        return sorted(str(row) for part in parts for row in pq.read_table(part).to_pylist())
    return sorted(path.read_text().splitlines()[:1]) + sorted(path.read_text().splitlines()[1:])


def test_a_second_run_goes_on_where_the_first_one_was(tmp_path: Path) -> None:
    config = Config.model_validate({"stream": {"state_directory": str(tmp_path / "state")}})
    lines = tmp_path / "lines.txt"
    out = tmp_path / "out.jsonl"

    def run() -> int:
        job = dsp.Pipeline("again")
        job.source(LinesSource(lines), name="lines").map(str.upper).sink(JsonLinesSink(out))
        return on_spark(job, config).records_out

    lines.write_text("a\nb\n")
    assert run() == 2
    assert run() == 0
    with lines.open("a") as file:
        file.write("\nc\n")
    assert run() == 1
    assert out.read_text().split() == ['"A"', '"B"', '"C"']
    lines.write_text("x\n")
    with pytest.raises(ConfigError, match="another file now"):
        run()


# -- what cannot be -----------------------------------------------------------------------------


def test_all_that_spark_cannot_run_is_told_before_it_starts() -> None:
    job = dsp.Pipeline("wrong")
    lock = threading.Lock()  # as a connection would have one
    once = job.source(iter([1, 2]), name="once")
    counted = once.map(lambda n: n + 1, name="counter", elastic=False)
    counted.broadcast().map(lambda n: (lock, n)[1], name="writer").sink(print)
    with pytest.raises(ConfigError) as caught:
        run_graph(job, settings=SparkSettings("sc://127.0.0.1:1"))
    lines = str(caught.value).splitlines()
    assert len(lines) == 5
    for wanted in (
        "sc://127.0.0.1:1 is a Spark Connect server",
        "once: OnceSource gives its records once",
        "counter: it is not elastic",
        "writer: the body <lambda> cannot be sent to workers",
        "counter -> writer: broadcast",
    ):
        assert any(wanted in line for line in lines), wanted


class Full(dsp.Sink):
    """A sink whose disk is full."""

    def write(self, values: object, ids: Sequence[int]) -> None:
        raise SinkBroken("disk full")


def test_a_sink_that_is_broken_ends_the_run() -> None:
    job = dsp.Pipeline("full")
    job.source([1, 2, 3]).sink(Full())
    with pytest.raises(SinkBroken, match="disk full"):
        on_spark(job)


def test_a_worker_that_dies_ends_the_run_with_a_reason() -> None:
    def dies(number: int) -> int:
        import os

        os._exit(3)

    job = dsp.Pipeline("dies")
    job.source([1, 2, 3]).map(dies).sink(print)
    with pytest.raises(DspError, match="pipeline 'dies' on Spark"):
        on_spark(job)


def test_a_master_that_is_not_there_is_told_soon() -> None:
    job = dsp.Pipeline("nowhere")
    job.source([1]).sink(print)
    with (
        pytest.raises(DspError, match=r"spark://127\.0\.0\.1:9"),
        run_graph(job, settings=SparkSettings("spark://127.0.0.1:9", connect_timeout=1.0)),
    ):
        pass


def test_the_page_about_graphs_is_true(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/howto/spark-graphs.md"
    assert run_page_here(page, tmp_path, monkeypatch, spark_session) == 7
