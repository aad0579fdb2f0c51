"""How the core of an instance is used: measured on a machine, declared in a world."""

import asyncio
import os
from typing import Protocol

from dsp.errors import MissingExtraError
from dsp.scaling.usable import CpuUse
from dsp.transport.sim.virtual_time import VirtualTimeLoop

__all__ = ["CpuMeter", "DeclaredCpu", "MeasuredCpu", "make_meter"]

# Seconds between two readings: clocks of CPU time tick a hundred times a second.
LEAST_SPAN = 0.5


class CpuMeter(Protocol):
    """Tells how the core of an instance is used."""

    def use(self, busy: float, sharing: int) -> CpuUse:
        """Give the use of a core.

        Args:
            busy: share of the time in which the instance's body works.
            sharing: instances in this process.
        """
        ...


class DeclaredCpu:
    """In a world: every instance has a core of its own, and its body computes all the time."""

    def use(self, busy: float, sharing: int) -> CpuUse:
        return CpuUse(own=min(1.0, max(0.0, busy)))


class MeasuredCpu:
    """Reads what this process and the whole machine use.

    A process computes on one core at a time, so its instances share one; what other processes use
    counts as far as it does not fit on the machine's other cores.

    Raises:
        MissingExtraError: psutil is not installed.
    """

    def __init__(self) -> None:
        try:
            import psutil
        except ModuleNotFoundError as error:
            raise MissingExtraError("balance", "measuring usable CPU for autoscale+") from error
        self._machine = psutil.cpu_times
        self._process = psutil.Process(os.getpid())
        self._cores = psutil.cpu_count() or 1
        self._clock = asyncio.get_running_loop().time
        self._at = self._clock()
        self._before = self._read()
        self._own = self._others = 0.0

    def _read(self) -> tuple[float, float]:
        """Seconds of CPU so far: of this process, and of the whole machine."""
        mine, all_of_it = self._process.cpu_times(), self._machine()
        idle = all_of_it.idle + getattr(all_of_it, "iowait", 0.0)
        # Guests are counted among user times already.
        guests = getattr(all_of_it, "guest", 0.0) + getattr(all_of_it, "guest_nice", 0.0)
        return mine.user + mine.system, sum(all_of_it) - idle - guests

    def use(self, busy: float, sharing: int) -> CpuUse:
        now = self._clock()
        if (span := now - self._at) >= LEAST_SPAN:
            read = self._read()
            mine, machine = (
                (new - old) / span for new, old in zip(read, self._before, strict=True)
            )
            self._at, self._before = now, read
            self._own = min(1.0, max(0.0, mine))
            self._others = min(1.0, max(0.0, machine - mine - (self._cores - 1)))
        own = self._own / sharing
        # What a body needs while it works is known only if it worked.
        need = min(1.0, own / busy) if busy > 0.05 and own else 1.0
        return CpuUse(own=own, others=self._others, sharing=sharing, need=need)


def make_meter() -> CpuMeter:
    """Give the meter that fits the running loop.

    Raises:
        MissingExtraError: psutil is not installed.
    """
    if isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
        return DeclaredCpu()
    return MeasuredCpu()
