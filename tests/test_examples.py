"""The examples: the greeting's node in worlds, and the program as a user calls it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsp import Lane, TransportConfig, create_transport
from dsp.testing import DROP, PASS, Host, LinkConditions, Packet, Rule, Verdict, World
from examples.greeting.node import GreetingNode

ROOT = Path(__file__).parent.parent
NAMES = ["ann", "bob", "cid", "dot"]


class Village:
    """Nodes that greet each other, one on each host of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.nodes: dict[str, GreetingNode] = {}
        for name in NAMES:
            world.add_host(name, self.live)

    async def live(self, host: Host) -> None:
        others = [other.peer for other in self.world.hosts.values() if other is not host]
        async with create_transport(TransportConfig(url=host.url), host.name) as transport:
            node = self.nodes[host.name] = GreetingNode(transport, on_answer=lambda: None)
            await node.run(others)

    def all_answered(self) -> bool:
        return len(self.nodes) == len(NAMES) and all(
            node.answered == {*NAMES} - {name} for name, node in self.nodes.items()
        )


def test_everyone_is_answered_by_everyone_else(world: World) -> None:
    village = Village(world)
    world.run_until(village.all_answered, limit=0.5)
    assert [node.sent for node in village.nodes.values()] == [3, 3, 3, 3]
    assert [node.repeated for node in village.nodes.values()] == [0, 0, 0, 0]


@pytest.mark.dsp_seeds(20)
def test_greetings_and_answers_may_be_lost(world: World) -> None:
    bad = LinkConditions(loss=0.1, duplicate=0.1, jitter=0.5)
    world.set_conditions(NAMES, NAMES, bad)
    world.run_until(Village(world).all_answered, limit=60)


def test_a_partition_delays_and_a_crash_starts_over(world: World) -> None:
    village = Village(world)
    world.partition("ann", ["bob", "cid"])
    world.run_for(10)
    assert village.nodes["ann"].answered == {"dot"}
    assert village.nodes["dot"].answered == {"ann", "bob", "cid"}
    world.repair("ann", ["bob", "cid"])
    world.run_until(village.all_answered, limit=5)
    world.bounce("dot")
    assert village.nodes["dot"].answered == {"ann", "bob", "cid"}
    world.run_for(0.001)
    assert village.nodes["dot"].answered == set()
    world.run_until(village.all_answered, limit=5)


def test_greetings_of_strangers_and_garbage_are_survived(world: World) -> None:
    village = Village(world)

    async def stranger(host: Host) -> None:
        async with create_transport(TransportConfig(url=host.url), host.name) as transport:
            for payload in (b"", b"garbage", b"\x08\x63"):
                await transport.send(world.hosts["ann"].peer, payload, lane=Lane.CONTROL)

    world.add_host("eve", stranger)
    world.run_until(village.all_answered, limit=5)
    assert village.nodes["ann"].rejected == 3


def losing(kind: bytes) -> Rule:
    def rule(packet: Packet) -> Verdict:
        return DROP if kind in packet.payload and packet.time < 3 else PASS

    return rule


@pytest.mark.parametrize("kind", [b"examples.greeting", b"examples.answer"])
def test_either_half_is_repeated_until_it_comes_through(world: World, kind: bytes) -> None:
    village = Village(world)
    with world.rule(losing(kind)):
        world.run_until(village.all_answered, limit=5)
    assert all(node.repeated == 9 for node in village.nodes.values())


# -- the program ------------------------------------------------------------------------------


def greeting(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "examples.greeting", *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=ROOT,
        env={**{k: v for k, v in os.environ.items() if not k.startswith("DSP_")}, **env},
        check=False,
    )


def test_the_program_greets_shows_progress_and_succeeds() -> None:
    done = greeting()
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0] == "5 nodes greet each other over zmq+tcp://127.0.0.1:0"
    assert lines[1:-1] == [f"  {count} answers" for count in range(2, 21, 2)]
    assert lines[-1].startswith("ok: 20 greetings sent, 20 answered, 20 expected (")


def test_the_program_fails_and_says_who_did_not_answer() -> None:
    done = greeting("--nodes", "2", "--patience", "0")
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [
        "node-1 has no answer of node-2",
        "node-2 has no answer of node-1",
        "FAILED: 2 greetings sent, 0 answered, 2 expected (0 repeated)",
    ]


def test_the_transport_is_configuration(tmp_path: Path) -> None:
    file = tmp_path / "dsp.toml"
    file.write_text('[transport]\nurl = "sim://file"\n')
    config = ("--nodes", "2", "--config", str(file))
    variable = {"DSP_TRANSPORT__URL": "sim://variable"}
    option = ("--transport", "sim://option")
    assert "over sim://file\n" in greeting(*config).stdout
    assert "over sim://variable\n" in greeting(*config, **variable).stdout
    assert "over sim://option\n" in greeting(*config, *option, **variable).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--transport", "carrier-pigeon://roof"), 1, "unknown scheme 'carrier-pigeon'"),
        (("--transport", "world"), 1, "transport.url"),
        (("--config", "no-such-file.toml"), 1, "no-such-file.toml"),
        (("--nodes", "1"), 2, "one alone has nobody to greet"),
    ],
)
def test_mistakes_get_one_clear_message(
    arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = greeting(*arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False)
    assert message in done.stderr
