"""One run without an engine: ``python -m bench.pipeline_parts.run_plain [--columns]``."""

import json
import os
import sys
import time

from bench.pipeline_parts import columns, job


def main() -> None:
    """Run once, print what was measured as JSON."""
    job.calm()
    records = int(os.environ["DSP_BENCH_RECORDS"])
    work = columns.plain if "--columns" in sys.argv else job.plain
    work(job.DISTINCT)
    started = time.perf_counter()
    count = work(records)
    json.dump({"seconds": time.perf_counter() - started, "count": count}, sys.stdout)


if __name__ == "__main__":
    main()
