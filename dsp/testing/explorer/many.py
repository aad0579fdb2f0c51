"""Many models at once, one process for each at a time."""

import multiprocessing
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import permutations
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, TypeVar, cast

from dsp.core.types import NodeId
from dsp.testing.explorer.exploration import explore
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.parallel import WorkerError
from dsp.testing.explorer.result import Result

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

__all__ = ["explore_many", "explore_orders", "run_in_processes"]

T = TypeVar("T")


def _report(task: Callable[[], object], connection: Connection) -> None:
    try:
        connection.send((True, task()))
    except Exception:  # reported to the process that waits for us, which raises it
        connection.send((False, traceback.format_exc()))


def run_in_processes(tasks: Sequence[Callable[[], T]], workers: int) -> list[T]:
    """Run tasks, each in a process of its own, so many at a time.

    Args:
        tasks: what to run. Tasks need not be picklable, what they return must be.
        workers: how many at a time; with 1 they run in this process.

    Returns:
        What the tasks returned, in their order.

    Raises:
        WorkerError: a task raised.
    """
    if workers <= 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    context = multiprocessing.get_context("fork")
    results: dict[int, T] = {}
    waiting = list(enumerate(tasks))[::-1]
    running: dict[Connection, tuple[int, ForkProcess]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                number, task = waiting.pop()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_report, args=(task, theirs), daemon=True)
                process.start()
                theirs.close()
                running[ours] = (number, process)
            for ready in wait(list(running)):
                connection = cast("Connection", ready)
                number, process = running[connection]
                try:
                    fine, value = connection.recv()
                except EOFError:
                    fine, value = False, "it ended without an answer"
                connection.close()
                process.join()
                del running[connection]
                if not fine:
                    raise WorkerError(f"a worker process failed:\n{value}")
                results[number] = value
    finally:
        for connection, (_, process) in running.items():
            connection.close()
            process.terminate()
            process.join()
    return [results[number] for number in range(len(tasks))]


def explore_many(
    models: Iterable[AnyModel], *, workers: int = 2, max_states: int = 10_000_000
) -> list[Result]:
    """Explore many models, so many at a time, each in a process of its own.

    Args:
        models: what to explore.
        workers: how many at a time.
        max_states: as for ``explore``.

    Returns:
        One result for each model, in their order.
    """
    tasks = [partial(explore, model, max_states=max_states) for model in models]
    return run_in_processes(tasks, workers)


def explore_orders(
    make: Callable[[tuple[NodeId, ...]], AnyModel],
    names: Sequence[NodeId],
    *,
    workers: int = 2,
    max_states: int = 10_000_000,
) -> dict[tuple[NodeId, ...], Result]:
    """Explore a model in every order of its members' names.

    Protocols break ties by name, so that what holds for a < b < c may fail for b < c < a when the
    three have different parts to play.

    Args:
        make: builds the model for one order; the first name goes to the first part, and so on.
        names: the names.
        workers: how many at a time.
        max_states: as for ``explore``.

    Returns:
        The result for each order.
    """
    orders = list(permutations(names))
    results = explore_many(map(make, orders), workers=workers, max_states=max_states)
    return dict(zip(orders, results, strict=True))
