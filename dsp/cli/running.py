"""Runs a pipeline as a program: signals, views, and the processes that must not stay behind."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import dsp
from dsp.cli.live import View
from dsp.errors import DspError
from dsp.stream.history import History
from dsp.stream.processes import ProcessSpawner, load_pipeline

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.stream.app import App
    from dsp.stream.summary import Summary
    from dsp.testing.host import Host

__all__ = ["Outcome", "run_pipeline"]

REFRESH = 0.25
# Processes that were told to end, and what becomes of them then.
END_PATIENCE = 15.0
STOPPED_BY_HAND = 130


@dataclass(slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        summary: what was counted.
        history: how it went.
        faults: what went wrong; empty if nothing did.
        stopped: whether it was broken off by hand.
        bodies: the sinks, by the names of their operators.
        batches: of Spark; None for a run on the mesh.
        master: of Spark.
    """

    summary: "Summary"
    history: History
    faults: list[str] = field(default_factory=list)
    stopped: bool = False
    bodies: dict[str, Any] = field(default_factory=dict)
    batches: int | None = None
    master: str = ""

    @property
    def code(self) -> int:
        """The exit code."""
        return STOPPED_BY_HAND if self.stopped else int(bool(self.faults))


def run_pipeline(reference: str, config: "Config", view: View, seed: int | None = None) -> Outcome:
    """Run a pipeline until its sources are over or a signal comes.

    One SIGINT or SIGTERM drains: sources stop, what is under way reaches the sinks. Another one
    ends everything at once.

    Args:
        reference: ``package.module:name`` of the pipeline.
        config: settings. With a transport URL, each instance is a process; on ``sim://`` it is a
            host of a world, in virtual time; without, everything is in this process.
        view: is shown how it goes.
        seed: decides all that is random in this process.

    Raises:
        ConfigError: the pipeline or the settings are wrong.
    """
    url = config.transport.url if "url" in config.transport.model_fields_set else None
    if url is not None and url.partition(":")[0] == "sim":
        return _Simulated(reference, config, view, seed or 0).run()
    return asyncio.run(_Program(reference, config, view, seed, processes=url is not None).run())


class _Program:
    """A run on a real loop."""

    def __init__(
        self, reference: str, config: "Config", view: View, seed: int | None, *, processes: bool
    ) -> None:
        self._view = view
        self._signals = 0
        self._signalled = asyncio.Event()
        self._main: asyncio.Task[Any] | None = None
        self._app = dsp.run(
            reference, config, processes=processes, seed=seed, on_report=self._reported
        )
        self._outcome = Outcome(self._app.summary, History(self._app.graph))
        self._outcome.bodies = _sinks(self._app)

    def _reported(self, report: dict[str, Any]) -> None:
        self._outcome.history.add(report)

    async def run(self) -> Outcome:
        loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        watched = (signal.SIGINT, signal.SIGTERM)
        for number in watched:
            loop.add_signal_handler(number, self._signal, number)
        try:
            await self._run()
        except asyncio.CancelledError:
            if not self._outcome.stopped:
                raise
        except (DspError, TimeoutError) as error:
            if not self._outcome.stopped:
                what = "not drained in time" if isinstance(error, TimeoutError) else str(error)
                self._outcome.faults.append(what)
        finally:
            await self._end_processes()
            for number in watched:
                loop.remove_signal_handler(number)
        self._view.show(self._outcome.summary, self._outcome.history)
        return self._outcome

    def _signal(self, number: signal.Signals) -> None:
        self._signals += 1
        self._signalled.set()
        if self._signals == 1:
            self._view.say("stopping: what is under way is finished; once more to stop at once")
            return
        self._outcome.stopped = True
        if self._app.running:
            self._app.abort()
            self._kill()
        elif self._main is not None:
            self._main.cancel()

    async def _run(self) -> None:
        async with self._app as app:
            joining = asyncio.ensure_future(app.join())
            signalled = asyncio.ensure_future(self._signalled.wait())
            try:
                await self._watch(joining, signalled)
                if not joining.done():
                    joining.cancel()
                    stopping = asyncio.ensure_future(app.stop())
                    await self._watch(stopping)
                    await stopping
                else:
                    await joining
            finally:
                signalled.cancel()
                joining.cancel()
                with suppress(asyncio.CancelledError, DspError):
                    await joining

    async def _watch(self, *tasks: "asyncio.Future[Any]") -> None:
        while not any(task.done() for task in tasks):
            await asyncio.wait(tasks, timeout=REFRESH, return_when=asyncio.FIRST_COMPLETED)
            self._view.show(self._outcome.summary, self._outcome.history)

    def _kill(self) -> None:
        if isinstance(self._app.spawner, ProcessSpawner):
            self._app.spawner.kill()

    async def _end_processes(self) -> None:
        """See that the processes which were started here end."""
        spawner = self._app.spawner
        if not isinstance(spawner, ProcessSpawner):
            return
        if self._outcome.stopped or self._outcome.faults:
            spawner.kill()
        if await spawner.wait(END_PATIENCE):
            left = spawner.children
            spawner.kill()
            await spawner.wait(END_PATIENCE)
            self._outcome.faults.append(f"processes {left} did not end and were killed")


class _Simulated:
    """A run in a world, in virtual time; every instance is a host of its own."""

    def __init__(self, reference: str, config: "Config", view: View, seed: int) -> None:
        from dsp.testing.pipelines import WorldSpawner
        from dsp.testing.world import World

        self._view = view
        self._config = config
        self._signals = 0
        self._pipeline = load_pipeline(reference)
        graph = self._pipeline.graph()
        self._seed = seed
        self._world = World(seed)
        self._spawner = WorldSpawner(self._world, graph, config)
        self._outcome: Outcome | None = None

    def run(self) -> Outcome:
        before = {n: signal.signal(n, self._signal) for n in (signal.SIGINT, signal.SIGTERM)}
        try:
            with self._world as world:
                host = world.add_host("run", self._main)
                world.run_until(lambda: host.finished, limit=float(10**9))
        except KeyboardInterrupt:
            if self._outcome is None:
                raise
            self._outcome.stopped = True
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        assert self._outcome is not None
        self._view.show(self._outcome.summary, self._outcome.history)
        return self._outcome

    def _signal(self, number: int, frame: object) -> None:
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt
        # Not on the view: it may be in the middle of painting.
        os.write(2, b"stopping\n")

    async def _main(self, host: "Host") -> None:
        transport = self._config.transport.model_copy(update={"url": host.url})
        node = self._config.node.model_copy(update={"id": str(host.name)})
        config = self._config.model_copy(update={"transport": transport, "node": node})
        app = dsp.run(
            self._pipeline, config, spawner=self._spawner, seed=self._seed, on_report=self._reported
        )
        outcome = self._outcome = Outcome(app.summary, History(app.graph))
        outcome.bodies = _sinks(app)
        try:
            async with app:
                joining = asyncio.ensure_future(app.join())
                while not joining.done() and not self._signals:
                    await asyncio.wait([joining], timeout=REFRESH)
                    self._view.show(outcome.summary, outcome.history)
                if not joining.done():
                    joining.cancel()
                    await app.stop()
                else:
                    await joining
        except (DspError, TimeoutError) as error:
            outcome.faults.append(str(error) or "not drained in time")

    def _reported(self, report: dict[str, Any]) -> None:
        assert self._outcome is not None
        self._outcome.history.add(report)


def _sinks(app: "App") -> dict[str, Any]:
    return {sink.name: sink.body for sink in app.graph.sinks()}
