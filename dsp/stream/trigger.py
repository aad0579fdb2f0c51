"""Asks the decider once in every period, and turns its answer into requests to the protocol."""

import asyncio
from collections.abc import Callable
from random import Random

from dsp.scaling.deciders import Decider, Decision, Observation, Stay

__all__ = ["ScaleTrigger"]


class ScaleTrigger:
    """The scaling trigger of an instance (paper 000, figure 4.1).

    Args:
        decider: who decides.
        period: seconds between two questions.
        random: decides in which moment of a period this instance asks, so that siblings do not
            all ask at once.
        observe: gives what the decider sees; None if there is nothing to decide now.
        act: carries a decision out.
    """

    def __init__(
        self,
        decider: Decider,
        period: float,
        random: Random,
        observe: Callable[[], Observation | None],
        act: Callable[[Decision], None],
    ) -> None:
        self._decider = decider
        self._period = period
        self._random = random
        self._observe = observe
        self._act = act

    async def run(self) -> None:
        """Ask again and again. Ends by cancellation."""
        await asyncio.sleep(self._period * self._random.uniform(0.5, 1.5))
        while True:
            observation = self._observe()
            if observation is not None:
                decision = self._decider.decide(observation)
                if not isinstance(decision, Stay):
                    self._act(decision)
            await asyncio.sleep(self._period)
