"""Codecs: what goes in comes out, rows beside columns, and garbage is told."""

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsp
from dsp._pb.engine_pb2 import EngineProgress
from dsp.errors import CodecError, ConfigError
from dsp.stream.codecs import (
    ArrowCodec,
    BytesCodec,
    Codec,
    JsonCodec,
    ProtobufCodec,
    make_codec,
    to_columns,
    to_rows,
)
from tests.stream.runs import finished

NUMBERS = st.integers(-(2**63), 2**63 - 1)
LEAVES = (
    st.none()
    | st.booleans()
    | NUMBERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10
)
ROWS = st.lists(
    st.fixed_dictionaries({"n": NUMBERS, "x": st.floats(allow_nan=False), "text": st.text()}),
    min_size=1,
)


@given(st.lists(JSON))
def test_json_comes_back(values: list[Any]) -> None:
    codec = JsonCodec()
    assert codec.decode(codec.encode(values)) == values


@given(st.lists(st.binary()))
def test_bytes_come_back(values: list[bytes]) -> None:
    codec = BytesCodec()
    assert codec.decode(codec.encode(values)) == values


@given(st.lists(st.lists(st.integers(0, 2**63), max_size=5)))
def test_messages_come_back(numbers: list[list[int]]) -> None:
    codec = ProtobufCodec(EngineProgress)
    values = [EngineProgress(done=each) for each in numbers]
    assert codec.decode(codec.encode(values)) == values


@given(ROWS)
def test_rows_become_columns_and_come_back(rows: list[dict[str, Any]]) -> None:
    codec = ArrowCodec()
    assert to_rows(codec.decode(codec.encode(to_columns(rows)))) == rows


@pytest.mark.parametrize("codec", [JsonCodec(), BytesCodec(), ArrowCodec()])
@given(data=st.binary(max_size=200))
def test_garbage_is_a_codec_error_or_values(codec: Codec, data: bytes) -> None:
    with suppress(CodecError):
        codec.decode(data)


def test_what_a_codec_cannot_hold_is_named() -> None:
    with pytest.raises(CodecError, match="json cannot hold"):
        JsonCodec().encode([1, {2}])
    with pytest.raises(CodecError, match="takes bytes, not 'text'"):
        BytesCodec().encode([b"", "text"])  # type: ignore[list-item]
    with pytest.raises(CodecError, match="messages of that class"):
        ProtobufCodec(EngineProgress).encode([1])
    with pytest.raises(CodecError, match=r"takes a pyarrow\.RecordBatch"):
        ArrowCodec().encode([1])
    with pytest.raises(CodecError, match="one has a, another b"):
        to_columns([{"a": 1}, {"b": 2}])
    with pytest.raises(ConfigError, match="no codec 'xml'"):
        make_codec("xml")


def raised(row: dict[str, int]) -> dict[str, int]:
    return {"n": row["n"] + 1}


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [2 * n for n in batch.column("n").to_pylist()]})


@pytest.mark.asyncio
@pytest.mark.parametrize("first", ["rows", "columns"])
async def test_row_and_columnar_bodies_side_by_side(first: str) -> None:
    out = dsp.Collector()
    pipeline = dsp.Pipeline("mixed")
    stream = pipeline.source([{"n": n} for n in range(1000)])
    if first == "rows":
        stream = stream.map(raised).columns(doubled)
    else:
        stream = stream.columns(doubled).map(raised)
    stream.sink(out)
    summary = await finished(pipeline)
    expected = [2 * (n + 1) if first == "rows" else 2 * n + 1 for n in range(1000)]
    assert sorted(value["n"] for value in out.values) == expected
    assert summary.dead_letters == 0
