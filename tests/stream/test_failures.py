"""Bodies that raise or hang: tried again, then a dead letter, and the stream goes on."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

import dsp
from dsp.config import Config
from tests.stream.runs import finished

pytestmark = pytest.mark.asyncio
VALUES = [{"n": n} for n in range(300)]


def check(value: dict[str, int], tries: Counter[int]) -> dict[str, int]:
    tries[value["n"]] += 1
    if value["n"] % 100 == 7:
        raise ArithmeticError(f"seven in {value['n']}")
    return value


def add_body(stream: dsp.Stream, kind: str, tries: Counter[int]) -> dsp.Stream:
    async def alone(value: dict[str, int]) -> dict[str, int]:
        return check(value, tries)

    async def together(values: list[dict[str, int]]) -> list[dict[str, int]]:
        return [check(value, tries) for value in values]

    def columns(batch: pa.RecordBatch) -> pa.RecordBatch:
        for value in batch.to_pylist():
            check(value, tries)
        return batch

    match kind:
        case "sync":
            return stream.map(lambda value: check(value, tries), name="body")
        case "async":
            return stream.map(alone, name="body")
        case "filter":
            return stream.filter(lambda value: bool(check(value, tries)), name="body")
        case "flat_map":
            return stream.flat_map(lambda value: [check(value, tries)], name="body")
        case "batches":
            return stream.batches(lambda values: [check(v, tries) for v in values], name="body")
        case "async batches":
            return stream.batches(together, name="body")
        case _:
            return stream.columns(columns, name="body")


KINDS = ["sync", "async", "filter", "flat_map", "batches", "async batches", "columns"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_body_that_raises(kind: str) -> None:
    tries: Counter[int] = Counter()
    out, letters = dsp.Collector(), dsp.Collector()
    pipeline = dsp.Pipeline("failing")
    add_body(pipeline.source(VALUES), kind, tries).sink(out)
    pipeline.dead_letters(letters)
    summary = await finished(pipeline, retries=2)
    assert sorted(value["n"] for value in out.values) == [n for n in range(300) if n % 100 != 7]
    assert sorted(letter["value"]["n"] for letter in letters.values) == [7, 107, 207]
    for letter in letters.values:
        assert letter["operator"] == "body"
        assert letter["error"] == f"ArithmeticError: seven in {letter['value']['n']}"
        assert "Traceback" in letter["traceback"]
        assert "in check" in letter["traceback"]
        assert tries[letter["value"]["n"]] >= 3
    assert summary.dead_letters == 3


def sync_sink(take: Callable[[Any], None]) -> Callable[[Any], Any]:
    return take


def async_sink(take: Callable[[Any], None]) -> Callable[[Any], Any]:
    async def taking(value: Any) -> None:  # noqa: ANN401
        take(value)

    return taking


@pytest.mark.parametrize("form", [sync_sink, async_sink])
async def test_a_sink_that_raises_gets_no_other_record_twice(form: Callable[..., Any]) -> None:
    taken: list[int] = []
    tries: Counter[int] = Counter()

    def take(value: dict[str, int]) -> None:
        check(value, tries)
        taken.append(value["n"])

    letters = dsp.Collector()
    pipeline = dsp.Pipeline("failing")
    pipeline.source(VALUES).sink(form(take), name="taking")
    pipeline.dead_letters(letters)
    await finished(pipeline, retries=2)
    assert taken == [n for n in range(300) if n % 100 != 7]
    assert [letter["value"]["n"] for letter in letters.values] == [7, 107, 207]
    assert {letter["operator"] for letter in letters.values} == {"taking"}
    assert [tries[n] for n in (6, 7, 8, 107)] == [1, 3, 1, 3]


async def test_without_a_sink_for_them_dead_letters_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    out = dsp.Collector()
    pipeline = dsp.Pipeline("failing")
    pipeline.source(VALUES).map(lambda value: check(value, Counter())).sink(out)
    with caplog.at_level(logging.ERROR, "dsp.stream.letters"):
        summary = await finished(pipeline)
    assert summary.dead_letters == 3
    assert caplog.text.count("is a dead letter: ArithmeticError") == 3


async def test_a_body_that_hangs_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    release = Event()
    out = dsp.Collector()
    pipeline = dsp.Pipeline("hanging")
    pipeline.source([1, 2]).map(lambda value: release.wait(50) and value, name="stuck").sink(out)
    config = Config.model_validate({"stream": {"hang_after": 0.05, "report_every": 0.05}})
    with caplog.at_level(logging.WARNING, "dsp.stream.working"):
        async with dsp.run(pipeline, config) as app:
            async with asyncio.timeout(50):
                while "stuck" not in caplog.text:
                    await asyncio.sleep(0.01)
            assert "has not returned for 0.05 s" in caplog.text
            release.set()
            await app.join()
    assert out.values == [1, 2]


async def test_a_sink_that_cannot_open_ends_the_run() -> None:
    class Closed(dsp.Collector):
        def open(self) -> None:
            raise dsp.DspError("it is closed today")

    pipeline = dsp.Pipeline("closed")
    pipeline.source(range(10)).sink(Closed())
    with pytest.raises(dsp.DspError, match="closed today"):
        await finished(pipeline)
