"""The engine against a plain loop and its peers, side by side in one run, as ratios.

    python bench/pipeline.py [--json] [--runs 3] [--records 2000000] [--peers PYTHON] [--only NAME]

The job: lines of 100 B -> parse 4 fields -> filter -> map -> count. Every run is a process of its
own (with its children); contenders take turns, so that what else the machine does hits all of them
alike. Starting is not timed. Figures are medians. In one process everybody reads 1,024 lines at a
time; with several processes, 4,096, and columns of 16,384.

With three processes, the application reads and two instances share the job, so every line crosses
once. In the run "in halves" they only parse and filter, and what they keep crosses again, to be
mapped and counted in the application; bytewax with two processes has its exchange there.

Peers are no dependencies of dsp. Install the dependency group ``peers`` into an environment of its
own and name its interpreter with ``--peers``; a peer that is not installed is left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.pipeline_parts import columns, job  # noqa: E402 - the path is set above

PLAIN, ONE = "plain loop", "dsp, one process"
ROWS, ROWS_ONCE = "dsp, 3 processes", "dsp, 3 processes, at_most_once"
HALVES = "dsp, 3 processes, in halves"
TEXT, PARQUET = "dsp columns, same lines", "dsp columns, Parquet"
BYTEWAX, BYTEWAX_2 = "bytewax, 1 worker", "bytewax, 2 processes"
RAY, DASK = "ray actors", "dask actors"
PATIENCE = 120.0


@dataclass(frozen=True)
class Contender:
    """Somebody who does the job: a module to run, with arguments."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    peer: str = ""
    share: float = 1.0


@dataclass
class Result:
    """What a contender did."""

    contender: str
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Records per second, the median."""
        return median(self.rates)


ROW = ("--processes", "--batch", str(job.WIDE_BATCH))
# A batch of columns holds more records and takes longer, for as many turns of the loop.
WIDE = ("--processes", "--batch", str(columns.COLUMN_BATCH), "--inline-time", "0.02")
CONTENDERS = (
    Contender(PLAIN, "run_plain"),
    Contender(ONE, "run_dsp", ("one_process",)),
    Contender(ROWS, "run_dsp", ("rows", *ROW)),
    Contender(ROWS_ONCE, "run_dsp", ("rows", *ROW, "--delivery", "at_most_once")),
    Contender(HALVES, "run_dsp", ("halves", *ROW)),
    Contender("plain loop, columns", "run_plain", ("--columns",)),
    Contender(TEXT, "run_dsp", ("line_columns", *WIDE)),
    Contender(PARQUET, "run_dsp", ("parquet_columns", *WIDE)),
    Contender(BYTEWAX, "run_bytewax", peer="bytewax"),
    Contender(BYTEWAX_2, "run_bytewax", ("--processes", "2"), peer="bytewax"),
    Contender(RAY, "run_ray", peer="ray", share=0.5),
    Contender(DASK, "run_dask", peer="distributed", share=0.1),
)

GOALS = (
    # contender, base, at least
    (ROWS, BYTEWAX_2, 1.2),
    (ROWS, BYTEWAX, 0.6),
    (HALVES, BYTEWAX_2, 1.0),
    (ROWS, RAY, 1.0),
    (ROWS, DASK, 1.0),
    (TEXT, ROWS, 2.0),
    (PARQUET, ROWS, 5.0),
    (PARQUET, BYTEWAX, 1.0),
    (TEXT, BYTEWAX, 1.0),
    (ONE, PLAIN, 0.7),
    (ROWS, ROWS_ONCE, 0.8),
)


def installed(python: str, package: str) -> bool:
    """Tell whether an interpreter finds a package."""
    return subprocess.run([python, "-c", f"import {package}"], capture_output=True).returncode == 0


def run(contender: Contender, python: str, records: int, parquet: str) -> float:
    """Let a contender do the job once; give records per second.

    Raises:
        RuntimeError: it failed, or counted wrong.
    """
    # Two processes with a share each keep as many as one with all, if shares are whole rounds.
    rounds = max(1, int(records * contender.share) // (2 * job.DISTINCT))
    records = rounds * 2 * job.DISTINCT
    done = subprocess.run(
        [python, "-m", f"bench.pipeline_parts.{contender.module}", *contender.arguments],
        cwd=ROOT,
        env={**os.environ, "DSP_BENCH_RECORDS": str(records), "DSP_BENCH_PARQUET": parquet},
        capture_output=True,
        timeout=PATIENCE,
    )
    if done.returncode:
        raise RuntimeError(f"{contender.name} failed:\n{done.stderr.decode()[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    if told["count"] != job.expected(records):
        raise RuntimeError(f"{contender.name} counted {told['count']}")
    return float(records / told["seconds"])


def verdicts(results: dict[str, Result]) -> list[str]:
    """Say which goals are met."""
    lines = []
    for name, base, goal in GOALS:
        if name in results and base in results:
            ratio = results[name].rate / results[base].rate
            state = "met" if ratio >= goal else "MISSED"
            lines.append(f"{state}: {name} is {ratio:.2f} of {base} (at least {goal})")
    return lines


def main() -> int:
    """Measure, print a table and the goals; the exit code does not depend on them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--runs", type=int, default=3, help="of each contender, default 3")
    parser.add_argument("--records", type=int, default=2_000_000, help="of each run")
    parser.add_argument("--peers", default=sys.executable, help="interpreter that has the peers")
    parser.add_argument("--only", nargs="+", default=[], help="contenders whose names begin so")
    options = parser.parse_args()
    chosen = []
    for contender in CONTENDERS:
        if options.only and not contender.name.startswith(tuple(options.only)):
            continue
        if contender.peer and not installed(options.peers, contender.peer):
            print(f"{contender.name} is left out: not installed", file=sys.stderr)
            continue
        chosen.append(contender)
    results = {contender.name: Result(contender.name) for contender in chosen}
    with tempfile.TemporaryDirectory() as directory:
        parquet = str(Path(directory) / "fields.parquet")
        columns.write_parquet(parquet, max(options.records, 2 * job.DISTINCT))
        for number in range(options.runs):
            for contender in chosen:
                python = options.peers if contender.peer else sys.executable
                rate = run(contender, python, options.records, parquet)
                results[contender.name].rates.append(rate)
                line = f"[{number + 1}/{options.runs}] {contender.name}: {rate:,.0f} records/s"
                print(line, file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([asdict(each) | {"median": each.rate} for each in results.values()]))
        return 0
    base = results[PLAIN].rate if PLAIN in results else None
    for result in results.values():
        ratio = f"  x{result.rate / base:.2f} of the {PLAIN}" if base else ""
        print(f"{result.contender:32} {result.rate:12,.0f} records/s{ratio}")
    print(*verdicts(results), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
