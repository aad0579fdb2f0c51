"""gRPC for asyncio serves one event loop at a time in a process: who uses it, and who still stops.

All of ``grpc.aio`` in a process shares one poller. Loops may follow one another; two that run at
the same time in two threads steal events from each other, and calls hang. So the second is
refused.
"""

import asyncio
import threading
from collections import Counter

from dsp.errors import ConnectError

__all__ = ["claim_loop", "release_loop", "is_stopping", "stopped"]

_lock = threading.Lock()
_users: Counter[asyncio.AbstractEventLoop] = Counter()
_stopping: dict["asyncio.Task[None]", asyncio.AbstractEventLoop] = {}


def claim_loop(loop: asyncio.AbstractEventLoop, name: str) -> None:
    """Say that an endpoint runs on this loop; ``release_loop`` takes it back.

    Raises:
        ConnectError: other endpoints run on another loop.
    """
    with _lock:
        for other in list(_users):
            if other.is_closed():  # it ended before its endpoints were closed
                del _users[other]
            elif other is not loop and other.is_running():
                raise ConnectError(
                    f"{name}: another event loop of this process runs gRPC endpoints already, and "
                    f"gRPC for asyncio serves one loop per process. Start all of them on one loop, "
                    f"or use a process for each"
                )
        _users[loop] += 1


def release_loop(loop: asyncio.AbstractEventLoop) -> None:
    """An endpoint that claimed this loop is closed."""
    with _lock:
        _users[loop] -= 1
        if _users[loop] <= 0:
            del _users[loop]


def is_stopping(loop: asyncio.AbstractEventLoop, keeper: "asyncio.Task[None]") -> None:
    """A server was told to stop, by somebody who cannot wait; ``stopped`` does, later."""
    if not keeper.done():
        _stopping[keeper] = loop
        keeper.add_done_callback(lambda done: _stopping.pop(done, None))


async def stopped(loop: asyncio.AbstractEventLoop, patience: float) -> None:
    """Wait until the servers that are being stopped on this loop have let go of their ports."""
    tasks = [task for task, home in _stopping.items() if home is loop]
    if tasks:
        await asyncio.wait(tasks, timeout=patience)
