"""Which record a row out of a stage was made of: its identity depends on that alone."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import dsp
from dsp.spark import SparkStage, stage
from dsp.spark.stages import Query
from dsp.stream.batch import Batch
from dsp.stream.steps import Step
from tests.spark.trips import ZONES, table, trips

pytestmark = [pytest.mark.usefixtures("spark_session"), pytest.mark.timeout(120)]


def counted(batch: DataFrame) -> DataFrame:
    return batch.groupBy("zone").count()


def united(batch: DataFrame) -> DataFrame:
    return batch.select("id").union(batch.select("zone"))


def exploded(batch: DataFrame) -> DataFrame:
    """Make as many rows of each trip as its zone says, and none of some."""
    zone = F.udf(abs, "long", useArrow=False)("zone")
    numbers = F.expr("explode(sequence(1, zone))").alias("part")
    return (
        batch.withColumn("zone", zone).where("zone > 0").select("id", numbers).where("id % 7 < 5")
    )


def joined(batch: DataFrame) -> DataFrame:
    text = (
        "SELECT id, name FROM (SELECT * FROM batch) LEFT JOIN zones USING (zone) ORDER BY id DESC"
    )
    return Query(text, {"zones": ZONES * 2})(batch)


def identified(body: SparkStage, rows: list[dict[str, Any]], cuts: list[int]) -> set[Any]:
    """Give what a stage makes of records that come in batches, with the identities."""
    job = dsp.Pipeline("cut")
    job.source(rows).columns(body, name="stage").sink(dsp.Collector())
    step = Step(job.graph().operators["stage"], 0)
    found: list[tuple[int, str]] = []
    for start, end in pairwise([0, *cuts, len(rows)]):
        ids = range(1000 + start, 1000 + end)
        for made in step.run(Batch(rows[start:end], ids)).batches:
            assert isinstance(made.values, pa.RecordBatch)
            found += zip(made.ids, map(str, made.values.to_pylist()), strict=True)
    assert len({identity for identity, _ in found}) == len(found) > len(rows)
    return {*found}


@pytest.mark.parametrize("function", [exploded, joined])
def test_rows_have_the_same_identities_in_whatever_batch_their_records_come(
    function: Callable[[DataFrame], DataFrame],
) -> None:
    body = stage(function)
    body.open()
    rows = trips(40)
    assert identified(body, rows, []) == identified(body, rows, [1, 17])
    body.close()


@pytest.mark.parametrize("function", [counted, united])
def test_rows_that_are_not_of_one_record_have_identities_of_their_batch(
    function: Callable[[DataFrame], DataFrame],
) -> None:
    body = stage(function)
    assert isinstance(body.process(table(9)), pa.Table)
