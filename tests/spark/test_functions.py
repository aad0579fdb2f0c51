"""Bodies as functions of Spark: every kind, every way in, batch and streaming."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from google.protobuf.wrappers_pb2 import Int64Value, StringValue
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, explode, struct

import dsp.spark
from dsp.errors import ConfigError
from dsp.spark import failed_record, map_in_arrow, pandas_udf, udf
from tests.spark.page import run_page_here

pytestmark = pytest.mark.timeout(240)

TRIPS = "id long, fare double, tip double"


@pytest.fixture(scope="module")
def spark(spark_session: SparkSession) -> SparkSession:
    return spark_session


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(n, 10.0, float(n % 5)) for n in range(20)], TRIPS).repartition(2)


def without_a_record() -> Any:  # noqa: ANN401
    return 1


def share(trip: dict[str, Any]) -> dict[str, Any]:
    return {"id": trip["id"], "share": trip["tip"] / trip["fare"]}


async def share_later(trip: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(0.001)
    return share(trip)


def shares(trips: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [share(trip) for trip in trips]


def share_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [batch.column("id"), pc.divide(batch.column("tip"), batch.column("fare"))]
    return pa.RecordBatch.from_arrays(columns, names=["id", "share"])


def generous(trip: dict[str, Any]) -> bool:
    return bool(trip["tip"] > 2)


def twice(trip: dict[str, Any]) -> list[dict[str, Any]]:
    return [share(trip)] * int(trip["tip"])


EXPECTED = sorted((n, (n % 5) / 10.0) for n in range(20))


@pytest.mark.parametrize(
    ("body", "kind"),
    [(share, "map"), (share_later, "map"), (shares, "batches"), (share_columns, "columns")],
)
def test_a_body_in_map_in_arrow(frame: DataFrame, body: Callable[[Any], Any], kind: str) -> None:
    made = map_in_arrow(body, "id long, share double", kind=kind, threads=4)
    rows = frame.mapInArrow(made, made.schema).collect()
    assert sorted((row.id, row.share) for row in rows) == EXPECTED


def test_filters_and_several_of_one(frame: DataFrame) -> None:
    keep = map_in_arrow(generous, kind="filter")
    assert {row.tip for row in frame.mapInArrow(keep, frame.schema).collect()} == {3.0, 4.0}
    some = map_in_arrow(twice, "id long, share double", kind="flat_map")
    assert frame.mapInArrow(some, some.schema).count() == 4 * (0 + 1 + 2 + 3 + 4)


def test_plain_udfs(frame: DataFrame) -> None:
    whole = struct("*")
    shared = frame.select(udf(share, "id long, share double")(whole).alias("s")).select("s.*")
    assert sorted((row.id, row.share) for row in shared.collect()) == EXPECTED
    assert frame.filter(udf(generous, kind="filter")(whole)).count() == 8
    some = udf(twice, "id long, share double", kind="flat_map")
    assert frame.select(explode(some(whole))).count() == 40
    doubled = udf(lambda value: value * 2, "double", name="doubled")
    total = frame.select(doubled("tip").alias("t")).agg({"t": "sum"}).first()
    assert total is not None
    assert total[0] == 80.0


@pytest.mark.parametrize(("body", "kind"), [(share, "map"), (shares, "batches")])
def test_pandas_udfs(frame: DataFrame, body: Callable[[Any], Any], kind: str) -> None:
    made = pandas_udf(body, "id long, share double", kind=kind)
    rows = frame.select(made(struct("*")).alias("s")).select("s.*").collect()
    assert sorted((row.id, row.share) for row in rows) == EXPECTED


def test_pandas_udfs_that_choose(frame: DataFrame) -> None:
    assert frame.filter(pandas_udf(generous, kind="filter")(struct("*"))).count() == 8
    some = pandas_udf(twice, "id long, share double", kind="flat_map")
    assert frame.select(explode(some(struct("*")))).count() == 40


def test_records_in_bytes(spark: SparkSession) -> None:
    packed = [(StringValue(value=f"{n}").SerializeToString(),) for n in range(5)]
    frame = spark.createDataFrame(packed, "data binary")
    # One class goes in and another comes out: each side has its own function.
    number = map_in_arrow(_shouted, "data binary", codec=StringValue)
    made = frame.mapInArrow(number, number.schema).collect()
    found = sorted(StringValue.FromString(bytes(row.data)).value for row in made)
    assert found == ["0!", "1!", "2!", "3!", "4!"]
    raw = map_in_arrow(bytes.upper, "data binary", codec="bytes")
    small = spark.createDataFrame([(b"abc",)], "data binary").mapInArrow(raw, raw.schema)
    assert bytes(small.first().data) == b"ABC"  # type: ignore[union-attr]
    assert Int64Value().value == 0


def _shouted(message: StringValue) -> StringValue:
    return StringValue(value=f"{message.value}!")


def test_in_a_stream(spark: SparkSession, frame: DataFrame, tmp_path: Path) -> None:
    frame.write.parquet(str(tmp_path / "in"))
    made = map_in_arrow(share, "id long, share double")
    stream = spark.readStream.schema(TRIPS).parquet(str(tmp_path / "in"))
    shared = stream.mapInArrow(made, made.schema)
    shared = shared.filter(udf(lambda value: value > 0, "boolean", name="some")(col("share")))
    query = (
        shared.writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.id, row.share) for row in rows) == [e for e in EXPECTED if e[1] > 0]


# -- bad input ----------------------------------------------------------------------------------


def picky(trip: dict[str, Any]) -> dict[str, Any]:
    if trip["id"] == 13:
        raise LookupError("no luck")
    if trip["id"] == 14:
        return {"id": "fourteen", "share": 0.0}
    if trip["id"] == 15:
        return {"id": 15, "share": 0.0, "more": 1}
    return share(trip)


def test_a_failure_names_the_record_and_has_the_traceback(frame: DataFrame) -> None:
    made = map_in_arrow(picky, "id long, share double")
    with pytest.raises(PySparkException) as caught:
        frame.filter("id < 14").mapInArrow(made, made.schema).collect()
    record = failed_record(caught.value)
    assert record is not None
    assert (record.operator, record.value["id"]) == ("picky", 13)
    assert record.error == "LookupError: no luck"
    assert "raise LookupError" in record.traceback
    with pytest.raises(PySparkException) as caught:
        frame.select(udf(picky, "id long, share double")(struct("*"))).collect()
    record = failed_record(caught.value)
    assert record is not None
    assert record.value["id"] in (13, 14)


def test_failures_in_a_column_of_their_own(frame: DataFrame) -> None:
    made = map_in_arrow(picky, "id long, share double", letters="problem")
    rows = frame.mapInArrow(made, made.schema).collect()
    good = sorted((row.id, row.share) for row in rows if row.problem is None)
    assert good == [each for each in EXPECTED if each[0] not in (13, 14, 15)]
    told = {}
    for row in rows:
        if row.problem is not None:
            letter = orjson.loads(row.problem)
            told[letter["error"].split(":")[0], letter["operator"]] = letter["error"]
            assert (row.id, row.share) == (None, None)
    assert sum(row.problem is not None for row in rows) == 3
    errors = " ".join(told.values())
    assert "no luck" in errors


def test_records_that_do_not_become_columns_say_which(frame: DataFrame) -> None:
    made = map_in_arrow(picky, "id long, share double", letters="problem")
    rows = frame.filter("id > 13").mapInArrow(made, made.schema).filter("problem is not null")
    errors = sorted(orjson.loads(row.problem)["error"] for row in rows.collect())
    assert "column id is int64, not 'fourteen'" in errors[0]
    assert "columns more are not declared; those are id int64, share double" in errors[1]


def test_columns_other_than_declared_are_named(frame: DataFrame) -> None:
    made = map_in_arrow(share_columns, "id long, part double", kind="columns")
    with pytest.raises(PySparkException, match=r"no column part double.*column share double too"):
        frame.mapInArrow(made, made.schema).collect()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: map_in_arrow(share), "a schema is needed"),
        (lambda: map_in_arrow(share, "id long", kind="mapp"), "kind='mapp': there are map, filter"),
        (lambda: map_in_arrow(share, "id lon"), "none that Spark reads"),
        (lambda: map_in_arrow(generous, kind="filter", letters="p"), "needs the schema"),
        (lambda: map_in_arrow(without_a_record, "id long"), "is called with one argument"),  # type: ignore[arg-type]
        (lambda: udf(shares, "long", kind="batches"), "gets one record"),
        (lambda: udf(share), "say what it returns"),
        (lambda: pandas_udf(share_columns, "long", kind="columns"), "goes into map_in_arrow"),
    ],
)
def test_what_does_not_fit_is_told(
    spark: SparkSession, make: Callable[[], object], what: str
) -> None:
    with pytest.raises(ConfigError, match=what.replace("(", r"\(")):
        make()


def test_names_are_there() -> None:
    assert {"map_in_arrow", "pandas_udf", "udf", "failed_record", "run_graph"} <= {*dir(dsp.spark)}


def test_the_page_about_functions_is_true(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/howto/spark-functions.md"
    assert run_page_here(page, tmp_path, monkeypatch, spark) == 7
