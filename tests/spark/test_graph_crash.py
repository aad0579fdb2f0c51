"""A run on Spark, killed with SIGKILL in mid-stream: nothing is lost, nothing is there twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.crashing_graph import LONG

ROOT = Path(__file__).parent.parent.parent
PATIENCE = 200.0
SHORT = 6_000


def start(folder: Path, records: int) -> "subprocess.Popen[str]":
    config = folder / "dsp.toml"
    config.write_text(f'[stream]\nstate_directory = "{folder / "state"}"\n')
    env = {key: value for key, value in os.environ.items() if not key.startswith("DSP_STREAM")}
    command = "-m dsp.cli run tests.spark.crashing_graph:pipeline --engine spark --json"
    return subprocess.Popen(
        [sys.executable, *command.split(), "--master", "local[2]", "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=env
        | {
            "DSP_TEST_FOLDER": str(folder),
            "DSP_TEST_RECORDS": str(records),
            "NO_COLOR": "1",
        },
        start_new_session=True,
    )


def size(folder: Path) -> int:
    out = folder / "out.jsonl"
    return out.stat().st_size if out.exists() else 0


def kill_in_mid_stream(folder: Path, records: int, grown: int, *, all_of_it: bool) -> None:
    """Start a run, and kill it when the sink has grown so often."""
    process = start(folder, records)
    until = time.monotonic() + PATIENCE
    before, changes = size(folder), 0
    while changes < grown:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "nothing is written"
        time.sleep(0.01)
        changes += size(folder) != before
        before = size(folder)
    if all_of_it:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.communicate()


def stop_in_mid_stream(folder: Path, records: int) -> None:
    """Start a run, and stop it as a user does: what is under way is finished."""
    process = start(folder, records)
    until = time.monotonic() + PATIENCE
    before = size(folder)
    while size(folder) == before:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "nothing is written"
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["lost"] == 0
    found = numbers(folder)
    assert len({*found}) == len(found)


def numbers(folder: Path) -> list[int]:
    found = [json.loads(line)["number"] for line in (folder / "out.jsonl").read_text().splitlines()]
    for part in (folder / "out.parquet").glob("part-*.parquet"):
        found += pq.read_table(part).column("number").to_pylist()
    return sorted(found)


def check(folder: Path, kills: int, *, records: int = LONG, stop: bool = False) -> None:
    wanted = [*range(records + records // 2)]
    (folder / "lines.txt").write_text("".join(f"{n}\n" for n in wanted[records:]))
    if stop:
        stop_in_mid_stream(folder, records)
    for number in range(kills):
        # Java too, every second time.
        kill_in_mid_stream(folder, records, 1 + number % 3, all_of_it=number % 2 == 0)
    assert size(folder)
    process = start(folder, records)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["lost"] == 0
    assert numbers(folder) == wanted


@pytest.mark.timeout(240)
def test_killed_in_mid_stream(tmp_path: Path) -> None:
    check(tmp_path, 1, records=SHORT)


@pytest.mark.verify
@pytest.mark.timeout(600)
def test_killed_twice_in_mid_stream(tmp_path: Path) -> None:
    check(tmp_path, 2)


@pytest.mark.verify
@pytest.mark.timeout(3600)
def test_stopped_and_killed_ten_times_in_mid_stream(tmp_path: Path) -> None:
    check(tmp_path, 10, stop=True)
