"""A program whose stages run elsewhere: ``python -m tests.spark.remote_stage ADDRESS PID``.

It runs a pipeline, kills the process with that id and all of its group, and runs it again. Prints
what came out as JSON.
"""

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import dsp
from dsp.config import Config
from dsp.spark import SparkSettings, SparkStage, SparkUnreachable, column, hold, sql
from dsp.spark.address import probe

ZONES = [{"zone": n, "name": f"zone {n}"} for n in range(10)]
ROWS = [{"id": n, "zone": n % 12, "fare": n % 50 / 2} for n in range(24)]
WANTED = [each["id"] for each in ROWS if each["fare"] > 5 and each["zone"] < 10]
GUILTY = 13


def taxed(fare: float) -> float:
    return fare * 1.5


def checked(number: int) -> int:
    if number == GUILTY:
        raise ValueError(f"nobody pays for trip {number}")
    return number + 1


async def run(stages: list[SparkStage], retries: int) -> Any:  # noqa: ANN401
    out, letters = dsp.Collector(), dsp.Collector()
    job = dsp.Pipeline("trips")
    stream = job.source(ROWS)
    for number, body in enumerate(stages):
        stream = stream.columns(body, name=f"stage-{number}", maximum=1)
    stream.sink(out)
    job.dead_letters(letters)
    config = Config.model_validate({"stream": {"retries": retries}})
    async with dsp.run(job, config=config) as app:
        await app.join()
    return out.values, letters.values


def stages(settings: SparkSettings) -> list[SparkStage]:
    return [
        sql(
            "SELECT id, name, fare FROM batch JOIN zones USING (zone) WHERE fare > 5",
            "id long, name string, fare double",
            tables={"zones": ZONES},
            settings=settings,
        ),
        column("taxed", taxed, "fare", returns="double", settings=settings),
        column("next", F.udf(checked, LongType(), useArrow=False), "id", settings=settings),
    ]


def answers(settings: SparkSettings) -> bool:
    """Whether somebody is still at the address."""
    try:
        probe(settings.address, 1)
    except SparkUnreachable:
        return False
    return True


async def main(address: str, victim: int) -> None:
    cluster = {
        # Spark would try each task four times on the record that no try helps.
        "spark.task.maxFailures": "1",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.executor.memory": "512m",
    }
    options = cluster if address.startswith("spark:") else {}
    settings = SparkSettings(address, options, connect_timeout=5)
    # A cluster that loses a worker keeps its session. Of a server nothing is left.
    lease = await asyncio.to_thread(hold, settings) if options else None
    before = time.monotonic()
    out, letters = await run(stages(settings), 0)
    report: dict[str, Any] = {
        "ids": sorted(row["id"] for row in out) == [i for i in WANTED if i != GUILTY],
        "taxed": all(row["taxed"] == row["fare"] * 1.5 for row in out),
        "next": all(row["next"] == row["id"] + 1 for row in out),
        "guilty": [letter["value"]["id"] for letter in letters],
        "error": letters[0]["error"] if letters else "",
        "traceback": letters[0]["traceback"] if letters else "",
        "seconds": time.monotonic() - before,
    }
    os.killpg(victim, signal.SIGKILL)
    while lease is None and answers(settings):
        await asyncio.sleep(0.05)  # the system takes a while to end a process
    before = time.monotonic()
    try:
        out, letters = await run(stages(settings)[:2], 3)
        report["after"] = sorted(row["id"] for row in out) == WANTED
    except dsp.DspError as error:
        report["refused"] = str(error)
    if lease is not None:
        lease.release()
    report["seconds_after"] = time.monotonic() - before
    print(json.dumps(report))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
