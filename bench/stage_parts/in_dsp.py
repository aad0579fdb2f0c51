"""A stage of a pipeline, with the engine around it."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

import dsp
import dsp.spark
from bench.stage_parts.work import BATCH, Offer, Way, work
from dsp.config import Config
from dsp.stream.sources import Chunk, Position, SourceContext


class Offered(dsp.Source):
    """Batches, each when it is offered."""

    columnar = True

    def __init__(self, batches: list[pa.RecordBatch], offered: Offer) -> None:
        self._batches, self._offered = batches, offered
        self._next = 0

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        """Begin with the first."""

    async def read(self, most: int) -> Chunk | None:
        """Give the next one."""
        if self._next == len(self._batches):
            return None
        wait = self._offered.due(self._next) - time.perf_counter()
        if wait > 0:
            await asyncio.sleep(wait)
        self._next += 1
        return Chunk(self._batches[self._next - 1])


class Seen(dsp.Sink):
    """Counts, and tells who was seen."""

    columnar = True

    def __init__(self, offered: Offer) -> None:
        self._offered = offered
        self.rows = 0

    def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        """Take columns."""
        self.rows += len(ids)
        self._offered.seen(values.column("id"))


class Stage(Way):
    """The stage, in a pipeline of one process."""

    name = "dsp.spark.stage"

    def __init__(self, session: Any) -> None:  # noqa: ANN401
        super().__init__(session)
        # The plans stay between runs, as they do between the batches of one.
        self._body = dsp.spark.stage(work, "id long, name string, total double")
        self._body.open()

    def run(self, batches: list[pa.RecordBatch], offered: Offer) -> int:
        sink = Seen(offered)
        job = dsp.Pipeline("bench")
        job.source(Offered(batches, offered)).columns(self._body, maximum=1).sink(sink)
        asyncio.run(self._drive(job))
        return sink.rows

    async def _drive(self, job: dsp.Pipeline) -> None:
        settings = {"batch_records": BATCH, "window_bytes": 64 << 20}
        async with dsp.run(job, config=Config.model_validate({"stream": settings})) as app:
            await app.join()

    def close(self) -> None:
        self._body.close()
