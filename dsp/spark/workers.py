"""What a Python worker of Spark has once, however many tasks it runs."""

import asyncio

__all__ = ["worker_loop"]

_loop: asyncio.AbstractEventLoop | None = None


def worker_loop() -> asyncio.AbstractEventLoop:
    """Give the event loop of this process: async bodies may keep connections on it."""
    global _loop
    if _loop is None:
        _loop = asyncio.new_event_loop()
    return _loop
