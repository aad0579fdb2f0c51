"""Both coordinations side by side, over seeds."""

import asyncio
import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from statistics import fmean

from dsp.errors import ConfigError
from dsp.lab.coordination.application import Setting
from dsp.lab.coordination.runs import Outcome, run_in_processes, run_in_world

__all__ = ["COORDINATIONS", "Row", "Study", "run_live_study", "run_study"]

COORDINATIONS = ("ack", "2fgme")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one coordination.

    Attributes:
        coordination: which.
        figure: what is measured, with its unit.
        mean: over all runs, or over all steps of all runs.
        p95: of the same values.
    """

    coordination: str
    figure: str
    mean: float
    p95: float


@dataclass(frozen=True, slots=True)
class Study:
    """What a study found.

    Attributes:
        setting: what was run.
        where: in virtual time, or the URL of the transport.
        runs: of each coordination; in virtual time the seeds are those from ``first_seed`` on.
        first_seed: of the runs in virtual time.
        rows: the figures.
        waits: seconds from decision to permission, of each step, by coordination.
        delays: seconds from decision to newcomer, by coordination.
    """

    setting: dict[str, float]
    where: str
    runs: int
    first_seed: int
    rows: tuple[Row, ...]
    waits: dict[str, tuple[float, ...]]
    delays: dict[str, tuple[float, ...]]

    def mean(self, coordination: str, figure: str) -> float:
        """Give one figure.

        Raises:
            KeyError: it was not measured.
        """
        for row in self.rows:
            if (row.coordination, row.figure) == (coordination, figure):
                return row.mean
        raise KeyError((coordination, figure))


def run_study(
    setting: Setting,
    coordinations: Sequence[str],
    seeds: Sequence[int],
    *,
    workers: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Study:
    """Run the line in virtual time.

    Args:
        setting: what is run.
        coordinations: some of ``COORDINATIONS``.
        seeds: one run of each for each.
        workers: processes.
        progress: called after each run.

    Raises:
        ConfigError: there is no such coordination.
    """
    _check(coordinations)
    jobs = [(setting, name, seed) for name in coordinations for seed in seeds]
    found: dict[str, list[Outcome]] = {name: [] for name in coordinations}
    for name, outcome in _outcomes(jobs, workers):
        found[name].append(outcome)
        progress()
    return _study(setting, "virtual time", seeds[0], found)


async def run_live_study(
    setting: Setting,
    coordinations: Sequence[str],
    runs: int,
    url: str,
    *,
    progress: Callable[[], None] = lambda: None,
) -> Study:
    """Run the line in processes of this machine, in turns.

    Raises:
        ConfigError: there is no such coordination, or the URL is wrong.
    """
    _check(coordinations)
    found: dict[str, list[Outcome]] = {name: [] for name in coordinations}
    for _ in range(runs):
        for name in coordinations:
            found[name].append(await run_in_processes(setting, name, url))
            progress()
            await asyncio.sleep(0)
    return _study(setting, url, 0, found)


def _check(coordinations: Sequence[str]) -> None:
    unknown = [name for name in coordinations if name not in COORDINATIONS]
    if unknown or not coordinations:
        what = repr(unknown[0]) if unknown else "at all"
        raise ConfigError(f"no coordination {what}; there are {', '.join(COORDINATIONS)}")


def _outcomes(
    jobs: Sequence[tuple[Setting, str, int]], workers: int
) -> Iterable[tuple[str, Outcome]]:
    if workers <= 1:
        yield from ((job[1], run_in_world(*job)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(run_in_world, *job): job[1] for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()


def _study(setting: Setting, where: str, first_seed: int, found: dict[str, list[Outcome]]) -> Study:
    rows = tuple(
        Row(name, figure, fmean(values), _p95(values))
        for name, outcomes in found.items()
        for figure, values in _figures(outcomes)
        if values
    )
    return Study(
        {name: float(value) for name, value in asdict(setting).items()},
        where,
        len(next(iter(found.values()))),
        first_seed,
        rows,
        {name: tuple(w for one in outcomes for w in one.waits) for name, outcomes in found.items()},
        {
            name: tuple(d for one in outcomes for d in one.delays)
            for name, outcomes in found.items()
        },
    )


def _figures(outcomes: Sequence[Outcome]) -> Iterable[tuple[str, list[float]]]:
    yield "scaling steps", [one.steps for one in outcomes]
    yield "steps of neighbours that overlap", [one.overlaps for one in outcomes]
    yield "dropped after waiting", [one.refused for one in outcomes]
    yield "messages per step, scale protocol", [one.scale_messages for one in outcomes]
    yield "messages per step, coordination", [one.coordination_messages for one in outcomes]
    yield "ms from decision to permission", [1000 * w for one in outcomes for w in one.waits]
    yield "ms from decision to newcomer", [1000 * d for one in outcomes for d in one.delays]
    yield "ms of stall, longest", [1000 * one.stall for one in outcomes]
    yield "ms from source to sink, p95", [1000 * one.latency for one in outcomes]
    yield "instances, most", [one.instances for one in outcomes]


def _p95(values: Sequence[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
