"""Loops that somebody could write by hand."""

from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import pyarrow as pa

from bench.stage_parts.work import Offer, Way, work
from dsp.spark.stage_feed import FileFeed
from dsp.spark.stage_plan import _numbers
from dsp.spark.stage_schema import arrow_schema, spark_schema


def joined(batches: list[pa.RecordBatch], numbers: list[int]) -> pa.Table:
    """Put batches together."""
    return pa.Table.from_batches([batches[number] for number in numbers])


class Jobs(Way):
    """A job for what waits: the batch is sent along, a plan is made each time."""

    def __init__(self, session: Any, most: int) -> None:  # noqa: ANN401
        super().__init__(session)
        self.most = most
        self.name = "job per batch" if most == 1 else f"job for up to {most} batches"

    def run(self, batches: list[pa.RecordBatch], offered: Offer) -> int:
        rows = 0
        while numbers := offered.take(self.most):
            made = work(self.session.createDataFrame(joined(batches, numbers))).toArrow()
            rows += made.num_rows
            offered.seen(made.column("id"))
        return rows


class Prepared(Way):
    """One plan for all jobs, a file swapped under it; several of them at the same time."""

    def __init__(self, session: Any, most: int, in_flight: int) -> None:  # noqa: ANN401
        super().__init__(session)
        self.most, self.in_flight = most, in_flight
        several = f", {in_flight} in flight" if in_flight > 1 else ""
        self.name = f"prepared plan, up to {most} batches{several}"
        self._plans: list[tuple[FileFeed, Any]] = []

    def _plan(self, batches: list[pa.RecordBatch]) -> tuple[FileFeed, Any]:
        if self._plans:
            return self._plans.pop()
        feed, struct = FileFeed(1), spark_schema(batches[0].schema)
        frame = _numbers(self.session, 1).mapInArrow(feed.reader(), struct)
        return feed, work(frame)

    def run(self, batches: list[pa.RecordBatch], offered: Offer) -> int:
        schema = arrow_schema(spark_schema(batches[0].schema))
        lock = Lock()

        def job(numbers: list[int]) -> int:
            feed, frame = plan = self._plan(batches)
            feed.put(joined(batches, numbers).combine_chunks().cast(schema).to_batches()[0])
            made = frame.toArrow()
            self._plans.append(plan)
            offered.seen(made.column("id"))
            return int(made.num_rows)

        def loop() -> int:
            mine = 0
            while True:
                with lock:
                    numbers = offered.take(self.most)
                if not numbers:
                    return mine
                mine += job(numbers)

        with ThreadPoolExecutor(self.in_flight) as pool:
            # Each of the threads takes what waits when it is free.
            return sum(pool.map(lambda _: loop(), range(self.in_flight)))

    def close(self) -> None:
        for feed, _ in self._plans:
            feed.close()
