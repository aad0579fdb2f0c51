"""The driver beside an application that uses the other lane itself."""

import asyncio
from typing import Any

import pytest

from dsp.config import TransportConfig
from dsp.core.driver import MachineDriver
from dsp.core.machine import Send, SendFailed
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError
from dsp.testing import Host, World
from dsp.transport.base import Undelivered
from dsp.transport.session import create_session
from tests.unit.test_driver import Do, Script, TextCodec

AWAY = Peer(NodeId("away"), "sim://world/away")


def add_node(world: World, machine: Script, **options: Any) -> None:  # noqa: ANN401
    """Add a host whose machine and whose application each send to a peer that is not there."""

    async def main(host: Host) -> None:
        async with create_session(TransportConfig(url=host.url), host.name) as session:
            driver: MachineDriver[Any, Any] = MachineDriver(
                machine, session, TextCodec(), peers=[AWAY], **options
            )
            async with driver:
                await session.send(AWAY, b"\xff no text", lane=Lane.DATA)
                driver.submit(Do((Send(AWAY.id, "hello"),)))
                await asyncio.sleep(60)

    world.add_host("node", main)


def test_the_application_hears_of_what_it_sent_itself(world: World) -> None:
    machine, lost = Script(), list[Undelivered]()
    add_node(world, machine, undelivered=lost.append)
    world.run_until(lambda: world.hosts["node"].finished, limit=100)
    assert lost == [Undelivered(AWAY, Lane.DATA, (b"\xff no text",))]
    assert machine.seen[1:] == [SendFailed(AWAY.id, ("hello",))]


def test_lanes_that_the_machine_reads_are_its_own(world: World) -> None:
    lost = list[Undelivered]()
    add_node(world, Script(), lanes=(Lane.CONTROL, Lane.DATA), undelivered=lost.append)
    with pytest.raises(ExceptionGroup) as caught:
        world.run_until(lambda: world.hosts["node"].finished, limit=100)
    assert caught.group_contains(CodecError, match="not a text")
    assert lost == []
