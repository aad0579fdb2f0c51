"""Identities that a sink keeps: no more than a restart may bring again."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsp
from dsp.stream import reading
from dsp.stream.batch import child, origin
from dsp.stream.offsets import LANE_BITS, ends_of
from dsp.stream.sinks import JsonLinesSink, ParquetSink
from dsp.stream.sinks.identities import Identities
from dsp.stream.sources import CsvSource
from dsp.stream.sources.base import IterableSource
from tests.stream.runs import finished

RECORDS = 4000


def kept(path: Path) -> int:
    file = sqlite3.connect(path)
    try:
        (count,) = file.execute("SELECT count(*) FROM taken").fetchone()
    finally:
        file.close()
    return int(count)


def twice(value: int) -> list[int]:
    return [value, value]


def job(source: object, sink: object) -> dsp.Pipeline:
    pipeline = dsp.Pipeline("forget")
    pipeline.source(source).flat_map(twice).sink(sink)  # type: ignore[arg-type]
    return pipeline


@pytest.mark.asyncio
async def test_a_file_sink_keeps_what_may_come_again_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SETTLE_EVERY", 500)
    path = tmp_path / "out.jsonl"
    settings: dict[str, Any] = {
        "delivery": "effectively_once",
        "batch_records": 50,
        "state_directory": str(tmp_path / "state"),
    }
    for _ in range(2):  # the second run begins where the first one ended: nothing comes again
        await finished(job(IterableSource(range(RECORDS)), JsonLinesSink(path)), **settings)
        assert len(path.read_text().splitlines()) == 2 * RECORDS
    # Of two records each: those of the last rounds, of 500 and what was under way.
    assert 0 < kept(tmp_path / "out.jsonl.ids") <= 2 * 3 * (500 + 50)


@pytest.mark.asyncio
async def test_without_a_state_directory_all_may_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "SETTLE_EVERY", 500)
    path = tmp_path / "out.jsonl"
    for _ in range(2):
        source = IterableSource(range(RECORDS))
        await finished(
            job(source, JsonLinesSink(path)), delivery="effectively_once", batch_records=50
        )
        assert len(path.read_text().splitlines()) == 2 * RECORDS
    assert kept(tmp_path / "out.jsonl.ids") == 2 * RECORDS


@pytest.mark.asyncio
async def test_a_parquet_sink_forgets_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SETTLE_EVERY", 500)
    rows = tmp_path / "in.csv"
    rows.write_text("n\n" + "".join(f"{n}\n" for n in range(RECORDS)))
    pipeline = dsp.Pipeline("parquet")
    pipeline.source(CsvSource(rows)).sink(ParquetSink(tmp_path / "out"))
    await finished(
        pipeline,
        delivery="effectively_once",
        batch_records=50,
        state_directory=str(tmp_path / "state"),
    )
    assert 0 < kept(tmp_path / "out" / "_ids") <= 3 * (500 + 50)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 30), st.booleans())),
    st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(0, 40)),
)
def test_forgotten_is_what_is_before_an_end(
    records: list[tuple[int, int, int, bool]], before: dict[tuple[int, int], int]
) -> None:
    def lane(source: int, partition: int) -> int:
        return origin(source, partition << LANE_BITS) >> LANE_BITS

    ids, left = set(), set()
    for source, partition, number, is_made in records:
        plain = origin(source, partition << LANE_BITS | number)
        each = child(plain, 7, 3) if is_made else plain
        ids.add(each)
        if number >= before.get((source, partition), 0):
            left.add(each)
    identities = Identities(Path(":memory:"), fsync=False)
    identities.commit(ids, "file", 0)
    ends = {lane(*place): (lane(*place) << LANE_BITS) + end for place, end in before.items()}
    identities.forget(ends)
    ordered = sorted(ids)
    known = {each for i, each in enumerate(ordered) if i not in identities.fresh(ordered)}
    assert known == left
    identities.close()


def test_ends_of_a_chunk() -> None:
    assert ends_of(range(5, 9)) == {0: 9}
    assert ends_of([3, 1]) == {0: 4}
    edge = 1 << LANE_BITS
    assert ends_of(range(edge - 1, edge + 2)) == {0: edge, 1: edge + 2}
    assert ends_of([edge + 5, 2, edge + 1]) == {1: edge + 6, 0: 3}
    assert ends_of(range(0)) == {}
