"""Files as sources and sinks: what is read is what was written, and what is wrong is told."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dsp
from dsp.errors import ConfigError
from dsp.stream.sinks import CsvSink, JournalSink, JsonLinesSink, ParquetSink, Sink, SinkBroken
from dsp.stream.sources import (
    CsvSource,
    JsonLinesSource,
    LinesSource,
    ParquetSource,
    QueueSource,
    Source,
)
from tests.stream.runs import copied

pytestmark = pytest.mark.asyncio
ROWS = [{"name": f'line {n}, "quoted"', "n": str(n)} for n in range(2000)]


async def collected(source: Source, **stream: Any) -> tuple[list[Any], list[Any]]:  # noqa: ANN401
    out = dsp.Collector()
    letters = await copied(source, out, **stream)
    return out.values, letters


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "journal"])
@pytest.mark.parametrize("delivery", ["at_least_once", "effectively_once"])
async def test_what_is_written_is_read_again(kind: str, delivery: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    sink: Sink = {
        "csv": CsvSink(path),
        "jsonl": JsonLinesSink(path),
        "parquet": ParquetSink(path, rows_per_file=512),
        "journal": JournalSink(path),
    }[kind]
    for _ in range(2):  # every run gives the same records with the same identities
        assert await copied(ROWS, sink, delivery=delivery) == []
    if kind == "journal":
        assert list(JournalSink(path).values()) == ROWS
        return
    if kind == "parquet":
        found = pq.read_table(path).to_pylist()
        assert len(list(path.glob("part-*.parquet"))) > 1
        assert not list(path.glob("_part*"))
    else:
        source: Source = CsvSource(path) if kind == "csv" else JsonLinesSource(path)
        found, letters = await collected(source)
        assert letters == []
    assert found == (ROWS if delivery == "effectively_once" else ROWS + ROWS)


async def test_rows_that_cannot_be_read_are_dead_letters(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'n,word\n1,a\n2\n3,"open\nfour,d\n5,\xff\n\n6,f\n')
    values, letters = await collected(CsvSource(path, types={"n": int}))
    assert values == [{"n": 1, "word": "a"}, {"n": 6, "word": "f"}]
    errors = [letter["error"] for letter in letters]
    assert [letter["operator"] for letter in letters] == ["source"] * 4
    for error, words in zip(
        errors, ["1 fields, where", "quote is not closed", "column 'n'", "decode"], strict=True
    ):
        assert words in error
        assert "in.csv, record " in error
    assert [letter["value"] for letter in letters] == ["2", '3,"open', "four,d", "5,\\xff"]


async def test_json_that_is_none_is_a_dead_letter(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \n[2]\n')
    values, letters = await collected(JsonLinesSource(path))
    assert values == [{"a": 1}, [2]]
    assert [letter["id"] for letter in letters] == ["1"]


async def test_fields_over_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b'a,b\n1,"x\ny"\n\n2,\xff\n3,z\n')
    values, letters = await collected(CsvSource(path, multiline=True), batch_records=1)
    assert values == [{"a": "1", "b": "x\ny"}, {"a": "3", "b": "z"}]
    assert len(letters) == 1


async def test_lines_and_rows_by_position(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("a\n\nb\nc")
    assert (await collected(LinesSource(path)))[0] == ["a", "b", "c"]
    assert (await collected(LinesSource(path, encoding=None)))[0] == [b"a", b"b", b"c"]
    table = tmp_path / "in.parquet"
    pq.write_table(pa.table({"x": range(1000), "y": range(1000)}), table, row_group_size=300)
    source = ParquetSource(table, columns=["x"])
    for start in (0, 299, 300, 999, 1000):
        source.begin(start, start)
        found: list[int] = []
        for most in (7, 7, 250, 1000):
            if (chunk := source.take(most)) is not None:
                assert chunk.values.num_rows <= most
                found += chunk.values.column("x").to_pylist()
        while (chunk := source.take(1000)) is not None:
            found += chunk.values.column("x").to_pylist()
        source.end()
        assert found == list(range(start, 1000))


async def test_what_cannot_work_is_told_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a,b\n1,2\n")
    (tmp_path / "other.csv").write_text("x,y\n1,2\n")
    (tmp_path / "no.parquet").write_text("no")
    pipeline = dsp.Pipeline("wrong")
    inputs = [
        JsonLinesSource(tmp_path / "missing.jsonl"),
        JsonLinesSource(tmp_path / "nowhere" / "x"),
        LinesSource(tmp_path),
        CsvSource(tmp_path / "in.csv", columns=["a", "c"]),
        ParquetSource(tmp_path / "no.parquet"),
    ]
    streams = [pipeline.source(source) for source in inputs]
    merged = pipeline.merge(*streams)
    merged.sink(JsonLinesSink(tmp_path / "nowhere" / "out"))
    merged.sink(CsvSink(tmp_path / "other.csv", columns=["a"]))
    with pytest.raises(ConfigError) as caught:
        dsp.run(pipeline)
    text = str(caught.value)
    for words in (
        "missing.jsonl", "no folder", "is a folder", "no column 'c': it has a, b",
        "is no Parquet file", "make it, or change the path", "the sink writes a",
    ):  # fmt: skip
        assert words in text
    assert len(text.splitlines()) == 7


async def test_a_source_that_cannot_be_replayed_needs_a_journal(tmp_path: Path) -> None:
    pipeline = dsp.Pipeline("queue")
    pipeline.source(QueueSource()).sink(JsonLinesSink(tmp_path / "out"))
    config = dsp.Config.model_validate({"stream": {"delivery": "effectively_once"}})
    with pytest.raises(ConfigError, match="Journaled"):
        dsp.run(pipeline, config)


async def test_values_that_do_not_fit_are_dead_letters(tmp_path: Path) -> None:
    letters = await copied([{"a": 1}, {"b": 2}, 3, {"a": 4}], CsvSink(tmp_path / "out.csv"))
    assert (tmp_path / "out.csv").read_text() == "a\n1\n4\n"
    assert [letter["operator"] for letter in letters] == ["sink", "sink"]
    assert "the columns are a, the value has b" in letters[0]["error"]
    letters = await copied([{"a": 1}, {"b": 2}, {"a": 3}], ParquetSink(tmp_path / "out"))
    assert pq.read_table(tmp_path / "out").to_pylist() == [{"a": 1}, {"a": 3}]
    assert len(letters) == 1


async def test_a_file_that_somebody_changed_ends_the_run(tmp_path: Path) -> None:
    path = tmp_path / "out"
    await copied([1, 2, 3], JsonLinesSink(path), delivery="effectively_once")
    path.write_text("1\n")
    with pytest.raises(SinkBroken, match=r"somebody changed it.*out\.ids"):
        await copied([1, 2, 3], JsonLinesSink(path), delivery="effectively_once")


async def test_two_writers_of_one_file(tmp_path: Path) -> None:
    first = JsonLinesSink(tmp_path / "out")
    first.open()
    with pytest.raises(SinkBroken, match="another application writes"):
        await copied([1], JsonLinesSink(tmp_path / "out"))
    first.close()


async def test_half_a_line_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text('1\n{"half":')
    await copied([2], JsonLinesSink(path))
    assert path.read_text() == "1\n2\n"
