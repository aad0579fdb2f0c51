"""Sessions pass the contract over every adapter, and over links that lose, double and reorder."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from dsp.core.types import NodeId
from dsp.testing import LinkConditions
from dsp.transport.base import Transport
from dsp.transport.session import Session
from dsp.transport.sim.network import SimNetwork
from dsp.transport.sim.virtual_time import VirtualTimeLoop
from tests.contract.sim_contract import SimContract


class TestSessionOverSim(SimContract):
    def make(self, node: str, **settings: Any) -> Transport:  # noqa: ANN401
        return Session.from_config(self.config(node, **settings), NodeId(node))


class TestSessionOverBadLinks(TestSessionOverSim):
    """What the adapter does not guarantee, the session does."""

    patience = 120.0
    grace = 10.0
    conditions = LinkConditions(loss=0.1, duplicate=0.1, reorder=0.2, jitter=0.005)

    def run(self, trial: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            network = SimNetwork(seed=1, conditions=self.conditions)
            network.serve(runner.get_loop())
            runner.run(trial)
