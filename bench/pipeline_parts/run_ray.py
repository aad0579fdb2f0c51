"""One run of two ray actors: ``python -m bench.pipeline_parts.run_ray``."""

import json
import os
import sys
import time
from collections import deque

import ray

from bench.pipeline_parts import job

UNDER_WAY = 16


@ray.remote
class Parser:
    """The first half of the job."""

    def run(self, lines: list[str]) -> list[job.Record]:
        """Do it for a batch."""
        return job.parse_and_keep(lines)


@ray.remote
class Counter:
    """The second half of the job."""

    def run(self, records: list[job.Record]) -> int:
        """Do it for a batch."""
        return job.convert_and_count(records)


def main() -> None:
    """Run once, print what was measured as JSON."""
    job.calm()
    records = int(os.environ["DSP_BENCH_RECORDS"])
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    parser = Parser.remote()  # type: ignore[attr-defined]
    counter = Counter.remote()  # type: ignore[attr-defined]
    ray.get(counter.run.remote(parser.run.remote(job.distinct_lines()[: job.BATCH])))
    waiting: deque[ray.ObjectRef] = deque()
    count = 0
    started = time.perf_counter()
    for batch in job.batches(records, job.WIDE_BATCH):
        waiting.append(counter.run.remote(parser.run.remote(batch)))
        if len(waiting) >= UNDER_WAY:
            count += ray.get(waiting.popleft())
    count += sum(ray.get(list(waiting)))
    seconds = time.perf_counter() - started
    ray.shutdown()
    json.dump({"seconds": seconds, "count": count}, sys.stdout)


if __name__ == "__main__":
    main()
