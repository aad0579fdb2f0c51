"""The pipelines of the gateway while they run: a task each, in the loop of the server."""

import asyncio
from typing import Any

from dsp.stream.app import App, run
from examples.gateway.pipelines import Readings, hot_rooms

__all__ = ["Service"]

KINDS = {"hot-rooms": hot_rooms}


class Service:
    """Starts, watches and stops pipelines by name."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Readings, App, asyncio.Event, asyncio.Task[None]]] = {}

    async def start(self, name: str, kind: str) -> None:
        """Start a pipeline; return when it runs.

        Raises:
            KeyError: there is no such kind.
            ValueError: the name is taken.
        """
        if name in self._running:
            raise ValueError(f"{name} runs already")
        ends = Readings(KINDS[kind])
        app = run(ends.pipeline)
        up, stop = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with app:
                up.set()
                await stop.wait()

        task = asyncio.get_running_loop().create_task(hold(), name=f"pipeline {name}")
        self._running[name] = (ends, app, stop, task)
        waiting = asyncio.ensure_future(up.wait())
        await asyncio.wait((waiting, task), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not up.is_set():
            del self._running[name]
            await task  # it failed to start: tell why

    async def put(self, name: str, readings: list[dict[str, Any]]) -> None:
        """Hand readings to a pipeline; waits while it cannot take more."""
        for reading in readings:
            await self._running[name][0].source.put(reading)

    def figures(self, name: str) -> dict[str, Any]:
        """Tell how a pipeline does."""
        ends, app, _, task = self._running[name]
        return {
            "running": not task.done(),
            "in": app.summary.records_in,
            "out": app.summary.records_out,
            "alarms": ends.alarms.values[-10:],
        }

    async def stop(self, name: str) -> dict[str, Any]:
        """Let a pipeline finish what it has, end it, and give its last figures."""
        ends, _, stop, task = self._running[name]
        ends.source.end()
        stop.set()
        await task
        figures = self.figures(name)
        del self._running[name]
        return figures

    async def close(self) -> None:
        """Stop all."""
        for name in list(self._running):
            await self.stop(name)
