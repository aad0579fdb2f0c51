"""A pipeline inside somebody else's program: what it touches, how it ends, what it holds back."""

import asyncio
import logging
import signal
from collections.abc import Sequence
from typing import Any

import pytest

from dsp.config import Config
from dsp.stream.app import run
from dsp.stream.pipeline import Pipeline
from dsp.stream.sinks.base import Collector, Sink
from dsp.stream.sources.base import Chunk, QueueSource, Source

PATIENCE = 30.0


def numbers(count: int) -> tuple[Pipeline, Collector]:
    collector = Collector()
    pipeline = Pipeline("numbers")
    pipeline.source(range(count)).map(lambda n: n + 1, name="more").sink(collector)
    return pipeline, collector


def surroundings() -> tuple[Any, ...]:
    root = logging.getLogger()
    return (
        type(asyncio.get_event_loop_policy()),
        asyncio.get_running_loop().get_exception_handler(),
        {number: signal.getsignal(number) for number in signal.valid_signals()},
        list(root.handlers),
        root.level,
        {name: logging.getLogger(name).level for name in ("dsp", "asyncio")},
        {name: list(logging.getLogger(name).handlers) for name in ("dsp", "asyncio")},
    )


@pytest.mark.asyncio
async def test_nothing_of_the_program_is_touched() -> None:
    before = surroundings()
    tasks = asyncio.all_tasks()
    pipeline, collector = numbers(1000)
    async with run(pipeline) as app:
        assert surroundings() == before
        await app.join()
    assert surroundings() == before
    assert asyncio.all_tasks() == tasks
    assert collector.values == list(range(1, 1001))


@pytest.mark.asyncio
async def test_two_at_once_beside_a_server() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        first, second = numbers(5000), numbers(3000)
        async with run(first[0]) as one, run(second[0]) as other:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            assert await reader.readline() == b"hello\n"
            writer.close()
            summaries = await asyncio.gather(one.join(), other.join())
    assert [each.records_out for each in summaries] == [5000, 3000]
    assert sorted(first[1].values) == list(range(1, 5001))
    assert sorted(second[1].values) == list(range(1, 3001))


@pytest.mark.asyncio
async def test_cancellation_drains_what_is_under_way() -> None:
    source, collector = QueueSource(), Collector()
    pipeline = Pipeline("cancelled")
    pipeline.source(source).map(str, name="text").sink(collector)
    up = asyncio.Event()

    async def embed() -> None:
        async with run(pipeline) as app:
            for n in range(500):
                await source.put(n)
            while app.host.instances and not collector.values:
                await asyncio.sleep(0.001)
            up.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(embed())
    async with asyncio.timeout(PATIENCE):
        await up.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    # All that was read came out, once, and in order.
    assert collector.values == [str(n) for n in range(len(collector.values))]
    assert collector.values


class Stuck(Sink):
    """Takes records only when it is let."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.reached = asyncio.Event()
        self.taken = 0

    async def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        self.reached.set()
        await self.gate.wait()
        self.taken += len(values)


@pytest.mark.asyncio
async def test_a_sink_that_never_ends_does_not_keep_the_program() -> None:
    sink = Stuck()
    pipeline = Pipeline("stuck")
    pipeline.source(range(100)).sink(sink)
    config = Config.model_validate({"stream": {"drain_timeout": 0.1}})
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(TimeoutError):
            async with run(pipeline, config):
                await sink.reached.wait()
    assert sink.taken == 0


class Asked(Source):
    """Counts the records that it was asked for; has more than anyone wants."""

    def __init__(self) -> None:
        self.given = 0

    async def read(self, most: int) -> Chunk | None:
        self.given += most
        return Chunk([self.given] * most)


@pytest.mark.asyncio
async def test_a_slow_sink_holds_the_source_back() -> None:
    source, sink = Asked(), Stuck()
    pipeline = Pipeline("held-back")
    stages = pipeline.source(source).map(abs, name="one").map(abs, name="two")
    stages.sink(sink)
    window, batch = 256, 64
    config = Config.model_validate({"stream": {"window_records": window, "batch_records": batch}})
    async with run(pipeline, config) as app:
        before = -1
        async with asyncio.timeout(PATIENCE):
            # Nothing more is asked for once every window is full.
            while before != source.given:
                before = source.given
                await asyncio.sleep(0.3)
        # A window and a batch on each of three edges, what the bodies hold, and one in the hand.
        assert source.given <= 3 * (window + batch) + 2 * 8 * batch + batch
        sink.gate.set()
        summary = await app.stop()
    assert sink.taken == source.given == summary.records_out
