"""Pipelines that run on the mesh and on Spark, for tests, and what runs them."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import orjson

import dsp
from dsp.config import Config
from dsp.spark import SparkSettings
from dsp.spark.graph import run_graph
from dsp.stream.summary import Summary

MASTER = "local[2]"


async def _meshed(job: dsp.Pipeline, config: Config) -> Summary:
    async with dsp.run(job, config, seed=1) as app:
        return await app.join()


def on_mesh(job: dsp.Pipeline, config: Config | None = None) -> Summary:
    """Run a pipeline on the mesh, in this process."""
    return asyncio.run(_meshed(job, config or Config()))


def on_spark(job: dsp.Pipeline, config: Config | None = None) -> Summary:
    """Run a pipeline on Spark."""
    with run_graph(job, config, SparkSettings(MASTER)) as run:
        return run.join()


def records(sink: dsp.Collector) -> list[tuple[int, bytes]]:
    """Give what a sink got, with identities, in an order of its own, as an edge would carry it."""
    return sorted(zip(sink.ids, map(orjson.dumps, sink.values), strict=True))


def compared(make: Callable[[dsp.Collector], dsp.Pipeline]) -> tuple[Summary, Summary]:
    """Run a pipeline on both; every record and its identity has to be the same."""
    sinks = dsp.Collector(), dsp.Collector()
    meshed = on_mesh(make(sinks[0]))
    sparked = on_spark(make(sinks[1]))
    assert records(sinks[0])
    assert records(sinks[1]) == records(sinks[0])
    for name, mine in sparked.operators.items():
        other = meshed.operators[name]
        counted = (mine.records_in, mine.records_out, mine.dead_letters)
        wanted = (other.records_in, other.records_out, other.dead_letters)
        assert counted == wanted, name
    return meshed, sparked


def words(text: str) -> list[str]:
    """Find the words of a line."""
    return re.findall(r"\w+", text)


def lengths(some: list[str]) -> list[dict[str, Any]]:
    """Measure words, several at a time."""
    return [{"word": word, "length": len(word)} for word in some]
