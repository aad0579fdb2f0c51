"""Stages on a real cluster and on a Spark Connect server, each in a program of its own."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dsp.spark.package import executor_package
from dsp.testing.spark import Daemon, SparkStartError, start_cluster, start_connect_server

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parent.parent.parent


def run(address: str, victim: Daemon) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.remote_stage", address, str(victim.pid)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(report)
    return report


def check(report: dict[str, Any]) -> None:
    assert report["ids"]
    assert report["taxed"]
    assert report["next"]
    assert report["guilty"] == [13]
    assert "ValueError: nobody pays for trip 13" in report["error"]
    assert "in checked" in report["traceback"]


def test_stages_run_on_a_cluster_that_loses_a_worker() -> None:
    with start_cluster(2) as cluster:
        report = run(cluster.master, cluster.workers[0])
        check(report)
        assert report["after"]


def test_stages_run_on_a_connect_server_and_its_loss_is_told() -> None:
    with start_connect_server() as server:
        report = run(server.url, server.process)
        check(report)
        assert f"no Spark Connect server at {server.url}" in report["refused"]


def test_dsp_for_executors_is_what_the_wheel_holds(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("dsp-*.whl")

    def modules(path: Path) -> dict[str, bytes]:
        archive = zipfile.ZipFile(path)
        return {n: archive.read(n) for n in archive.namelist() if n.startswith("dsp/")}

    assert executor_package().suffix == ".zip"
    assert modules(executor_package()) == modules(wheel)


def test_a_daemon_that_does_not_come_up_shows_its_log(tmp_path: Path) -> None:
    daemon = Daemon("odd", ["org.apache.spark.NoSuchClass"], tmp_path, "64m")
    with pytest.raises(SparkStartError, match=r"the odd ended with exit code 1(.|\n)*NoSuchClass"):
        daemon.wait_for("never (said)", 60)
    daemon.stop()
