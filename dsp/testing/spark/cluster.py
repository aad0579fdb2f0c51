"""A real Spark cluster and a Spark Connect server on loopback, from the PySpark distribution."""

import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsp.spark.java import prepare
from dsp.testing.spark.process import Daemon

__all__ = ["Cluster", "ConnectServer", "start_cluster", "start_connect_server"]

_PATIENCE = 120.0
_DAEMON_MEMORY, _SERVER_MEMORY = "256m", "1g"
_DEPLOY = "org.apache.spark.deploy"


def _print(line: str) -> None:
    print(f"[spark] {line}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Cluster:
    """A standalone master and its workers.

    Attributes:
        master: its address, ``spark://127.0.0.1:port``.
        workers: the processes that run executors, to be stopped or killed by a test.
        process: the master.
    """

    master: str
    workers: tuple[Daemon, ...]
    process: Daemon


@dataclass(frozen=True)
class ConnectServer:
    """A Spark Connect server.

    Attributes:
        url: its address, ``sc://127.0.0.1:port``.
        process: the server.
    """

    url: str
    process: Daemon


@contextmanager
def start_cluster(
    workers: int = 2,
    *,
    cores: int = 1,
    memory: str = "1g",
    say: Callable[[str], None] = _print,
) -> Iterator[Cluster]:
    """Start a master and workers on ports that are free; end them afterwards.

    Args:
        workers: how many.
        cores: of each.
        memory: of each, for its executors.
        say: is told what takes time.

    Raises:
        SparkUnavailable: there is no PySpark or no Java.
        SparkStartError: a process does not come up; its log is in the message.
    """
    prepare()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dsp-spark-")))
        say(f"starting a master and {workers} workers")
        at_loopback = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = _started(stack, "master", [f"{_DEPLOY}.master.Master", *at_loopback], folder)
        address = master.wait_for(r"Starting Spark master at (spark://\S+)", _PATIENCE)
        master.wait_for(r"(New state: ALIVE)", _PATIENCE)
        limits = ["--cores", str(cores), "--memory", memory]
        command = [f"{_DEPLOY}.worker.Worker", *at_loopback, *limits, address]
        made = [_started(stack, f"worker-{n}", command, folder) for n in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda each: each.wait_for(r"(registered with master)", _PATIENCE), made))
        yield Cluster(address, tuple(made), master)


@contextmanager
def start_connect_server(
    master: str = "local[2]", *, say: Callable[[str], None] = _print
) -> Iterator[ConnectServer]:
    """Start a Spark Connect server on a port that is free; end it afterwards.

    Args:
        master: what its sessions run on.
        say: is told what takes time.

    Raises:
        SparkUnavailable: there is no PySpark or no Java.
        SparkStartError: it does not come up; its log is in the message.
    """
    prepare()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dsp-spark-")))
        say(f"starting a Spark Connect server on {master}")
        settings = {
            "spark.master": master,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
        }
        options = [each for k, v in settings.items() for each in ("--conf", f"{k}={v}")]
        command = [
            f"{_DEPLOY}.SparkSubmit",
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            *options,
            "spark-internal",
        ]
        server = _started(stack, "connect-server", command, folder, _SERVER_MEMORY)
        port = server.wait_for(r"Spark Connect server started at: \S*?:(\d+)\s", _PATIENCE)
        yield ConnectServer(f"sc://127.0.0.1:{port}", server)


def _started(
    stack: ExitStack, name: str, command: list[str], folder: Path, memory: str = _DAEMON_MEMORY
) -> Daemon:
    daemon = Daemon(name, command, folder, memory)
    stack.callback(daemon.stop)
    return daemon
