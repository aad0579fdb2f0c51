"""The simulated network passes the contract, in virtual time and on a real loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.contract.sim_contract import SimContract


class TestSim(SimContract):
    pass


class TestSimOnRealLoop(SimContract):
    """The same network when an application uses ``sim://`` outside a world."""

    def run(self, trial: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner() as runner:
            runner.run(trial)
