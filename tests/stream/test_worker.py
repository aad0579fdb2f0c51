"""The process of an instance: what it does when nobody wants it any more."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsp.config import Config
from dsp.config.told import tell
from dsp.core.types import NodeId, Peer
from dsp.scaling.events import Member
from dsp.scaling.place import Place
from dsp.stream.processes import Order, ProcessSpawner

ROOT = Path(__file__).parent.parent.parent


def test_one_that_has_nobody_to_tell_ends_with_a_line() -> None:
    member = Member("slow", 0, NodeId("slow.1"))
    order = Order(
        "tests.stream.elastic_app:pipeline",
        tell(Config.model_validate({"transport": {"url": "zmq://127.0.0.1:0"}})),
        Place(member, ("numbers",), ("out",), keeper=True),
        Peer(NodeId("creator"), "zmq+tcp://127.0.0.1:1?data=2"),
        None,
    )
    read, write = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "dsp.stream.worker"],
        cwd=ROOT,
        env={**os.environ, "ELASTIC_STEPS": "[[1, 1]]"},
        stdin=subprocess.PIPE,
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    # Who ordered it is gone before it can say where it is.
    os.close(read)
    try:
        _, told = process.communicate(order.to_json(), timeout=50)
    finally:
        process.kill()
        process.wait()
    assert told.decode().splitlines() == [
        "slow.1 is not needed any more: who ordered it is gone",
    ]
    assert process.returncode == 1


def test_one_without_an_order_just_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dsp.stream.worker", "tests.stream.nothing:here", "zmq://*:0"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.asyncio
async def test_a_process_in_reserve_is_taken_and_replaced_and_ends_with_its_spawner() -> None:
    config = Config.model_validate({"transport": {"url": "zmq://127.0.0.1:0"}})
    spawner = ProcessSpawner("tests.stream.elastic_app:pipeline", config, spares=1)
    spawner.prepare()
    async with asyncio.timeout(50):
        while not spawner.children:
            await asyncio.sleep(0.01)
        first = spawner.children
        spawner.prepare()  # it is there already
        taken = await spawner._take()
        assert [taken.pid] == first
        spawner.prepare()
        while len(spawner.children) < 2:
            await asyncio.sleep(0.01)
        await spawner.close()
        assert taken.stdin is not None
        taken.stdin.close()
        assert await spawner.wait(50) == []
