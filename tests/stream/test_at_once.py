"""Quick bodies in one process are called one after the other, without queues: nothing differs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import dsp
from dsp.config import Config
from dsp.stream.batch import Batch
from dsp.stream.instance import Instance
from dsp.stream.runners import LOOK_BACK
from dsp.stream.sinks.base import SinkBroken
from dsp.stream.tokens import Token

pytestmark = pytest.mark.asyncio
BATCHES = 200


def config(**stream: object) -> Config:
    settings = {"inline_time": 1.0, "batch_records": 10, "window_records": 100, **stream}
    return Config.model_validate({"stream": settings})


class Watched:
    """Counts batches that were processed at once, and whether they were done then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = self.pending = self.queued = 0
        original = Instance.process_now

        def process_now(instance: Instance, source: str, batch: Batch) -> Token | None:
            token = original(instance, source, batch)
            if token is None:
                self.queued += 1
            elif token.is_done:
                self.done += 1
            else:
                self.pending += 1
            return token

        monkeypatch.setattr(Instance, "process_now", process_now)


async def test_batches_go_through_at_once_and_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched, out = Watched(monkeypatch), dsp.Collector()
    pipeline = dsp.Pipeline("quick")
    numbers = pipeline.source(range(10 * BATCHES))
    numbers.map(lambda n: n + 1).filter(lambda n: n % 2 == 0).flat_map(lambda n: [n, n]).sink(out)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with dsp.run(pipeline, config()) as app:
        task = asyncio.create_task(others())
        summary = await app.join()
        task.cancel()
    assert sorted(out.values) == [n for n in range(1, 10 * BATCHES + 1) if n % 2 == 0 for _ in "ab"]
    assert {each.records_in for each in summary.operators.values()} >= {10 * BATCHES}
    # The first few calls of each body were in a thread, to see how long it takes.
    assert watched.done > 4 * (BATCHES - 20 * LOOK_BACK) > 0
    assert turns > BATCHES


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once", "effectively_once"])
async def test_records_that_fail_are_dead_letters(
    monkeypatch: pytest.MonkeyPatch, delivery: str
) -> None:
    watched, out, dead = Watched(monkeypatch), dsp.Collector(), dsp.Collector()
    pipeline = dsp.Pipeline("failing")
    numbers = pipeline.source(range(10 * BATCHES))
    numbers.map(lambda n: n + 1).map(lambda n: 0 * (1 // (n % 50)) + n, name="guilty").sink(out)
    pipeline.dead_letters(dead)
    async with dsp.run(pipeline, config(delivery=delivery)) as app:
        await app.join()
    assert sorted(out.values) == [n for n in range(1, 10 * BATCHES + 1) if n % 50]
    assert {letter["operator"] for letter in dead.values} == {"guilty"}
    assert len(dead.values) == 10 * BATCHES // 50
    assert watched.done > BATCHES


async def test_more_may_come_out_than_there_is_room_for() -> None:
    """What comes after is not done at once, and takes less than comes of one batch."""
    out = dsp.Collector()
    pipeline = dsp.Pipeline("many")

    async def later(values: list[int]) -> list[int]:
        await asyncio.sleep(0)
        return values

    many = pipeline.source(range(BATCHES)).flat_map(lambda n: [n] * 40, name="many")
    many.map(lambda n: n).batches(later).sink(out)
    async with dsp.run(pipeline, config()) as app:
        await app.join()
    assert sorted(out.values) == [n for n in range(BATCHES) for _ in range(40)]


async def test_a_sink_that_breaks_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)

    class Full(dsp.Collector):
        def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
            if 1000 in values:
                raise SinkBroken("the disk is full")
            super().write(values, ids)

    pipeline = dsp.Pipeline("breaking")
    pipeline.source(range(10 * BATCHES)).map(lambda n: n).sink(Full())
    with pytest.raises(SinkBroken, match="the disk is full"):
        async with dsp.run(pipeline, config()) as app:
            await app.join()
    assert watched.done
