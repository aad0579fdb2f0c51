"""``dsp run`` as a user calls it: transports by URL, results, signals, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from examples.taxi.app import expected
from examples.taxi.load import Load

ROOT = Path(__file__).parent.parent.parent
FACTOR = 150
LOAD = Load.of_the_thesis(FACTOR)


def start(*arguments: str, factor: float = FACTOR, config: bool = True) -> "subprocess.Popen[str]":
    settings = ("--config", "examples/taxi/dsp.toml") if config else ()
    env = {key: value for key, value in os.environ.items() if not key.startswith("DSP_")}
    return subprocess.Popen(
        [sys.executable, "-m", "dsp.cli", "run", *arguments, *settings],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=env | {"TAXI_FACTOR": str(factor), "NO_COLOR": "1"},
    )


def workers(parent: int) -> list[int]:
    """Processes of instances that a run started, and those that they started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environ = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"dsp.stream.worker" in command and f"DSP_TEST_RUN={parent}".encode() in environ:
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("url", ["", "zmq://127.0.0.1:0", "grpc://127.0.0.1:0", "sim://world"])
def test_the_same_job_gives_the_same_result_over_every_transport(url: str) -> None:
    transport = ("--transport", url) if url else ()
    process = start("examples.taxi.app:pipeline", "--json", *transport)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    result: dict[str, Any] = json.loads(out)
    assert result["ok"]
    assert (result["records_in"], result["lost"]) == (LOAD.records, 0)
    assert result["records_out"] - result["duplicates"] == expected(LOAD.records).trips
    assert result["operators"]["in_zone"]["created"] > 0


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        ([signal.SIGINT], 0),
        ([signal.SIGTERM], 0),
        ([signal.SIGINT, signal.SIGINT], 130),
    ],
)
def test_a_signal_drains_two_stop_and_no_process_is_left(
    signals: list[signal.Signals], code: int
) -> None:
    mark = os.getpid() * 1000 + len(signals)
    env = {k: v for k, v in os.environ.items() if not k.startswith("DSP_")}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "dsp.cli", "run", "examples.taxi.app:pipeline", "--json"),
            *("--config", "examples/taxi/dsp.toml", "--transport", "zmq://127.0.0.1:0"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=env | {"TAXI_FACTOR": "15", "NO_COLOR": "1", "TAXI_MARK": f"DSP_TEST_RUN={mark}"},
    )
    until(lambda: len(workers(mark)) > 3, process)  # some of them are grandchildren
    for number in signals:
        process.send_signal(number)
        time.sleep(0.2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    result = json.loads(out)
    assert result["stopped"] is (code != 0)
    if code == 0:
        assert result["lost"] == 0
    until(lambda: not workers(mark), None)


def until(condition: Any, process: "subprocess.Popen[str] | None") -> None:  # noqa: ANN401
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "write package.module:name"),
        (("examples.taxi.app:nothing",), "has no nothing"),
        (("no_such_module:pipeline",), "cannot be imported"),
        (("examples.taxi.app:pipeline", "--transport", "pigeon://x"), "unknown scheme 'pigeon'"),
    ],
)
def test_mistakes_get_one_clear_message(arguments: tuple[str, ...], message: str) -> None:
    process = start(*arguments)
    _, err = process.communicate(timeout=50)
    assert process.returncode == 1
    assert message in err
    assert "Traceback" not in err


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    path = tmp_path / "run.png"
    process = start("examples.taxi.app:pipeline", "--transport", "sim://w", "--plot", str(path))
    out, err = process.communicate(timeout=80)
    assert process.returncode == 0, err
    assert path.read_bytes().startswith(b"\x89PNG")
    assert f"{LOAD.records} records in" in out
