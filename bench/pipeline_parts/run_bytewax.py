"""One run of bytewax: ``python -m bench.pipeline_parts.run_bytewax [--processes N]``.

With several processes each reads its share of the lines, and an exchange lies between the halves
of the job. What is timed is from the first line read to the last count, on the machine's clock.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from bench.pipeline_parts import job

seen: dict[str, float] = {"first": float("inf"), "last": 0.0, "count": 0}


class Share(StatelessSourcePartition[str]):  # type: ignore[misc]
    """The lines that one worker reads."""

    def __init__(self, records: int, batch: int) -> None:
        self._batches: Iterator[list[str]] = job.batches(records, batch)

    def next_batch(self) -> Iterable[str]:
        if seen["first"] == float("inf"):
            seen["first"] = time.time()
        batch = next(self._batches, None)
        if batch is None:
            raise StopIteration
        return batch


class Lines(DynamicSource[str]):  # type: ignore[misc]
    """The lines, shared among workers."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Share:
        records = int(os.environ["DSP_BENCH_RECORDS"])
        share = records // worker_count + (worker_index < records % worker_count)
        return Share(share, job.BATCH if worker_count == 1 else job.WIDE_BATCH)


class Adder(StatelessSinkPartition[int]):  # type: ignore[misc]
    """Adds up the counts that come to one worker."""

    def write_batch(self, items: list[int]) -> None:
        seen["count"] += sum(items)
        seen["last"] = time.time()


class Total(DynamicSink[int]):  # type: ignore[misc]
    """Adds up counts."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> Adder:
        return Adder()


def flow(exchange: bool) -> Dataflow:
    """The job."""
    dataflow = Dataflow("bench")
    lines = op.input("lines", dataflow, Lines())
    kept: Any = op.flat_map_batch("parse_and_keep", lines, job.parse_and_keep)
    if exchange:
        kept = op.redistribute("exchange", kept)
    counts = op.flat_map_batch("count", kept, lambda batch: [job.convert_and_count(batch)])
    op.output("total", counts, Total())
    return dataflow


def main() -> None:
    """Run once, print what was measured as JSON."""
    job.calm()
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--number", type=int)
    parser.add_argument("--addresses", default="")
    options = parser.parse_args()
    job.distinct_lines()
    if options.processes == 1:
        cli_main(flow(exchange=False))
        results = [seen]
    elif options.number is not None:
        addresses = options.addresses.split(";")
        cli_main(flow(exchange=True), process_id=options.number, addresses=addresses)
        json.dump(seen, sys.stdout)
        return
    else:
        results = _several(options.processes)
    first = min(each["first"] for each in results)
    last = max(each["last"] for each in results)
    count = sum(each["count"] for each in results)
    json.dump({"seconds": last - first, "count": int(count)}, sys.stdout)


def _several(processes: int) -> list[dict[str, float]]:
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(processes)]
    addresses = ";".join(f"127.0.0.1:{door.getsockname()[1]}" for door in doors)
    for door in doors:
        door.close()
    module = "bench.pipeline_parts.run_bytewax"
    command = [sys.executable, "-m", module, "--processes", str(processes)]
    children = [
        subprocess.Popen(
            [*command, "--addresses", addresses, "--number", str(number)], stdout=subprocess.PIPE
        )
        for number in range(processes)
    ]
    # bytewax tells of what it tries again in between.
    return [json.loads(child.communicate()[0].splitlines()[-1]) for child in children]


if __name__ == "__main__":
    main()
