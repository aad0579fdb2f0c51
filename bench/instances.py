"""What a record costs with 50 instances of an operator, beside one with 2, in one world.

    python bench/instances.py [--json] [--records 200000] [--runs 5] [--few 2] [--many 50]

The same lines go through the same body to the same sink. Every instance is a host of its own in one
simulated world, so all of them are in this process, and all that they do is counted: source, sink,
sessions and network too. What may grow with the number of instances is what they say to each other.

- full: lines come as fast as they are taken, so that every instance has as much to do as any;
- paced: lines come at the same rate, of virtual time, to few and to many, so that each of the many
  has little to do, and acknowledgements have less company on their way.

CPU time from the first record at the sink to the last one: starting instances is not part of it.
Runs of few and of many take turns; the ratio is that of the medians.
"""

import argparse
import asyncio
import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import median
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import dsp
from dsp.config import Config
from dsp.stream.app import run
from dsp.stream.sinks.base import Sink
from dsp.stream.sources.base import Chunk, Source
from dsp.testing import Host, LinkConditions, World
from dsp.testing.pipelines import WorldSpawner

GOAL = 1.2
"""Cost of a record with many instances over that with few, at most."""
LATENCY = 0.0005
SERVICE = 0.00001
"""Seconds of virtual time that the body takes for a record: in a world bodies cost none."""
PACE = 100_000.0
WAYS = {"full": 0.0, "paced": PACE}
"""Lines per second of virtual time; 0 for as many as are taken."""


class Lines(Source):
    """Lines of 100 bytes, evenly, at a rate of virtual time."""

    replayable = True

    def __init__(self, records: int, rate: float) -> None:
        self._left = records
        self._rate = rate

    async def read(self, most: int) -> Chunk | None:
        if not self._left:
            return None
        count = min(most, self._left)
        self._left -= count
        if self._rate:
            await asyncio.sleep(count / self._rate)
        return Chunk([_line(self._left + place) for place in range(count)], self._left)


def _line(number: int) -> bytes:
    return b"%010d,%010d," % (number, number % 97) + b"x" * 78


def parse(line: bytes) -> int:
    """What every instance does."""
    return int(line.split(b",")[1])


class Timed(Sink):
    """Counts, and notes the CPU time of the first and the last record."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.began = self.ended = 0.0

    def write(self, values: Sequence[Any], ids: Sequence[int]) -> None:
        if not self.count:
            self.began = process_time()
        self.count += len(values)
        self.ended = process_time()


def once(instances: int, records: int, rate: float) -> float:
    """Run a world; give the microseconds of CPU per record.

    Raises:
        RuntimeError: a record is missing or came twice.
    """
    sink = Timed()
    pipeline = dsp.Pipeline("instances")
    lines = pipeline.source(Lines(records, rate), name="lines", codec="bytes")
    bounds = {"instances": instances, "minimum": instances, "maximum": instances}
    lines.map(parse, name="parse", service_time=SERVICE, **bounds).sink(sink, name="out")
    with World(1, LinkConditions(latency=LATENCY)) as world:

        async def main(host: Host) -> None:
            config = Config.model_validate({"transport": {"url": host.url}})
            spawner = WorldSpawner(world, pipeline.graph(), config)
            async with run(pipeline, config, spawner=spawner, seed=1, deciders=nobody) as app:
                await app.join()

        host = world.add_host("app", main)
        world.run_until(lambda: host.finished, limit=100_000)
    if sink.count != records:
        raise RuntimeError(f"{sink.count} of {records} records")
    return 1e6 * (sink.ended - sink.began) / records


def nobody(operator: str, random: Random) -> None:
    """Let no instance scale."""


def measured(records: int, rate: float, counts: Sequence[int], runs: int) -> list[list[float]]:
    """Give the costs of all runs for each number of instances."""
    found: list[list[float]] = [[] for _ in counts]
    for _ in range(runs):
        for costs, instances in zip(found, counts, strict=True):
            gc.collect()
            costs.append(once(instances, records, rate))
    return found


def main() -> int:
    """Measure, print; the exit code does not depend on the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5, help="of each")
    parser.add_argument("--few", type=int, default=2, help="instances")
    parser.add_argument("--many", type=int, default=50, help="instances")
    options = parser.parse_args()
    counts = (options.few, options.many)
    told: dict[str, Any] = {"goal": GOAL, "instances": counts, "ways": {}}
    for way, rate in WAYS.items():
        few, many = measured(options.records, rate, counts, options.runs)
        ratio = median(many) / median(few)
        told["ways"][way] = {"few_us": few, "many_us": many, "ratio": ratio}
        if not options.json:
            for count, costs in zip(counts, (few, many), strict=True):
                over = f"x{median(costs) / median(few):.2f}"
                print(
                    f"{way:6} {count:4} instances {median(costs):8.2f} us of CPU per record  {over}"
                )
            verdict = "met" if ratio <= GOAL else "MISSED"
            print(f"{verdict}: {way}, x{ratio:.2f} (at most {GOAL:g})")
    if options.json:
        print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(main())
