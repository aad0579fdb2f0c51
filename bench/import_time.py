"""How long ``import dsp`` takes over a bare interpreter. The goal is at most 150 ms.

Usage: python bench/import_time.py [--runs N] [--json]
"""

import argparse
import json
import subprocess
import sys
import time

GOAL_MS = 150
STATEMENTS = {
    "dsp": "import dsp",
    "seam": "import dsp.transport.base, dsp.transport.registry",
    "config": "from dsp import load_config; load_config(env={})",
    "world": "from dsp.testing import World; World().close()",
}


def best_ms(statement: str, runs: int) -> float:
    """Give the shortest of several runs: the others measure what else the machine did."""
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        times.append(time.perf_counter() - started)
    return min(times) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time of importing dsp.")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    options = parser.parse_args()
    bare = best_ms("pass", options.runs)
    found = {name: best_ms(code, options.runs) for name, code in STATEMENTS.items()}
    if options.json:
        rows = {
            name: {"ms_over_bare": round(ms - bare, 2), "ratio": round(ms / bare, 3)}
            for name, ms in found.items()
        }
        print(json.dumps({"bare_ms": round(bare, 2), "goal_ms": GOAL_MS, "imports": rows}))
        return
    print(f"bare interpreter {bare:.1f} ms; goal for import dsp: {GOAL_MS} ms more at most")
    for name, ms in found.items():
        print(f"{name:<8} {ms - bare:+7.1f} ms  x{ms / bare:.2f}  {STATEMENTS[name]}")


if __name__ == "__main__":
    main()
