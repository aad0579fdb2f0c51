"""One run of two dask actors: ``python -m bench.pipeline_parts.run_dask``."""

import json
import os
import sys
import time
from collections import deque
from typing import Any

from dask.distributed import Client, LocalCluster

from bench.pipeline_parts import job

UNDER_WAY = 16


class Parser:
    """The first half of the job."""

    def __init__(self, counter: Any) -> None:  # noqa: ANN401 - a proxy that dask makes
        self._counter = counter

    def run(self, lines: list[str]) -> int:
        """Do it for a batch, and let the other actor do the rest."""
        return int(self._counter.run(job.parse_and_keep(lines)).result())


class Counter:
    """The second half of the job."""

    def run(self, records: list[job.Record]) -> int:
        """Do it for a batch."""
        return job.convert_and_count(records)


def main() -> None:
    """Run once, print what was measured as JSON."""
    job.calm()
    records = int(os.environ["DSP_BENCH_RECORDS"])
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        first, second = list(client.scheduler_info()["workers"])
        counter = client.submit(Counter, actor=True, workers=[second]).result()
        parser = client.submit(Parser, counter, actor=True, workers=[first]).result()
        parser.run(job.distinct_lines()[: job.BATCH]).result()
        waiting: deque[Any] = deque()
        count = 0
        started = time.perf_counter()
        for batch in job.batches(records, job.WIDE_BATCH):
            waiting.append(parser.run(batch))
            if len(waiting) >= UNDER_WAY:
                count += waiting.popleft().result()
        count += sum(each.result() for each in waiting)
        seconds = time.perf_counter() - started
    json.dump({"seconds": seconds, "count": count}, sys.stdout)


if __name__ == "__main__":
    main()
