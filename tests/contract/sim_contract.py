"""How the contract suite makes endpoints of the simulated network."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from dsp.config import TransportConfig
from dsp.testing.contract import TransportContract
from dsp.transport.base import Transport
from dsp.transport.sim.network import SimNetwork
from dsp.transport.sim.virtual_time import VirtualTimeLoop


class SimContract(TransportContract):
    """``sim://`` in virtual time."""

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        return TransportConfig(url=f"sim://world/{node}", **settings)

    async def send_garbage(self, endpoint: Transport) -> None:
        network = SimNetwork.of_running_loop("world")
        for wire in (
            b"",
            b"\0",
            b"ds\x00\xff\xff",
            b"ds\x07\x00\x01a",
            b"ds\x00\x00\x01\xff",
            b"x" * 99,
        ):
            network.inject(endpoint.contact.id, wire)

    def run(self, trial: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(trial)
