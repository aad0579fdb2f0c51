"""The pipeline of the bench, imported by every process of it.

Instances note in a folder when they decide and when they process their first record. Decisions are
scripted: whoever is alone creates a sibling, which leaves again; a real rule would need a load that
makes it, and it is not the rule that is measured.
"""

import asyncio
import os
import time
from pathlib import Path
from random import Random

import dsp
from dsp.lab.timed import TimedSink
from dsp.scaling.deciders.autoscale import Proactive
from dsp.scaling.deciders.base import STAY, Decision, Duplicate, Leave, Observation
from dsp.scaling.deciders.named import DECIDERS
from dsp.scaling.deciders.probabilistic import Thresholds
from dsp.stream.sources.base import Chunk, Source

FOLDER, RATE, SECONDS, SCALES = (
    f"DSP_BENCH_{name}" for name in ("FOLDER", "RATE", "SECONDS", "SCALES")
)
ALONE = 1.5
"""Seconds that an instance is alone before it creates a sibling."""
TOGETHER = 1.5
"""Seconds after which that sibling leaves."""


def note(what: str) -> None:
    """Leave the present time in the folder, for the bench to find, and what this process took.

    That is the CPU time of all its threads, and how long its first one waited for a core.
    """
    folder = os.environ.get(FOLDER)
    if folder:
        now, cpu = time.time(), time.process_time()
        waited = int(Path("/proc/self/schedstat").read_text().split()[1]) / 1e9
        with (Path(folder) / f"{what}.{os.getpid()}").open("a") as file:
            file.write(f"{now:.6f} {cpu:.6f} {waited:.6f}\n")


class Scripted:
    """Creates one sibling after a while alone; as that sibling, leaves after a while."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._count = 0

    def decide(self, observation: Observation) -> Decision:
        """Say what the instance does now."""
        report = observation.report
        if report is None:
            return STAY
        if self._since is None or len(report.siblings) != self._count:
            self._since, self._count = observation.now, len(report.siblings)
        passed = observation.now - self._since
        if self._count == 1 and passed >= ALONE:
            self._since = observation.now
            note("duplicate")
            return Duplicate(1)
        if self._count > 1 and not observation.keeper and passed >= TOGETHER:
            self._since = observation.now
            note("leave")
            return Leave()
        return STAY


def scripted(random: Random, thresholds: Thresholds, proactive: Proactive) -> Scripted:
    """Make one, as the table of deciders wants it."""
    return Scripted()


class Steady(Source):
    """Numbers, evenly, for a while."""

    replayable = True

    def __init__(self, rate: float, seconds: float) -> None:
        self._rate = rate
        self._total = int(rate * seconds)
        self._given = 0
        self._began: float | None = None

    async def read(self, most: int) -> Chunk | None:
        loop = asyncio.get_running_loop()
        if self._given >= self._total:
            return None
        if self._began is None:
            self._began = loop.time()
        wait = self._began + (self._given + 1) / self._rate - loop.time()
        if wait > 0:
            await asyncio.sleep(wait)
        due = int((loop.time() - self._began) * self._rate) - self._given
        count = max(1, min(most, due, self._total - self._given))
        values = list(range(self._given, self._given + count))
        self._given += count
        return Chunk(values, self._given)


_first = True


def work(value: int) -> int:
    """Do next to nothing, and note the first time."""
    global _first
    if _first:
        _first = False
        note("first")
    return value


def elastic() -> dsp.Pipeline:
    """A steady stream through instances that come and go, or that do not."""
    if os.environ.get(SCALES):
        DECIDERS["threshold"] = scripted
    job = dsp.Pipeline("elastic")
    rate, seconds = float(os.environ[RATE]), float(os.environ[SECONDS])
    stream = job.source(Steady(rate, seconds), name="numbers")
    stream.map(work, name="work", capacity=10.0 * rate).sink(TimedSink(dsp.Collector()), name="out")
    return job


def idle() -> dsp.Pipeline:
    """One instance to which nothing comes."""
    job = dsp.Pipeline("idle")
    job.source(dsp.QueueSource(), name="nothing").map(work, name="work").sink(_drop, name="out")
    return job


def _drop(value: int) -> None:
    pass
