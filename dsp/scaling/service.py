"""When an instance decides, and what becomes of it: the asyncio side of deciders.

Whoever hosts an instance has a machine, a way to hand it events, and figures of its load. The
trigger brings them together with a decider: it asks once in every period, at a phase of its own so
that siblings do not decide at the same moment, and turns what is decided into requests. It knows
no transport, and no clock but that of the loop it runs in.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Protocol, assert_never

from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.scaling.deciders.base import Decider, Duplicate, Leave, Observation, Retire, Stay
from dsp.scaling.events import LeaveRequested, ScaleOutRequested

__all__ = ["Scalable", "ScaleRequest", "ScaleTrigger", "TriggerCounts"]

ScaleRequest = ScaleOutRequested | LeaveRequested


class Scalable(Protocol):
    """What a trigger has to know of a machine; a ``ScaleMachine`` is one."""

    @property
    def may_scale(self) -> bool:
        """Whether an operation may begin."""
        ...

    @property
    def keeper(self) -> bool:
        """Whether the instance is the keeper of its operator, which never leaves."""
        ...


@dataclass(slots=True)
class TriggerCounts:
    """What a trigger did so far.

    Attributes:
        asked: decisions that were asked for.
        skipped: turns without one, since an operation was under way or figures were missing.
        created: siblings that were requested.
        left: requests to leave, 0 or 1 unless one failed.
        retired: siblings that were asked to leave.
        refused: requests to leave that came from outside and could not be met.
    """

    asked: int = 0
    skipped: int = 0
    created: int = 0
    left: int = 0
    retired: int = 0
    refused: int = 0


class ScaleTrigger:
    """Asks one instance's decider in every period.

    Not for several tasks at once: ``run`` is one task, and all callbacks are called from it or
    from ``leave_when_asked``. They must neither block nor call back.

    Args:
        machine: the instance's, which is asked and never changed here.
        decider: of this instance alone.
        period: seconds between two decisions.
        random: seeded, of this instance alone; gives the phase of its turns in the period.
        observe: takes the figures, at the time of the loop that it is given; None while there is
            nothing to look back on.
        begin: hands a request to the machine, as ``MachineDriver.submit`` does.
        retire: asks a sibling to leave, for deciders that lead their operator.

    Raises:
        ConfigError: the period is not over 0.
    """

    def __init__(
        self,
        machine: Scalable,
        decider: Decider,
        *,
        period: float,
        random: Random,
        observe: Callable[[float], Observation | None],
        begin: Callable[[ScaleRequest], None],
        retire: Callable[[NodeId], None],
    ) -> None:
        if not period > 0:
            raise ConfigError(f"period is {period:g}: seconds, over 0")
        self.counts = TriggerCounts()
        self._machine = machine
        self._decider = decider
        self._period = period
        self._phase = random.random() * period
        self._observe = observe
        self._begin = begin
        self._retire = retire

    async def run(self) -> None:
        """Take every turn until cancelled; whatever a callback or the decider raises ends it.

        Turns keep their phase: a loop that is late skips those it missed instead of catching up,
        since they would all see the same figures.
        """
        loop = asyncio.get_running_loop()
        due = loop.time() + self._phase
        while True:
            await asyncio.sleep(due - loop.time())
            self.turn(loop.time())
            missed = max(0.0, loop.time() - due) // self._period
            due += (missed + 1) * self._period

    def turn(self, now: float) -> None:
        """Take one turn: ask the decider if the instance may act at all.

        Args:
            now: seconds, of the loop.
        """
        observation = self._observe(now) if self._machine.may_scale else None
        if observation is None:
            self.counts.skipped += 1
            return
        self.counts.asked += 1
        match self._decider.decide(observation):
            case Stay():
                pass
            case Duplicate(count):
                self.counts.created += count
                self._begin(ScaleOutRequested(count))
            case Leave():
                self.counts.left += 1
                self._begin(LeaveRequested())
            case Retire(siblings):
                self.counts.retired += len(siblings)
                for sibling in siblings:
                    self._retire(sibling)
            case decision:
                assert_never(decision)

    def leave_when_asked(self) -> bool:
        """Leave because a sibling that leads the operator asks for it.

        Returns:
            Whether the instance does. It does not while an operation is under way, nor as keeper:
            who leads will see it in the next report, and ask again.
        """
        if not self._machine.may_scale or self._machine.keeper:
            self.counts.refused += 1
            return False
        self.counts.left += 1
        self._begin(LeaveRequested())
        return True
