"""Real Apache Kafka brokers on this machine, for tests that stop, kill and restart them."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

from dsp.testing.kafka.errors import KafkaStartError
from dsp.testing.kafka.jars import class_path
from dsp.testing.kafka.java import find_java
from dsp.testing.kafka.process import BrokerProcess, free_ports, tail
from dsp.testing.kafka.settings import BrokerOptions, server_properties
from dsp.testing.kafka.storage import copy_storage, new_id

__all__ = ["KafkaBroker", "start_broker", "start_cluster"]

_PATIENCE = 60.0
_HEAP = "384m"
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def _print(line: str) -> None:
    print(f"[kafka] {line}", file=sys.stderr, flush=True)


class KafkaBroker:
    """A broker of its own, on loopback ports, with everything it keeps in one folder.

    Made by ``start_broker`` and ``start_cluster``. Not for several threads at once. All calls
    block: in a coroutine, hand them to ``asyncio.to_thread``.

    Args:
        folder: an empty folder for its settings, its log and its data.
        java: the Java to run.
        jars: the class path of Kafka.
        options: what is asked for beyond a plain broker.
        node: number of this broker.
        voters: controller port of every broker of its cluster, by number.
        cluster: id of the cluster.
    """

    def __init__(
        self,
        folder: Path,
        java: Path,
        jars: str,
        options: BrokerOptions,
        *,
        node: int,
        voters: Mapping[int, int],
        cluster: str,
    ) -> None:
        self._folder = folder
        self._java = java
        self._jars = jars
        self._cluster = cluster
        self._node = node
        self._options = options
        self._process: BrokerProcess | None = None
        names = ["PLAINTEXT", *(listener.name for listener in options.listeners)]
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        """The port of every listener by name; kept over restarts."""
        self._data = folder / "log" if options.data is None else options.data / str(node)
        self._settings = folder / "server.properties"
        self._settings.write_text(
            server_properties(
                options,
                node=node,
                voters=voters,
                ports={**self.ports, "CONTROLLER": voters[node]},
                folder=self._data,
            )
        )
        self._settings.chmod(0o600)

    @property
    def bootstrap(self) -> str:
        """Where clients find it: ``host:port`` of the plain listener."""
        return self.address("PLAINTEXT")

    def address(self, listener: str) -> str:
        """Give ``host:port`` of a listener."""
        return f"127.0.0.1:{self.ports[listener]}"

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.exit_code() is None

    @property
    def log(self) -> str:
        """The end of what it logged."""
        return tail(self._folder / "broker.log")

    def launch(self) -> None:
        """Start the process, on the same ports and the same data as before.

        Raises:
            KafkaStartError: it runs already, or its storage cannot be made.
        """
        if self.running:
            raise KafkaStartError("the broker runs already")
        if not self._data.exists():
            self._format()
        self._process = BrokerProcess(
            [*self._command(_HEAP), "kafka.Kafka", str(self._settings)],
            self._folder / "broker.log",
        )

    def wait(self) -> None:
        """Wait until it serves producers.

        Raises:
            KafkaStartError: it did not come up; the message has the end of its log.
        """
        if self._process is None:
            raise KafkaStartError("the broker was not started")
        self._process.wait_for_answer(self.ports["PLAINTEXT"], _PATIENCE)

    def start(self) -> Self:
        """Start it, on the same ports and the same data as before, and wait until it serves."""
        self.launch()
        self.wait()
        return self

    def stop(self) -> None:
        """Stop it in an orderly way (SIGTERM). Safe to repeat."""
        self._end(kill=False)

    def kill(self) -> None:
        """Kill it as a power cut would (SIGKILL). Safe to repeat."""
        self._end(kill=True)

    def restart(self) -> None:
        """Stop it in an orderly way and start it again."""
        self.stop()
        self.start()

    @property
    def pid(self) -> int:
        """The id of its process, for tests that stop it as it stands (SIGSTOP).

        Raises:
            KafkaStartError: it does not run.
        """
        if self._process is None:
            raise KafkaStartError("the broker does not run")
        return self._process.pid

    def _end(self, *, kill: bool) -> None:
        if self._process is not None:
            self._process.end(kill=kill, patience=_PATIENCE)
            self._process = None

    def _command(self, heap: str) -> list[str]:
        return [str(self._java), f"-Xmx{heap}", *_JVM, "-cp", self._jars]

    def _format(self) -> None:
        with_users = self._options.scram_arguments()
        if with_users:  # their passwords, if only as hashes, are for no cache
            self._run_storage_tool(self._settings, with_users)
        else:
            copy_storage(
                self._data, self._cluster, self._node, lambda file: self._run_storage_tool(file, [])
            )

    def _run_storage_tool(self, settings: Path, arguments: list[str]) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", self._cluster, "-c", str(settings)]
        done = subprocess.run(
            [*self._command("128m"), *tool, *arguments],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if done.returncode != 0:
            raise KafkaStartError(f"the storage tool refuses:\n{done.stdout}\n{done.stderr}")


def _remove(folder: Path) -> None:
    """Remove a folder, without waiting for it: thousands of topics take many seconds."""
    orphan = ["sh", "-c", 'rm -rf -- "$1" &', "remove", str(folder)]
    subprocess.run(orphan, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)


@contextmanager
def start_broker(
    options: BrokerOptions | None = None, *, say: Callable[[str], None] = _print
) -> Iterator[KafkaBroker]:
    """Start one broker; at the end it is ended and its data removed.

    Args:
        options: what is asked for beyond a plain broker.
        say: is told what takes time.

    Raises:
        KafkaUnavailable: there is no Java or no Kafka to run.
        KafkaStartError: the broker does not come up.
    """
    with start_cluster(1, options, say=say) as (broker,):
        yield broker


@contextmanager
def start_cluster(
    size: int = 3,
    options: BrokerOptions | None = None,
    *,
    say: Callable[[str], None] = _print,
) -> Iterator[list[KafkaBroker]]:
    """Start brokers that form one cluster; at the end they are ended and their data removed.

    Args:
        size: how many; with three, one may die.
        options: what is asked for beyond plain brokers.
        say: is told what takes time.

    Raises:
        KafkaUnavailable: there is no Java or no Kafka to run.
        KafkaStartError: a broker does not come up.
    """
    java = find_java()
    jars = class_path(say)
    cluster = new_id()
    voters = dict(enumerate(free_ports(size), start=1))
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="dsp-kafka-"))
        stack.callback(_remove, folder)
        brokers = []
        for node in voters:
            home = folder / str(node)
            home.mkdir()
            broker = KafkaBroker(
                home,
                java,
                jars,
                options or BrokerOptions(),
                node=node,
                voters=voters,
                cluster=cluster,
            )
            brokers.append(broker)
            stack.callback(broker.kill)
        with ThreadPoolExecutor(size) as pool:  # most of it is waiting for Java
            for launching in [pool.submit(broker.launch) for broker in brokers]:
                launching.result()
        for broker in brokers:
            broker.wait()
        yield brokers
