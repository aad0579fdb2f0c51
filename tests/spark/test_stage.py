"""Stages on Spark in pipelines: what they give, how they fail, and what goes into a job."""

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

import dsp
from dsp.config import Config
from dsp.errors import ConfigError
from dsp.spark import RecordFailed, SchemaMismatch, SparkStage, column, sql, stage
from dsp.spark.stages import Query
from dsp.stream.bodies import Traced
from tests.spark.page import run_page_here
from tests.spark.trips import ZONES, table, trips

pytestmark = [pytest.mark.usefixtures("spark_session"), pytest.mark.timeout(120)]


def wanted(count: int) -> list[dict[str, Any]]:
    return [
        {"id": each["id"], "name": f"zone {each['zone']}"}
        for each in trips(count)
        if each["fare"] > 5 and each["zone"] < 10
    ]


def dear(batch: DataFrame) -> DataFrame:
    zones = batch.sparkSession.createDataFrame(ZONES, "zone long, name string")
    return batch.where("fare > 5").join(F.broadcast(zones), "zone").select("id", "name")


def run(pipeline: Callable[[dsp.Collector, dsp.Collector], dsp.Pipeline], **settings: Any) -> Any:  # noqa: ANN401
    async def main() -> tuple[list[Any], list[Any], dsp.App]:
        out, letters = dsp.Collector(), dsp.Collector()
        config = Config.model_validate({"stream": settings})
        async with dsp.run(pipeline(out, letters), config=config) as app:
            await app.join()
        return out.values, letters.values, app

    return asyncio.run(main())


def through(body: SparkStage, rows: list[dict[str, Any]], **settings: Any) -> Any:  # noqa: ANN401
    def pipeline(out: dsp.Collector, letters: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("trips")
        job.source(rows).columns(body, maximum=1).sink(out)
        job.dead_letters(letters)
        return job

    return run(pipeline, **settings)


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize(
    "body",
    [
        stage(dear, "id long, name string"),
        sql(
            "SELECT id, name FROM batch JOIN zones USING (zone) WHERE fare > 5;",
            pa.schema([("id", pa.int64()), ("name", pa.string())]),
            tables={"zones": ZONES},
        ),
    ],
    ids=["function", "sql"],
)
def test_a_stage_gives_what_the_same_work_gives_in_python(body: SparkStage) -> None:
    out, letters, app = through(body, trips(5000))
    assert by_id(out) == wanted(5000)
    assert letters == []
    assert app.summary.records_in == 5000


def doubled(fare: float) -> float:
    return fare * 2


def test_udfs_add_a_column() -> None:
    plain = F.udf(doubled, "double", useArrow=False)

    pandas = pandas_udf(lambda fare: fare * 2, "double")  # type: ignore[call-overload]

    for function in (plain, pandas):
        made = column("twice", function, "fare")(table(100))
        assert made.column("twice").to_pylist() == [2 * each["fare"] for each in trips(100)]
    with pytest.raises(ConfigError, match=r"doubled is no PySpark UDF"):
        column("twice", doubled, "fare")


def test_sql_calls_functions_and_reads_files(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("zone,name\n" + "".join(f"{n},{{{n}}}\n" for n in range(9)))
    body = sql(
        "WITH some AS (SELECT * FROM batch) "
        "SELECT id, twice(fare) AS fare, name = '{3}' AS third FROM some JOIN zones USING (zone)",
        "id long, fare double, third boolean",
        tables={"zones": str(tmp_path / "zones.csv")},
        functions={"twice": F.udf(doubled, "double", useArrow=False)},
    )
    rows = body(table(40)).to_pylist()
    assert by_id(rows) == [
        {"id": each["id"], "fare": 2 * each["fare"], "third": each["zone"] == 3}
        for each in trips(40)
        if each["zone"] < 9
    ]


# -- plans that are used again ----------------------------------------------------------------


def counted(batch: DataFrame) -> DataFrame:
    return batch.groupBy("zone").count()


def ordered(batch: DataFrame) -> DataFrame:
    return batch.orderBy(F.desc("id")).select("id")


def at_random(batch: DataFrame) -> DataFrame:
    return batch.select(F.rand().alias("x"))


def at_a_time(batch: DataFrame) -> DataFrame:
    return batch.select(F.current_timestamp().alias("x"))


def joined_with_itself(batch: DataFrame) -> DataFrame:
    other = batch.select(F.col("id").alias("other"))
    return batch.join(F.broadcast(other), F.col("id") == F.col("other")).select("id")


def in_a_subquery(batch: DataFrame) -> DataFrame:
    return Query("SELECT id FROM batch WHERE id = (SELECT max(id) FROM batch)")(batch)


def cached(batch: DataFrame) -> DataFrame:
    return batch.cache().select("id")


def first_ten(batch: DataFrame) -> DataFrame:
    return batch.limit(10).select("id")


def united(batch: DataFrame) -> DataFrame:
    return batch.select("id").union(batch.select("zone"))


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (dear, ""),
        (united, ""),
        (counted, "HashAggregate looks at more than a row"),
        (ordered, "Sort looks at more than a row"),
        (first_ten, "looks at more than a row"),
        (at_random, "chance is in it"),
        (at_a_time, "the present time is in it"),
        (joined_with_itself, "keeps the batch"),
        (in_a_subquery, "the batch is in a subquery"),
        (cached, "looks at more than a row"),
    ],
)
def test_only_plans_that_go_row_by_row_are_used_again(
    function: Callable[[DataFrame], DataFrame],
    fault: str,
    spark_session: SparkSession,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "dsp.spark")
    kept = stage(function)
    kept.open()
    batch = table(70)
    found = kept(table(30)), kept(batch)
    if function is at_random:
        assert kept(batch).to_pylist() != found[1].to_pylist()
    elif function is at_a_time:
        assert [each.num_rows for each in found] == [30, 70]
    else:
        fresh = function(spark_session.createDataFrame(pa.Table.from_batches([batch]))).toArrow()
        order = [(name, "ascending") for name in fresh.column_names]
        assert found[1].sort_by(order).equals(fresh.sort_by(order))
    reasons = [record.getMessage() for record in caplog.records if "plan for" in record.message]
    assert (fault in reasons[0]) if fault else (reasons == [])
    kept.close()


def test_a_plan_is_made_for_each_form_of_the_columns() -> None:
    body = stage(lambda batch: batch.select("id"))
    body.open()
    assert body(table(3)).column("id").to_pylist() == [0, 1, 2]
    narrow = pa.RecordBatch.from_pydict({"id": pa.array([7], pa.int16())})
    assert body(narrow).column("id").to_pylist() == [7]
    assert body(table(2)).column("id").to_pylist() == [0, 1]
    body.close()


def test_what_is_read_beside_the_batch_is_read_again_after_a_while(tmp_path: Path) -> None:
    file = tmp_path / "zones.jsonl"
    file.write_text('{"zone": 1}\n')
    query = "SELECT id FROM batch JOIN zones USING (zone)"
    once = sql(query, tables={"zones": file})
    always = sql(query, tables={"zones": file}, refresh=1e-9)
    assert once(table(12)).num_rows == always(table(12)).num_rows == 1
    file.write_text('{"zone": 1}\n{"zone": 2}\n')
    assert (once(table(12)).num_rows, always(table(12)).num_rows) == (1, 2)
    once.close()
    always.close()


# -- bad input --------------------------------------------------------------------------------


def test_columns_that_are_not_what_was_declared_are_named() -> None:
    body = stage(dear, "id int, label string")
    with pytest.raises(
        SchemaMismatch,
        match=r"dear gives other columns than declared: column id is bigint, not int; "
        r"no column label string; too much: name string\. "
        r"It gives struct<id:bigint,name:string>: declare that, or select and cast in it",
    ):
        body(table(3))
    with pytest.raises(SchemaMismatch, match=r"column.*`fare`.*The batch has id int64$"):
        body(pa.RecordBatch.from_pydict({"id": [1]}))
    with pytest.raises(SchemaMismatch, match=r"schema 'id lung' is none that Spark reads"):
        stage(dear, "id lung")(table(3))
    with pytest.raises(SchemaMismatch, match=r"no type for the columns span \(halffloat\): leave"):
        stage(dear)(pa.RecordBatch.from_pydict({"span": pa.array([], pa.float16())}))


def test_what_goes_in_is_made_to_fit_or_named() -> None:
    body = stage(lambda batch: batch.select("fare"), "fare double", takes="fare double, id long")
    batch = pa.RecordBatch.from_pydict({"id": ["1", "2"], "more": [0, 0], "fare": [1, 2]})
    assert body(batch).to_pylist() == [{"fare": 1.0}, {"fare": 2.0}]
    with pytest.raises(
        SchemaMismatch, match=r"no column fare double; the batch has id int64\. Let"
    ):
        body(pa.RecordBatch.from_pydict({"id": [1]}))
    with pytest.raises(RecordFailed, match=r"column id, string, does not become int64.*'x'"):
        body(pa.RecordBatch.from_pydict({"id": ["x"], "fare": [1.0]}))
    with pytest.raises(SchemaMismatch, match=r"column id is list<.*>, not int64\. Convert it"):
        body(pa.RecordBatch.from_pydict({"id": [[1]], "fare": [1.0]}))


def mistaken(batch: DataFrame) -> DataFrame:
    def checked(number: int) -> float:
        if number in (77, 120):
            raise ValueError(f"nobody pays for trip {number}")
        return float(number)

    return batch.select("id", F.udf(checked, "double", useArrow=False)("id").alias("x"))


def test_records_on_which_a_udf_raises_are_dead_letters_and_the_others_go_on() -> None:
    out, letters, _ = through(stage(mistaken), trips(200), retries=1)
    assert [row["id"] for row in by_id(out)] == [n for n in range(200) if n not in (77, 120)]
    assert sorted(letter["value"]["id"] for letter in letters) == [77, 120]
    letter = next(each for each in letters if each["value"]["id"] == 77)
    assert letter["error"] == "RecordFailed: mistaken: ValueError: nobody pays for trip 77"
    assert "in checked\n" in letter["traceback"]
    assert "org.apache" not in letter["traceback"]


def test_values_that_an_expression_cannot_take_are_dead_letters() -> None:
    body = sql("SELECT id, 10 / (id - 5) AS x FROM batch")
    out, letters, _ = through(body, trips(10), retries=0)
    assert len(out) == 9
    assert [letter["value"]["id"] for letter in letters] == [5]
    assert "DIVIDE_BY_ZERO" in letters[0]["error"]


def test_a_batch_of_other_columns_is_a_dead_letter_as_a_whole_and_at_once() -> None:
    out, letters, _ = through(stage(dear), [{"id": 1}, {"id": 2}], retries=50)
    assert out == []
    assert [letter["value"] for letter in letters] == [{"id": 1}, {"id": 2}]
    assert "The batch has id int64" in letters[0]["error"]


def fees(batch: DataFrame) -> DataFrame:
    known: dict[str, DataFrame] = {}
    return known["fee"]


def test_a_function_that_raises_by_itself_is_named_with_its_columns() -> None:
    with pytest.raises(SchemaMismatch, match=r"KeyError: 'fee'.*The batch has id int64, zone"):
        stage(fees)(table(1))
    with pytest.raises(ConfigError, match=r"takes_two.* is called with one argument"):
        stage(lambda batch, zones: batch, name="takes_two")  # type: ignore[arg-type, misc]
    with pytest.raises(ConfigError, match="in_flight is 0"):
        stage(dear, in_flight=0)
    with pytest.raises(ConfigError, match=r"table zones: zones\.xls is none of \.parquet"):
        sql("SELECT 1", tables={"zones": "zones.xls"})


# -- in the engine ----------------------------------------------------------------------------


def test_waiting_batches_go_into_a_job_together_and_all_are_acknowledged() -> None:
    sizes: list[int] = []

    class Watched(SparkStage):
        def process(self, values: pa.RecordBatch) -> Traced | pa.Table:
            sizes.append(values.num_rows)
            return super().process(values)

    made = stage(dear, in_flight=1)
    body = Watched(
        made.recipe, made._settings, in_flight=1, most_records=made.most_records, longest=0.5
    )
    out, _, app = through(body, trips(20_000), batch_records=100)
    assert by_id(out) == wanted(20_000)
    assert max(sizes) > 1000
    assert sum(sizes) == app.summary.records_in == 20_000


def test_a_stage_scales_and_the_session_of_the_user_stays(spark_session: SparkSession) -> None:
    body = stage(dear)

    def pipeline(out: dsp.Collector, letters: dsp.Collector) -> dsp.Pipeline:
        job = dsp.Pipeline("trips")
        job.source(trips(6000)).columns(body, instances=3).sink(out)
        return job

    out, _, _ = run(pipeline, batch_records=200)
    assert by_id(out) == wanted(6000)
    assert body._opened == 0
    assert body._plans is None
    assert spark_session.range(3).count() == 3


def test_a_stage_can_be_pickled_where_its_function_can() -> None:
    body = stage(dear, "id long, name string")
    before = body(table(10)).to_pylist()
    body.open()
    copy = pickle.loads(pickle.dumps(body))
    assert copy(table(10)).to_pylist() == before
    copy.close()
    body.close()


def test_the_page_about_stages_shows_what_happens(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/howto/spark-stages.md"
    assert run_page_here(page, tmp_path, monkeypatch, spark_session) == 3
