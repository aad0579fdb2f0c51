"""Columns as records and records as columns: what pyarrow gives, sooner."""

import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dsp.spark.columns import Shape
from dsp.stream.batch import Batch
from dsp.stream.codecs import JsonCodec

KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "small": (pa.int8(), st.integers(-128, 127)),
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "huge": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
    "half": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "flag": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text()),
    "bytes": (pa.binary(), st.binary()),
    "time": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 9))),
}
BATCHES = st.integers(0, 5).flatmap(
    lambda rows: st.fixed_dictionaries(
        {},
        optional={
            name: st.lists(st.none() | values, min_size=rows, max_size=rows)
            for name, (_, values) in KINDS.items()
        },
    )
)


@given(BATCHES)
def test_records_are_those_of_pyarrow(values: dict[str, list[Any]]) -> None:
    arrays = [pa.array(column, KINDS[name][0]) for name, column in values.items()]
    batch = pa.RecordBatch.from_arrays(arrays, names=[*values])
    for part in (batch, batch.slice(1)):
        records = Shape(JsonCodec()).records(part)
        assert records == part.to_pylist()
        told = [type(value) for record in records for value in record.values()]
        assert told == [type(value) for row in part.to_pylist() for value in row.values()]


def test_what_is_no_number_stays_so() -> None:
    batch = pa.record_batch(
        {"x": [math.nan, math.inf], "at": [datetime(2026, 1, 1, tzinfo=UTC)] * 2}
    )
    first, second = Shape(JsonCodec()).records(batch)
    assert math.isnan(first["x"])
    assert second == {"x": math.inf, "at": datetime(2026, 1, 1, tzinfo=UTC)}


ROWS = st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(0, 9)), max_size=4)


@given(ROWS)
def test_columns_are_those_that_were_declared(rows: list[dict[str, Any]]) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    columns, kept, failures = Shape(JsonCodec(), schema).columns(Batch(rows, range(len(rows))))
    fine = [row for row in rows if "c" not in row]
    assert kept.values == fine
    assert [each.value for each in failures] == [row for row in rows if "c" in row]
    assert columns.to_pylist() == [{"a": row.get("a"), "b": row.get("b")} for row in fine]
