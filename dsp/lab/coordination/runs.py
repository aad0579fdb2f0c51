"""One run of the line, in a world or in processes, and what it cost to scale in it."""

import asyncio
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise

import orjson

from dsp.config import Config
from dsp.errors import DspError
from dsp.lab.coordination.application import (
    APPLICATION,
    SETTING,
    Arrivals,
    Setting,
    arrivals_of,
    line,
)
from dsp.stream.app import App, run
from dsp.stream.coordination import ScalingStep
from dsp.stream.graph import Graph
from dsp.stream.processes import ProcessSpawner
from dsp.stream.summary import Summary
from dsp.testing import Host, LinkConditions, World
from dsp.testing.pipelines import WorldSpawner

__all__ = ["Outcome", "overlapping", "run_in_processes", "run_in_world"]

# Seconds after the load in which a run has to be over; in virtual time they cost nothing.
PATIENCE = 600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run cost.

    Attributes:
        steps: scaling steps that were taken.
        refused: steps that were dropped when their turn came, since siblings had scaled meanwhile.
        scale_messages: of the scale protocol, for each step.
        coordination_messages: of mutual exclusion and of asking for it, for each step.
        overlaps: pairs of steps of neighbouring operators that overlapped.
        waits: seconds from decision to permission, of each step.
        delays: seconds from decision to the newcomer's first moment, of each newcomer.
        stall: longest time without a record at the sink, beyond the time between two at low load.
        latency: p95 of the seconds from source to sink.
        instances: most instances of all operators together.
    """

    steps: int
    refused: int
    scale_messages: float
    coordination_messages: float
    overlaps: int
    waits: tuple[float, ...]
    delays: tuple[float, ...]
    stall: float
    latency: float
    instances: int


def overlapping(
    steps: Iterable[ScalingStep], graph: Graph
) -> list[tuple[ScalingStep, ScalingStep]]:
    """Find steps of neighbouring operators that were under way at the same time."""
    ordered = sorted(steps, key=lambda step: step.begun)
    found = []
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            if other.begun >= one.over:
                break
            ends = one.instance.rpartition(".")[0], other.instance.rpartition(".")[0]
            if ends in graph.edges or ends[::-1] in graph.edges:
                found.append((one, other))
    return found


def run_in_world(setting: Setting, coordination: str, seed: int) -> Outcome:
    """Run the line in virtual time, each instance on a host of its own.

    Raises:
        DspError: a record is missing at the sink, or there twice and not known to be.
    """
    conditions = LinkConditions(latency=setting.latency, jitter=setting.jitter)
    with World(seed, conditions) as world:
        described = line(setting)
        graph = described.graph()
        finished: list[App] = []

        async def main(host: Host) -> None:
            arrivals_of(graph.operators["out"].body).clock = asyncio.get_running_loop().time
            config = _config(setting, coordination, host.url)
            spawner = WorldSpawner(world, graph, config)
            async with run(described, config, spawner=spawner, seed=seed) as app:
                await app.join()
            finished.append(app)

        host = world.add_host("app", main)
        world.run_until(lambda: host.finished, limit=setting.seconds + PATIENCE)
        (app,) = finished
        return _outcome(setting, graph, app.summary, arrivals_of(graph.operators["out"].body))


async def run_in_processes(setting: Setting, coordination: str, url: str) -> Outcome:
    """Run the line in real time, each instance in a process of its own.

    Raises:
        DspError: a record is missing at the sink, or there twice and not known to be; or a process
            did not end.
    """
    with _told(setting):
        app = run(APPLICATION, _config(setting, coordination, url), processes=True)
        async with app:
            await app.join()
        assert isinstance(app.spawner, ProcessSpawner)
        if left := await app.spawner.wait(PATIENCE):
            raise DspError(f"processes are left behind: {left}")
    return _outcome(setting, app.graph, app.summary, arrivals_of(app.graph.operators["out"].body))


@contextmanager
def _told(setting: Setting) -> Iterator[None]:
    before = os.environ.get(SETTING)
    os.environ[SETTING] = orjson.dumps(asdict(setting)).decode()
    try:
        yield
    finally:
        if before is None:
            del os.environ[SETTING]
        else:
            os.environ[SETTING] = before


def _config(setting: Setting, coordination: str, url: str) -> Config:
    return Config.model_validate(
        {
            "transport": {"url": url},
            "scaling": {"coordination": coordination, "period": setting.period},
            "stream": {"report_every": 0.2, "lost_after": 60.0},
        }
    )


def _outcome(setting: Setting, graph: Graph, summary: Summary, arrivals: Arrivals) -> Outcome:
    missing = {*range(setting.records)} - {*arrivals.values}
    again = len(arrivals.values) - setting.records + len(missing)
    if missing or again != summary.repeats:
        raise DspError(
            f"{len(missing)} of {setting.records} records are missing, and {again} came again "
            f"where {summary.repeats} are known to have"
        )
    steps = summary.steps
    many = max(1, len(steps))
    return Outcome(
        steps=len(steps),
        refused=summary.refused,
        scale_messages=summary.messages["scale"] / many,
        coordination_messages=summary.messages["coordination"] / many,
        overlaps=len(overlapping(steps, graph)),
        waits=tuple(step.begun - step.asked for step in steps),
        delays=tuple(
            summary.active_since[name] - step.asked
            for step in steps
            for name in step.newcomers
            if name in summary.active_since
        ),
        stall=max(b - a for a, b in pairwise(arrivals.times)) - 1 / setting.low,
        latency=summary.latencies.get("p95", 0.0),
        instances=sum(each.most_instances for each in summary.operators.values()),
    )
