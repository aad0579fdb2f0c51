"""Spark with dsp against Spark by hand, side by side in one run, as ratios.

    python bench/spark.py [--json] [--runs 3] [--records 200000] [--master local[2]] [--only NAME]

Each part compares ways to do one thing; ways take turns, so that what else the machine does hits
all of them alike. Figures are medians. One session is shared: starting Spark is not timed.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.spark_parts import functions, graph  # noqa: E402 - the path is set above
from dsp.spark import SparkSettings, hold  # noqa: E402

PARTS = ("functions", "graph")


def main() -> None:
    """Run the parts, and print what they found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--runs", type=int, default=3, help="of each way, default 3")
    parser.add_argument("--records", type=int, default=200_000, help="of each run of a stream")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    found = []
    lease = hold(SparkSettings(options.master))
    try:
        for part in options.only:
            print(f"[spark] {part}", file=sys.stderr, flush=True)
            if part == "functions":
                found += functions.contests(lease.session, 10 * options.records, options.runs)
            else:
                found += graph.contests(
                    lease.session, options.master, options.records, options.runs
                )
    finally:
        lease.release()
    if options.json:
        print(json.dumps([contest.values() for contest in found]))
    else:
        print("\n".join(line for contest in found for line in contest.lines()))


if __name__ == "__main__":
    main()
