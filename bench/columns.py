"""What conversion at the edge costs, where a row body is next to a columnar one.

    python -m bench.columns [--json] [--records 100000] [--batches 64 512 4096]

Microseconds per record of four fields, the best of several rounds: rows made columns and back, and
the bytes of an edge in JSON and in Arrow. Ratios are to JSON there and back, what an edge between
two row bodies costs.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from dsp.stream.codecs import ArrowCodec, JsonCodec, to_columns, to_rows

ROUNDS = 5
BASE = "JSON, there and back"


def rows_of(count: int) -> list[dict[str, Any]]:
    """Make records of four fields."""
    return [
        {"id": number, "name": f"car-{number % 977}", "speed": number % 1000 / 10, "ok": True}
        for number in range(count)
    ]


def best(work: Callable[[], object], calls: int, records: int) -> float:
    """Give the microseconds per record of the quickest round."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(calls):
            work()
        found.append(time.perf_counter() - began)
    return 1e6 * min(found) / (calls * records)


def costs(batch: int, records: int) -> dict[str, float]:
    """Measure with batches of one size."""
    rows, text, arrow = rows_of(batch), JsonCodec(), ArrowCodec()
    columns = to_columns(rows)
    as_text, as_arrow = text.encode(rows), arrow.encode(columns)
    work: dict[str, Callable[[], object]] = {
        BASE: lambda: text.decode(text.encode(rows)),
        "Arrow, there and back": lambda: arrow.decode(arrow.encode(columns)),
        "rows to columns": lambda: to_columns(rows),
        "columns to rows": lambda: to_rows(columns),
        "row body to columnar body": lambda: arrow.decode(arrow.encode(to_columns(rows))),
        "columnar body to row body": lambda: to_rows(arrow.decode(arrow.encode(columns))),
    }
    calls = max(1, records // batch)
    found = {name: best(each, calls, batch) for name, each in work.items()}
    found["bytes, JSON"] = len(as_text) / batch
    found["bytes, Arrow"] = len(as_arrow) / batch
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.add_argument("--records", type=int, default=100_000, help="of each round")
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 512, 4096])
    options = parser.parse_args()
    found = {batch: costs(batch, options.records) for batch in options.batches}
    if options.json:
        print(json.dumps(found))
        return
    for batch, row in found.items():
        print(f"batches of {batch}")
        for name, value in row.items():
            if name.startswith("bytes"):
                print(f"  {name:28} {value:8.1f} per record")
            else:
                print(f"  {name:28} {value:8.3f} us  x{value / row[BASE]:.2f}")


if __name__ == "__main__":
    main()
