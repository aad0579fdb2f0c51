"""Records for stages: trips between zones."""

from typing import Any

import pyarrow as pa

ZONES = [{"zone": n, "name": f"zone {n}"} for n in range(10)]


def trips(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "zone": n % 12, "fare": n % 50 / 2} for n in range(count)]


def table(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(trips(count))
