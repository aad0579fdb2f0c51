"""What instances cost that come, idle and go: processes over ZeroMQ on this machine.

    python bench/elastic.py [--json] [--seconds 20] [--starts 10] [--only idle]

- idle: CPU and memory of an instance to which no record comes, beside a process that has a ZeroMQ
  socket and a loop and nothing else;
- start: from the decision to duplicate to the first record that the newcomer processes, without and
  with a process in reserve (``stream.spare_processes``), beside the start of a bare Python process
  that imports dsp;
- gap: the longest time without a record at the sink while instances come and go, beside a run in
  which none does.

Decisions are scripted (``bench/elastic_parts/app.py``). Records are counted. Figures are medians,
gaps the longest ones.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from bench.elastic_parts import app as job  # noqa: E402 - the path is set above
from dsp.config import Config  # noqa: E402
from dsp.lab.timed import TimedSink, longest_gap  # noqa: E402
from dsp.stream.app import run  # noqa: E402
from dsp.stream.processes import ProcessSpawner  # noqa: E402
from dsp.stream.sinks.base import Collector  # noqa: E402

URL = "zmq://127.0.0.1:0"
RATE = 500.0
SETTLE = 3.0
# An instance decides once in a while; how long that is, is not part of what follows.
PERIOD = 0.1
CYCLE = job.ALONE + job.TOGETHER + 1.0
END = 20.0

CPU, MEMORY, START, GAP = 1.0, 60.0, 300.0, 200.0
"""Goals: percent of a core; MiB; ms above a bare process; ms above a run without scaling."""


@dataclass(frozen=True)
class Idle:
    """An idle process: percent of a core, MiB."""

    cpu: float
    memory: float


@dataclass(frozen=True)
class Elastic:
    """Two runs of a steady stream, with instances that come and go, and without. Milliseconds.

    Attributes:
        starts: decision to first record of each newcomer.
        cpu: what each of these used of a core until then.
        waited: how long each of these waited for a core until then.
        spare: decision to first record, with a process in reserve.
        bare: start of a bare process that imports dsp, as often.
        left: how many left.
        gap: the longest, with scaling.
        control: the longest, without.
    """

    starts: list[float]
    cpu: list[float]
    waited: list[float]
    spare: list[float]
    bare: list[float]
    left: int
    gap: float
    control: float


def usage(pid: int) -> tuple[float, float]:
    """Give the CPU seconds and the resident MiB of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    seconds = (int(fields[11]) + int(fields[12])) / ticks
    return seconds, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


async def watch(pid: int, seconds: float) -> Idle:
    """See what a process uses for a while."""
    await asyncio.sleep(SETTLE)
    before, began = usage(pid)[0], time.perf_counter()
    await asyncio.sleep(seconds)
    after, memory = usage(pid)
    return Idle(100 * (after - before) / (time.perf_counter() - began), memory)


async def idle(seconds: float) -> dict[str, Idle]:
    """Measure an idle instance and an idle process without dsp."""
    config = Config.model_validate({"transport": {"url": URL}})
    app = run("bench.elastic_parts.app:idle", config, processes=True)
    assert isinstance(app.spawner, ProcessSpawner)
    async with app:
        (pid,) = app.spawner.children
        instance = await watch(pid, seconds)
    await app.spawner.wait(END)
    bare = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.elastic_parts.bare",
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert bare.stdout is not None
    assert bare.stdin is not None
    await bare.stdout.readline()
    other = await watch(bare.pid, seconds)
    bare.stdin.close()
    await bare.wait()
    return {"instance": instance, "bare": other}


async def stream(seconds: float, folder: str, *, scales: bool, spares: int = 0) -> TimedSink:
    """Run the stream once; give what its sink saw.

    Raises:
        RuntimeError: a record is missing or came twice.
    """
    os.environ[job.FOLDER] = folder
    os.environ[job.RATE], os.environ[job.SECONDS] = str(RATE), str(seconds)
    os.environ[job.SCALES] = "yes" if scales else ""
    rules = {"decider": "threshold", "period": PERIOD, "cool_down": 0.0}
    if not scales:
        rules["maximum"] = 1
    # Predecessors tell how many siblings there are with each report.
    engine = {"report_every": 0.2, "spare_processes": spares}
    settings = {"transport": {"url": URL}, "scaling": rules, "stream": engine}
    app = run("bench.elastic_parts.app:elastic", Config.model_validate(settings), processes=True)
    timed = app.graph.operators["out"].body
    assert isinstance(timed, TimedSink)
    assert isinstance(timed.inner, Collector)
    async with app:
        await app.join()
    assert isinstance(app.spawner, ProcessSpawner)
    await app.spawner.wait(END)
    wanted = int(RATE * seconds)
    if sorted(timed.inner.values) != list(range(wanted)):
        raise RuntimeError(f"{len(timed.ids)} of {wanted} records, {timed.repeats} repeats")
    return timed


@dataclass(frozen=True, order=True)
class Moment:
    """What an instance left in the folder: when, and what its process had used. Seconds."""

    at: float
    cpu: float
    waited: float


def moments(folder: Path, what: str) -> list[Moment]:
    """Give what instances left in the folder, in the order of time."""
    found = [path.read_text().splitlines() for path in folder.glob(f"{what}.*")]
    return sorted(Moment(*map(float, line.split())) for lines in found for line in lines)


def start_of_bare() -> float:
    """Give the milliseconds that a bare process needs to import dsp and end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import dsp"], check=True, cwd=ROOT)
    return 1000 * (time.perf_counter() - began)


async def elastic(starts: int) -> Elastic:
    """Measure a stream with instances that come and go, and without."""
    seconds = SETTLE + starts * CYCLE
    bare = [start_of_bare() for _ in range(starts)]
    cold = await scaled(seconds, spares=0)
    warm = await scaled(seconds, spares=1)
    with tempfile.TemporaryDirectory() as name:
        control = await stream(seconds, name, scales=False)
    return Elastic(
        [1000 * took for took, _ in cold.firsts],
        [1000 * first.cpu for _, first in cold.firsts],
        [1000 * first.waited for _, first in cold.firsts],
        [1000 * took for took, _ in warm.firsts],
        bare,
        cold.left + warm.left,
        max(cold.gap, warm.gap),
        1000 * longest_gap(control.arrivals),
    )


@dataclass(frozen=True)
class Scaled:
    """A run in which instances came and went.

    Attributes:
        firsts: of each newcomer, the seconds from the decision to its first record, and that.
        left: how many left.
        gap: the longest between two records at the sink, in milliseconds.
    """

    firsts: list[tuple[float, Moment]]
    left: int
    gap: float


async def scaled(seconds: float, spares: int) -> Scaled:
    """Run the stream while instances come and go.

    Raises:
        RuntimeError: none came.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        timed = await stream(seconds, name, scales=True, spares=spares)
        decisions, firsts = moments(folder, "duplicate"), moments(folder, "first")
        left = len(moments(folder, "leave"))
    found = []
    times = [decision.at for decision in decisions]
    for decided, after in zip(times, [*times[1:], float("inf")], strict=True):
        if first := next((each for each in firsts if decided < each.at < after), None):
            found.append((first.at - decided, first))
    if not found:
        raise RuntimeError("no newcomer processed a record")
    return Scaled(found, left, 1000 * longest_gap(timed.arrivals))


def verdict(what: str, value: float, goal: float, unit: str) -> str:
    """Say whether a goal is met."""
    return f"{'met' if value <= goal else 'MISSED'}: {what} {value:.2f} {unit} (at most {goal:g})"


def print_idle(found: dict[str, Idle]) -> None:
    """Print a table and the goals."""
    instance, bare = found["instance"], found["bare"]
    for name, each in (("idle instance", instance), ("idle process with a socket", bare)):
        ratio = f"x{each.memory / bare.memory:.2f}"
        print(f"{name:32} {each.cpu:6.2f} % of a core {each.memory:8.1f} MiB  {ratio}")
    print(verdict("an idle instance uses", instance.cpu, CPU, "% of a core"))
    print(verdict("an idle instance takes", instance.memory, MEMORY, "MiB"))


def print_elastic(found: Elastic) -> None:
    """Print a table and the goals."""
    start, spare, bare = median(found.starts), median(found.spare), median(found.bare)
    print(f"{'decision to first record':32} {start:8.1f} ms  x{start / bare:.2f}")
    print(f"{'of that, CPU of the newcomer':32} {median(found.cpu):8.1f} ms")
    print(f"{'and its wait for a core':32} {median(found.waited):8.1f} ms")
    print(f"{'the same, a process in reserve':32} {spare:8.1f} ms  x{spare / bare:.2f}")
    print(f"{'bare process that imports dsp':32} {bare:8.1f} ms  x1.00")
    print(f"{'longest gap at the sink':32} {found.gap:8.1f} ms  x{found.gap / found.control:.2f}")
    print(f"{'longest gap without scaling':32} {found.control:8.1f} ms  x1.00")
    print(f"{len(found.starts) + len(found.spare)} came, {found.left} left")
    print(verdict("start above a bare process:", start - bare, START, "ms"))
    print(verdict("the same, a process in reserve:", spare - bare, START, "ms"))
    print(verdict("gap above that of the control:", found.gap - found.control, GAP, "ms"))


def main() -> int:
    """Measure, print; the exit code does not depend on the goals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--seconds", type=float, default=20, help="that processes idle")
    parser.add_argument("--starts", type=int, default=10, help="of instances")
    parser.add_argument("--only", choices=("idle", "elastic"), help="one part of it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        # What is installed has its bytecode beside it; a checkout may not, and may not keep it.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = cache
        subprocess.run([sys.executable, "-c", WARM_UP], check=True, cwd=ROOT)
        report(options)
    return 0


WARM_UP = """
import bench.elastic_parts.app
import dsp.stream.newcomer
import dsp.stream.worker
import dsp.transport.zmq.endpoint
"""


def report(options: argparse.Namespace) -> None:
    """Do what is asked for."""
    told: dict[str, object] = {}
    if options.only != "elastic":
        idling = asyncio.run(idle(options.seconds))
        told["idle"] = {name: asdict(each) for name, each in idling.items()}
        if not options.json:
            print_idle(idling)
    if options.only != "idle":
        scaling = asyncio.run(elastic(options.starts))
        told["elastic"] = asdict(scaling)
        if not options.json:
            print_elastic(scaling)
    if options.json:
        print(json.dumps(told))


if __name__ == "__main__":
    sys.exit(main())
