"""The process of an instance: what it does when nobody wants it any more."""

import os
import subprocess
import sys
from pathlib import Path

from dsp.core.types import NodeId, Peer
from dsp.scaling.events import Member
from dsp.scaling.place import Place
from dsp.stream.processes import Order

ROOT = Path(__file__).parent.parent.parent


def test_one_that_has_nobody_to_tell_ends_with_a_line() -> None:
    member = Member("slow", 0, NodeId("slow.1"))
    order = Order(
        "tests.stream.elastic_app:pipeline",
        {"transport": {"url": "zmq://127.0.0.1:0"}},
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
