"""The exchange: one application over every transport, chosen by a URL and nothing else."""

import asyncio
import time
import uuid
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from dsp import NodeId, TransportConfig, create_session
from dsp.testing import Host, LinkConditions, World
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from examples.exchange.__main__ import main, right_totals
from examples.exchange.counting import Arrived, CountingMachine, Event
from examples.exchange.node import ExchangeNode, words_of

NAMES = ["node-1", "node-2", "node-3"]


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSP_TRANSPORT__URL", raising=False)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> "Told":
    return Told(capsys)


class Told:
    """Runs the program and keeps what it says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.talk = ""

    def __call__(self, *arguments: str, code: int = 0) -> bytes:
        found = main([*arguments])
        out, self.talk = self._capsys.readouterr()
        assert found == code, self.talk
        return out.encode()


def expected(batches: int = 50) -> bytes:
    rows = right_totals(NAMES, batches)
    return "".join(
        f"{receiver} counted {count} {word} of {sender}\n" for receiver, sender, word, count in rows
    ).encode()


# -- over every transport ---------------------------------------------------------------------


def test_what_is_right_is_known_without_a_network() -> None:
    lines = expected().decode().splitlines()
    assert len(lines) == 3 * 2 * 4
    counts = [int(line.split()[2]) for line in lines]
    assert sum(counts) == 3 * 2 * 50 * 32
    assert len({*counts}) > 5  # or a swap of two senders would not be seen


@pytest.mark.parametrize("way", ["argument", "file", "variable"])
@pytest.mark.parametrize("scheme", ["sim", "zmq+tcp", "zmq+ipc", "grpc", "kafka"])
def test_the_url_alone_swaps_the_transport(
    scheme: str,
    way: str,
    told: Told,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    url = {
        "sim": "sim://world",
        "zmq+tcp": "zmq+tcp://127.0.0.1:0",
        "zmq+ipc": f"zmq+ipc://{tmp_path}/mesh",
        "grpc": "grpc://127.0.0.1:0",
        "kafka": "",
    }[scheme]
    if scheme == "kafka":
        broker: KafkaBroker | ExternalBroker = request.getfixturevalue("kafka_broker")
        url = f"kafka://{broker.bootstrap}/exchange-{uuid.uuid4()}"
    arguments: list[str] = []
    if way == "argument":
        arguments = ["--transport", url]
    elif way == "file":
        file = tmp_path / "dsp.toml"
        file.write_text(f'[transport]\nurl = "{url}"\n')
        arguments = ["--config", str(file)]
    else:
        monkeypatch.setenv("DSP_TRANSPORT__URL", url)
    assert told(*arguments) == expected()
    lines = told.talk.splitlines()
    assert lines[0] == f"3 nodes exchange 50 batches with each other over {url}"
    assert lines[1] == "  30 of 300 batches counted"
    assert lines[-1] == "ok: 3 nodes agree on 300 batches (0 frames rejected)"


def test_nothing_stays_on_the_brokers_when_all_is_done(
    told: Told, kafka_broker: KafkaBroker | ExternalBroker
) -> None:
    prefix = f"exchange-{uuid.uuid4()}"
    url = f"kafka://{kafka_broker.bootstrap}/{prefix}"
    told("--transport", url, "--batches", "9000", "--patience", "0.1", code=1)
    assert len(topics_of(kafka_broker.bootstrap, prefix)) == 2 * len(NAMES)
    told("--transport", url, "--batches", "1")
    until = time.monotonic() + 20
    while left := topics_of(kafka_broker.bootstrap, prefix):
        assert time.monotonic() < until, f"left on the brokers: {left}"
        time.sleep(0.05)  # deleted by the controller; the broker hears of it a moment later


def topics_of(bootstrap: str, prefix: str) -> list[str]:
    async def ask() -> list[str]:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            return sorted(name for name in await admin.list_topics() if name.startswith(prefix))
        finally:
            await admin.close()

    return asyncio.run(ask())


def test_a_log_that_holds_frames_of_a_run_that_was_broken_off(
    told: Told, kafka_broker: KafkaBroker | ExternalBroker
) -> None:
    url = f"kafka://{kafka_broker.bootstrap}/exchange-{uuid.uuid4()}"
    assert told("--transport", url, "--batches", "9000", "--patience", "0.3", code=1) == b""
    assert "node-1 has no totals (node-2: " in told.talk
    assert told("--transport", url) == expected()
    assert "(0 frames rejected)" not in told.talk  # they were there, and were told apart


def test_the_argument_goes_before_the_variable_and_that_before_the_file(
    told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "dsp.toml"
    file.write_text('[transport]\nurl = "sim://file"\n')
    told("--batches", "1", "--config", str(file))
    assert "over sim://file\n" in told.talk
    monkeypatch.setenv("DSP_TRANSPORT__URL", "sim://variable")
    told("--batches", "1", "--config", str(file))
    assert "over sim://variable\n" in told.talk
    told("--batches", "1", "--config", str(file), "--transport", "sim://argument")
    assert "over sim://argument\n" in told.talk


# -- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["sim://world", "zmq+tcp://127.0.0.1:0"])
def test_what_is_missing_is_named(told: Told, url: str) -> None:
    assert told("--transport", url, "--nodes", "2", "--patience", "0", code=1) == b""
    assert told.talk.splitlines()[1:] == [
        "FAILED:",
        "node-1 has no totals (node-2: 0 of ? batches, did not answer)",
        "node-2 has no totals (node-1: 0 of ? batches, did not answer)",
    ]


def test_totals_that_are_not_right_are_a_failure(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*words_of("node-1", "node-2", 0)[1:], "weed")
    received = CountingMachine.handle

    def one_word_changes(machine: CountingMachine, event: Event, now: float) -> object:
        if event == Arrived(NodeId("node-1"), 0, words_of("node-1", "node-2", 0)):
            event = Arrived(NodeId("node-1"), 0, words)
        return received(machine, event, now)

    monkeypatch.setattr(CountingMachine, "handle", one_word_changes)
    assert told(code=1) == b""
    assert told.talk.splitlines()[-4:] == [
        "FAILED:",
        "node-1 has wrong totals",
        "node-2 has wrong totals",
        "node-3 has wrong totals",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--transport", "carrier-pigeon://roof"), "unknown scheme 'carrier-pigeon'"),
        (("--transport", "world"), "transport.url"),
        (("--config", "no-such-file.toml"), "no-such-file.toml"),
        (("--transport", "kafka://127.0.0.1:1/nobody"), "kafka://127.0.0.1:1/nobody"),
    ],
)
def test_mistakes_get_one_clear_message(
    arguments: tuple[str, ...], message: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSP_TRANSPORT__CONNECT_TIMEOUT", "0.5")
    assert told(*arguments, code=1) == b""
    assert message in told.talk
    assert "Traceback" not in told.talk


@pytest.mark.parametrize("arguments", [("--nodes", "1"), ("--batches", "0")])
def test_nothing_to_exchange(arguments: tuple[str, str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main([*arguments])
    assert refusal.value.code == 2


# -- in worlds --------------------------------------------------------------------------------


class Trio:
    """The nodes of an exchange, one on each host of a world."""

    def __init__(self, world: World, batches: int = 20) -> None:
        self.nodes: dict[str, ExchangeNode] = {}
        self._world = world
        self._batches = batches
        for name in NAMES:
            world.add_host(name, self.live)

    async def live(self, host: Host) -> None:
        others = [other.peer for other in self._world.hosts.values() if other is not host]
        async with create_session(TransportConfig(url=host.url), host.name) as session:
            node = ExchangeNode(session, others, "run", on_batch=lambda: None)
            self.nodes[host.name] = node
            await node.run(self._batches)


@pytest.mark.dsp_seeds(10)
def test_a_network_that_loses_doubles_and_reorders_changes_nothing(world: World) -> None:
    world.set_conditions(NAMES, NAMES, LinkConditions(loss=0.2, duplicate=0.2, jitter=0.3))
    trio = Trio(world)
    world.run_until(lambda: all(host.finished for host in world.hosts.values()), limit=600)
    assert [node.totals for node in trio.nodes.values()] == [right_totals(NAMES, 20)] * 3


def test_a_peer_that_never_comes_back_is_named(world: World) -> None:
    trio = Trio(world)
    world.partition("node-3", ["node-1", "node-2"])
    world.run_until(lambda: all(host.finished for host in world.hosts.values()), limit=600)
    assert [node.problem for node in trio.nodes.values()] == [
        "what was sent to node-3 did not arrive",
        "what was sent to node-3 did not arrive",
        "what was sent to node-1 did not arrive",  # the first one is enough
    ]
