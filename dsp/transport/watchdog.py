"""What an endpoint notices by itself: frames that wait and do not move."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dsp.core.types import Lane, NodeId

__all__ = ["Flow", "Stall", "Watchdog"]


class Flow(Protocol):
    """What a watchdog looks at: something that frames go through."""

    def waiting(self) -> bool:
        """Tell whether something was accepted and has not arrived as far as we know."""
        ...

    def moved(self) -> int:
        """A number that changes whenever something moves."""
        ...


@dataclass(slots=True)
class _Mark:
    """When a flow was last seen to move."""

    moved: int
    since: float
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """A flow in which frames wait and none has moved for a while."""

    key: tuple[NodeId, Lane]
    seconds: float


class Watchdog:
    """Notices flows that stand still.

    It has a timer only while something waits that it has not reported yet: an idle endpoint costs
    nothing, and a simulated program that can never go on still stalls for all to see.

    Args:
        after: seconds without movement that make a stall.
        flows: what to look at.
        report: told of each stall once, until the flow has moved again.
    """

    def __init__(
        self,
        after: float,
        flows: Callable[[], Mapping[tuple[NodeId, Lane], Flow]],
        report: Callable[[Stall], None],
    ) -> None:
        self._after = after
        self._flows = flows
        self._report = report
        self._marks: dict[tuple[NodeId, Lane], _Mark] = {}
        self.timer: asyncio.TimerHandle | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Something waits: look after it. Cheap to call when the timer runs already."""
        if self.timer is None:
            self.look(loop.time())
            self.timer = loop.call_later(self._after / 2, self._wake, loop)

    def stop(self) -> None:
        """Look no more."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self.timer = None
        stalls = {stall.key for stall in self.look(loop.time())}
        if any(flow.waiting() and key not in stalls for key, flow in self._flows().items()):
            self.watch(loop)

    def look(self, now: float) -> list[Stall]:
        """Give every flow that stands still now; those that are news are reported."""
        stalls = []
        for key, flow in self._flows().items():
            mark, moved = self._marks.get(key), flow.moved()
            if not flow.waiting():
                self._marks.pop(key, None)
            elif mark is None or mark.moved != moved:
                self._marks[key] = _Mark(moved, now)
            elif now - mark.since >= self._after:
                stalls.append(Stall(key, now - mark.since))
                if not mark.reported:
                    mark.reported = True
                    self._report(stalls[-1])
        return stalls
