"""The same job on dsp's own transport, as ``dsp run`` runs it: each instance a process."""

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from dsp.errors import DspError
from dsp.lab.kafka_groups.flow import Flow
from dsp.lab.kafka_groups.groups import Progress, with_timed_sink
from dsp.stream.app import App
from dsp.stream.history import History, Line
from dsp.stream.processes import ProcessSpawner, load_pipeline

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["run_mesh"]

POLL = 0.25
END_PATIENCE = 15.0


async def run_mesh(
    reference: str,
    config: "Config",
    operator: str,
    progress: Progress = lambda records: None,
    seed: int | None = None,
) -> Flow:
    """Run a job once; its instances decide for themselves how many they are.

    Args:
        reference: ``package.module:name`` of the pipeline.
        config: settings, with a transport URL.
        operator: the one whose instances are looked at.
        progress: told how many records have reached the sink.
        seed: decides what is random in this process.

    Raises:
        DspError: an instance failed.
    """
    graph, timed = with_timed_sink(load_pipeline(reference).graph())
    history = History(graph, time.time())
    began_at = time.monotonic()
    spawner = ProcessSpawner(reference, config)
    app = App(graph, config, spawner, seed, history.add, None)
    try:
        async with app:
            joining = asyncio.ensure_future(app.join())
            try:
                while not joining.done():
                    await asyncio.wait([joining], timeout=POLL)
                    progress(len(timed.ids))
                await joining
            finally:
                joining.cancel()
                with suppress(asyncio.CancelledError, DspError):
                    await joining
    except BaseException:
        spawner.kill()
        raise
    finally:
        if await spawner.wait(END_PATIENCE):
            spawner.kill()
    first = timed.arrivals[0][0] if timed.arrivals else began_at
    offset = first - began_at

    def shifted(line: Line) -> Line:
        return [(at - offset, value) for at, value in line]

    bodies = [name for name in graph.operators if graph.upstream(name)]
    return Flow(
        name="dsp",
        given=app.summary.records_in,
        arrivals=[(at - first, count) for at, count in timed.arrivals],
        ids=timed.ids,
        repeats=timed.repeats,
        input_rate=shifted(history.input_rate()),
        instances={name: shifted(history.instances(name)) for name in bodies},
        rates={name: shifted(line) for name, line in history.rates(operator).items()},
    )
