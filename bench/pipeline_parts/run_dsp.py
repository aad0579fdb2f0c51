"""One run of a dsp pipeline: ``python -m bench.pipeline_parts.run_dsp PIPELINE RECORDS ...``."""

import argparse
import asyncio
import json
import sys
import time

from bench.pipeline_parts import job
from dsp import Config
from dsp.stream.app import run

URL = "zmq://127.0.0.1:0"


async def measure(
    name: str, delivery: str, batch: int, inline_time: float, *, processes: bool
) -> tuple[float, int]:
    """Give the seconds that the records took, once every process was up, and the count."""
    # Room for eight batches between two instances, of whichever size.
    stream = {"delivery": delivery, "batch_records": batch, "window_records": 8 * batch}
    settings: dict[str, object] = {
        "stream": {**stream, "window_bytes": 1 << 23, "inline_time": inline_time}
    }
    if processes:
        settings["transport"] = {"url": URL}
    config = Config.model_validate(settings)
    job.distinct_lines()
    app = run(f"bench.pipeline_parts.pipelines:{name}", config, processes=processes)
    started = time.perf_counter()
    async with app:
        if processes:
            started = time.perf_counter()
        await app.join()
        seconds = time.perf_counter() - started
    return seconds, app.graph.sinks()[0].body.count


def main() -> None:
    """Run once, print what was measured as JSON."""
    job.calm()
    parser = argparse.ArgumentParser()
    parser.add_argument("pipeline")
    parser.add_argument("--delivery", default="at_least_once")
    parser.add_argument("--batch", type=int, default=job.BATCH)
    parser.add_argument("--inline-time", type=float, default=0.002)
    parser.add_argument("--processes", action="store_true")
    parser.add_argument("--profile", help="write a profile of this process to a file")
    options = parser.parse_args()
    work = measure(
        options.pipeline,
        options.delivery,
        options.batch,
        options.inline_time,
        processes=options.processes,
    )
    if options.profile:
        import cProfile

        with cProfile.Profile() as profile:
            seconds, count = asyncio.run(work)
        profile.dump_stats(options.profile)
    else:
        seconds, count = asyncio.run(work)
    json.dump({"seconds": seconds, "count": count}, sys.stdout)


if __name__ == "__main__":
    main()
