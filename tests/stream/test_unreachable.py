"""A process whose address the transport cannot reach is lost, and ends nothing else."""

import asyncio
from random import Random

import pytest

from dsp._pb.engine_pb2 import EngineBatch, EngineStop
from dsp.config import Config
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId, Peer
from dsp.stream.alone import Alone
from dsp.stream.host import Host
from dsp.stream.pipeline import Pipeline
from dsp.stream.spawners import LocalSpawner

FAR = NodeId("far.1")


async def send_to_the_unreachable(what: str) -> bool:
    pipeline = Pipeline("near")
    pipeline.source([1]).sink(print)
    host = Host(
        Alone(NodeId("here")),
        pipeline.graph(),
        Config(),
        LocalSpawner(),
        make_decider=lambda operator, random: None,
        random=Random(1),
    )
    host.addresses.put(FAR, Peer(NodeId("there"), "zmq+tcp://127.0.0.1:9?data=10"))
    if what == "message":
        host.post(NodeId("near.1"), FAR, Envelope(engine_stop=EngineStop()))
    else:
        host.send_batch(NodeId("near.1"), FAR, EngineBatch(sequence=1, records=1), b"")
    await asyncio.sleep(0)
    lost = NodeId("there") in host._lost
    await host.close()
    return lost


@pytest.mark.parametrize("what", ["message", "batch"])
def test_what_cannot_be_reached_is_lost_once(what: str, caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(send_to_the_unreachable(what))
    assert sum("taken for lost" in record.message for record in caplog.records) == 1
