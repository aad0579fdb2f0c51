"""``dsp calibrate``: exact where time is virtual, and as a user calls it."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsp import Collector, Config, Pipeline
from dsp.errors import ConfigError, DspError
from dsp.lab.calibrate import Capacity, Effort, calibrate
from dsp.testing import Host, World

ROOT = Path(__file__).parent.parent.parent


def wait(value: int) -> int:
    """Wait as a look-up would."""
    time.sleep(0.02)
    return value


def even(value: int) -> bool:
    return value % 2 == 0


def job() -> Pipeline:
    """Numbers, half of which are kept."""
    made = Pipeline("numbers")
    numbers = made.source(list(range(50)), name="numbers").map(abs, name="positive")
    numbers.filter(even, service_time=0.01).map(wait).sink(Collector())
    return made


def measured(world: World, pipeline: Pipeline, operator: str, threads: int) -> list[Capacity]:
    async def main(host: Host) -> list[Capacity]:
        return await calibrate(pipeline.graph(), [operator], threads, Config())

    host = world.add_host("lab", main)
    world.run_until(lambda: host.finished, limit=600)
    assert isinstance(host.result, list)
    return host.result


def test_in_virtual_time_the_capacity_is_that_of_the_declared_time(world: World) -> None:
    found = measured(world, job(), "even", 3)
    assert [each.threads for each in found] == [1, 2, 3]
    for each in found:
        # A filter drops half: what the body took counts, not what came out of it.
        assert each.capacity == pytest.approx(100 * each.threads, rel=0.05)
        *kept_up, behind, again = each.readings
        assert all(reading.taken >= 0.95 * reading.offered for reading in kept_up)
        assert behind.offered == again.offered > each.capacity


def test_columns_are_sampled_and_offered_as_columns(world: World) -> None:
    pipeline = Pipeline("columns", codec="arrow")
    rows = pipeline.source([{"a": number} for number in range(50)])
    first = rows.columns(lambda batch: batch, name="first", service_time=0.001)
    first.columns(lambda batch: batch, name="second", service_time=0.01).sink(Collector())
    (found,) = measured(world, pipeline, "second", 1)
    assert found.capacity == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        ("nobody", "has no operator 'nobody'; there are positive, even, wait"),
        ("numbers", "numbers is a source"),
        ("sink", "sink is a sink"),
    ],
)
def test_what_has_no_body_is_refused(operator: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        asyncio.run(calibrate(job().graph(), [operator], 1, Config()))


def test_an_operator_to_which_nothing_comes_is_told() -> None:
    pipeline = Pipeline("empty")
    pipeline.source([1, 3], name="odd").filter(even).map(wait).sink(Collector())
    with pytest.raises(ConfigError, match="no record came to wait"):
        asyncio.run(calibrate(pipeline.graph(), ["wait"], 1, Config(), Effort(patience=5)))


def test_a_body_that_fails_is_not_taken_for_a_quick_one() -> None:
    pipeline = Pipeline("failing")
    pipeline.source(["a"]).map(int, name="number").sink(Collector())
    with pytest.raises(DspError, match="number fails on records"):
        asyncio.run(calibrate(pipeline.graph(), ["number"], 1, Config()))


def test_a_waiting_body_on_a_real_loop_as_a_user_calls_it(tmp_path: Path) -> None:
    plot = tmp_path / "capacities.png"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "dsp.cli", "calibrate", "tests.cli.test_calibrate:job", "wait"),
            *("--threads", "1", "--seconds", "0.2", "--json", "--plot", str(plot)),
        ],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["operator"], found["threads"]) == ("wait", 1)
    # It waits for 20 ms: never more than 50, and far fewer only on a machine that stands still.
    assert 5 < found["capacity"] < 60
    assert plot.read_bytes().startswith(b"\x89PNG")
