"""An event loop in virtual time: waiting costs nothing, the real world is out of reach.

The loop is asyncio's own with a selector that never waits: where a real selector would sleep until
the next timer, this one moves the clock there. Time is counted in whole nanoseconds, so that a
long run does not gather rounding errors.

While such a loop runs, a socket, a thread, a process or a blocking ``time.sleep`` in its thread
raises ``SimulationError`` at once: each would make a run depend on the machine. When nothing is
ready and nothing is scheduled the program would hang for ever; the loop raises ``StalledError``.
"""

import asyncio
import contextvars
import functools
import selectors
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from types import ModuleType
from typing import Any, NoReturn, TypeVar, TypeVarTuple

from dsp.errors import SimulationError, StalledError

__all__ = ["VirtualTimeLoop"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NANOSECOND = 1e-9
MAX_WAITERS_SHOWN = 10

# Audit events (PEP 578) of what a simulated program must not do, and what to do instead.
_FORBIDDEN = {
    "socket.__new__": "use a transport with a sim:// URL",
    "socket.getaddrinfo": "use a transport with a sim:// URL",
    "_thread.start_new_thread": "keep the work on the loop",
    "_thread.start_joinable_thread": "keep the work on the loop",
    "time.sleep": "await asyncio.sleep",
    "subprocess.Popen": "start a host in the world instead",
    "os.fork": "start a host in the world instead",
    "os.posix_spawn": "start a host in the world instead",
}


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop whose clock starts at 0 and jumps to the next timer.

    Args:
        after_step: called after every round of callbacks; what it raises ends the run.
    """

    def __init__(self, after_step: Callable[[], None] | None = None) -> None:
        self._nanoseconds = 0
        clock = _NullSelector(self, after_step)
        super().__init__(clock)
        self._clock_resolution = NANOSECOND
        clock.seal()
        _install_guard()

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._nanoseconds * NANOSECOND

    def advance(self, seconds: float) -> None:
        """Move the clock, to the first whole nanosecond that is not before the goal."""
        self._nanoseconds += max(1, -int(-seconds // NANOSECOND))

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        _forbid("run_in_executor", "keep the work on the loop")

    def call_soon_threadsafe(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.Handle:
        if threading.get_ident() != self._thread_of_this_loop():
            _forbid("a call from another thread", "keep the work on the loop")
        return self.call_soon(callback, *args, context=context)

    def _thread_of_this_loop(self) -> int:
        return getattr(self, "_thread_id", None) or threading.get_ident()


class _NullSelector(selectors.BaseSelector):
    """Watches nothing; "waiting" moves the loop's clock."""

    def __init__(self, loop: VirtualTimeLoop, after_step: Callable[[], None] | None) -> None:
        self._loop = loop
        self._after_step = after_step
        self._sealed = False

    def seal(self) -> None:
        """Refuse file descriptors from now on; only the loop's own wake-up pipe came before."""
        self._sealed = True

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:  # noqa: ANN401
        if self._sealed:
            _forbid("waiting for a file descriptor", "use a transport with a sim:// URL")
        return selectors.SelectorKey(fileobj, -1, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401
        return selectors.SelectorKey(fileobj, -1, 0, None)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self._after_step is not None:
            self._after_step()
        if timeout is None:
            # The hook may have made something ready; the loop asked before it ran.
            if not self._loop._ready and not self._loop._scheduled:  # type: ignore[attr-defined]
                raise StalledError(_describe_stall(self._loop))
        elif timeout > 0 and not self._loop._ready:  # type: ignore[attr-defined]
            self._loop.advance(timeout)
        return []

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:  # noqa: ANN401
        raise KeyError(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return {}


def _describe_stall(loop: VirtualTimeLoop) -> str:
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [f"  {task.get_name()}: {_where(task)}" for task in tasks[:MAX_WAITERS_SHOWN]]
    if len(tasks) > MAX_WAITERS_SHOWN:
        lines.append(f"  and {len(tasks) - MAX_WAITERS_SHOWN} more")
    waiting = "\n".join(lines) or "  no task"
    return (
        f"stalled at {loop.time():.9g} s: nothing is ready and nothing is scheduled, so nothing "
        f"can ever happen again. Waiting:\n{waiting}"
    )


def _where(task: "asyncio.Task[Any]") -> str:
    frames = task.get_stack()
    if not frames:
        return "not started"
    frame = frames[-1]
    return f"{frame.f_code.co_qualname} ({frame.f_code.co_filename}:{frame.f_lineno})"


def _forbid(what: str, instead: str) -> NoReturn:
    raise SimulationError(
        f"{what} in a simulated world: it would tie the run to this machine; {instead}"
    )


def _guard(event: str, _args: tuple[object, ...] = ()) -> None:
    instead = _FORBIDDEN.get(event)
    if instead is None:
        return
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    if isinstance(loop, VirtualTimeLoop):
        _forbid(event, instead)


_guard_installed = False


def _install_guard() -> None:
    # Audit hooks cannot be removed: one for the process, silent unless a virtual loop runs here.
    global _guard_installed
    if not _guard_installed:
        _guard_installed = True
        sys.addaudithook(_guard)
        # Audit events that came after Python 3.11 (threads) and 3.12 (sleep).
        if sys.version_info < (3, 12):
            _guard_function(threading, "_start_new_thread", "_thread.start_new_thread")
        if sys.version_info < (3, 13):
            _guard_function(time, "sleep", "time.sleep")


def _guard_function(module: ModuleType, name: str, event: str) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def guarded(*args: object) -> object:
        _guard(event)
        return original(*args)

    setattr(module, name, guarded)
