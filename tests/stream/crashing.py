"""A process that runs a pipeline from file to file, to be killed: ``python crashing.py ORDER``."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import orjson

import dsp
from dsp.config import Config
from dsp.stream.sinks import CsvSink, JournalSink, JsonLinesSink, ParquetSink, Sink
from dsp.stream.sources import CsvSource, Journaled, JsonLinesSource, Source, TcpLinesSource


def make_source(order: dict[str, Any], folder: Path) -> Source:
    match order["source"]:
        case "csv":
            return CsvSource(folder / "in.csv", types={"n": int})
        case "jsonl":
            return JsonLinesSource(folder / "in.jsonl")
        case _:
            return Journaled(TcpLinesSource(), folder / "journal", codec="json")


def make_sink(order: dict[str, Any], folder: Path) -> Sink:
    match order["sink"]:
        case "csv":
            return CsvSink(folder / "out.csv")
        case "jsonl":
            return JsonLinesSink(folder / "out.jsonl")
        case "parquet":
            return ParquetSink(folder / "out", rows_per_file=700)
        case _:
            return JournalSink(folder / "out.sqlite")


def number(value: Any) -> dict[str, int]:  # noqa: ANN401
    """Make the same of a row and of a line."""
    return {"n": value["n"] if isinstance(value, dict) else int(value)}


def twice(value: dict[str, int]) -> list[dict[str, int]]:
    return [{"n": value["n"], "copy": copy} for copy in (0, 1)]


async def main(order: dict[str, Any], folder: Path) -> None:
    source = make_source(order, folder)
    pipeline = dsp.Pipeline("crashing")
    stream = pipeline.source(source).map(number).flat_map(twice)
    stream.sink(make_sink(order, folder))
    settings = {"delivery": order["delivery"], "state_directory": str(folder), "batch_records": 64}
    config = Config.model_validate({"stream": settings})
    async with dsp.run(pipeline, config) as app:
        if isinstance(source, Journaled):
            listening = source.source
            assert isinstance(listening, TcpLinesSource)
            while not listening.listening:
                await asyncio.sleep(0.01)
            print(listening.address[1], flush=True)
            await asyncio.to_thread(sys.stdin.read)
            await app.stop()
        summary = await app.join()
    print("repeats", summary.repeats, flush=True)


if __name__ == "__main__":
    order = orjson.loads(sys.argv[1])
    asyncio.run(main(order, Path(order["folder"])))
