"""One process per instance, and a load that rises and falls: instances follow, nothing is lost.

Deciders alone begin to scale; the tests change the load and count.
"""

import asyncio
import os
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from dsp.config import Config
from dsp.stream.app import run
from dsp.stream.processes import ProcessSpawner
from dsp.stream.sinks.base import Collector
from dsp.stream.summary import Summary
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from tests.stream.elastic_app import APPLICATION, STEPS, load

MARK = "ELASTIC_RUN"
PATIENCE = 60.0
Steps = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left behind.

    Attributes:
        summary: what the application counted.
        values: how often each value reached the sink.
        actions: instances that came or went because a decider wanted it.
    """

    summary: Summary
    values: Counter[int]
    actions: int


def processes_of(mark: str) -> list[int]:
    """Give the processes that were started, by whomever, in an environment with this mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for each in Path("/proc").iterdir():
        if not each.name.isdigit() or int(each.name) == os.getpid():
            continue
        try:
            # One that has ended and was not waited for yet has no environment.
            if wanted in (each / "environ").read_bytes().split(b"\0"):
                found.append(int(each.name))
        except OSError:
            continue
    return found


async def follow(url: str, steps: Steps, monkeypatch: pytest.MonkeyPatch, spares: int = 0) -> Ran:
    """Run the pipeline to its end, and see that no process is left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv(STEPS, orjson.dumps(steps).decode())
    config = Config.model_validate(
        {
            "transport": {"url": url},
            "scaling": {"period": 0.4, "cool_down": 0.8, "maximum": 6},
            # Nobody dies here, and a machine that is busy with other tests must not look like it.
            "stream": {"report_every": 0.2, "lost_after": 60.0, "spare_processes": spares},
        }
    )
    app = run(APPLICATION, config, processes=True)
    async with asyncio.timeout(load().seconds + PATIENCE):
        async with app:
            seen = processes_of(mark)
            summary = await app.join()
    # Those that a child created are nobody's children here: all are looked for by their mark.
    assert isinstance(app.spawner, ProcessSpawner)
    assert await app.spawner.wait(PATIENCE) == []
    deadline = time.monotonic() + PATIENCE
    while left := processes_of(mark):
        assert time.monotonic() < deadline, f"processes left behind: {left}"
        await asyncio.sleep(0.1)
    assert seen, "the mark was not found at any process: it would show none that is left either"
    collector = app.graph.operators["out"].body
    assert isinstance(collector, Collector)
    slow = summary.operators["slow"]
    return Ran(summary, Counter(collector.values), slow.created + slow.left)


def check(ran: Ran) -> None:
    """Records in are records out, counted by value; what came again is reported."""
    records = load().records
    assert ran.summary.records_in == records
    assert {*ran.values} == {*range(records)}
    assert ran.summary.lost == 0
    assert ran.summary.dead_letters == 0
    assert ran.values.total() - records == ran.summary.repeats
    assert ran.summary.faults == []


@pytest.mark.timeout(240)
@pytest.mark.asyncio
async def test_a_load_of_steps_over_zeromq(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(3.0, 15.0), (5.0, 80.0), (4.0, 10.0), (4.0, 60.0)]
    ran = await follow("zmq://127.0.0.1:0", steps, monkeypatch)
    check(ran)
    assert ran.summary.operators["slow"].created >= 1
    assert ran.actions >= 2


@pytest.mark.timeout(240)
@pytest.mark.asyncio
async def test_a_load_of_steps_over_grpc(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = await follow("grpc://127.0.0.1:0", [(2.0, 15.0), (5.0, 70.0)], monkeypatch, spares=1)
    check(ran)
    assert ran.actions >= 1


@pytest.mark.timeout(300)
@pytest.mark.asyncio
async def test_a_load_of_steps_over_kafka(
    kafka_broker: KafkaBroker | ExternalBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"kafka://{kafka_broker.bootstrap}/elastic-{uuid.uuid4().hex}"
    ran = await follow(url, [(2.0, 15.0), (6.0, 70.0)], monkeypatch)
    check(ran)
    assert ran.actions >= 1


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_ten_minutes_of_steps_over_zeromq(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(6.0, rate) for rate in (15.0, 80.0, 10.0, 100.0) * 25]
    ran = await follow("zmq://127.0.0.1:0", steps, monkeypatch)
    check(ran)
    print(f"{ran.values.total()} records, {ran.actions} actions, {ran.summary.repeats} repeats")
    assert ran.actions >= 100
