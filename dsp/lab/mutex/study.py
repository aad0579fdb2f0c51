"""The experiments of chapter 5, for all algorithms, beside the thesis's numbers."""

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from statistics import fmean, pstdev

from dsp.lab.mutex.setting import OPEN_PARAMETERS, Setting, algorithm
from dsp.lab.mutex.simulator import simulate

__all__ = ["EXPERIMENTS", "THESIS", "Figure", "Job", "Study", "jobs_of", "measure", "run_study"]

EXPERIMENTS = ("occupancy", "traffic", "latency", "burst")
"""What can be run; ``burst`` is not in the thesis: all first requests within 5 ms."""

THESIS: dict[tuple[str, str, str], float] = {
    ("traffic", "ra2", "12 nodes, 10 entries"): 3445,
    ("traffic", "ra2", "12 nodes, 18 entries"): 5176,
    ("traffic", "ra2", "12 nodes, 50 entries"): 15843,
    ("traffic", "ra2", "24 nodes, 10 entries"): 13395,
    ("traffic", "ra1", "12 nodes, 10 entries"): 2640,
    ("traffic", "published", "12 nodes, 10 entries"): 2065,
    ("traffic", "published", "12 nodes, 18 entries"): 3748,
    ("traffic", "published", "12 nodes, 50 entries"): 10327,
    ("traffic", "published", "24 nodes, 10 entries"): 8071,
    ("latency", "published", "P 1 s, inCS 1 s"): 0.013,
    ("latency", "published", "P 2 s, inCS 2 s"): 0.013,
    ("latency", "published", "P 5 s, inCS 5 s"): 0.013,
}
"""Numbers that the thesis prints: messages, and "about 13 ms" where P is at least inCS."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one experiment."""

    experiment: str
    algorithm: str
    case: str
    setting: Setting
    seed: int


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of an experiment, over all seeds.

    Attributes:
        experiment: which one.
        algorithm: of what.
        case: the parameters, in words.
        name: what is measured.
        mean: over the seeds.
        deviation: of the values over the seeds.
        thesis: the thesis's number, where it prints one.
    """

    experiment: str
    algorithm: str
    case: str
    name: str
    mean: float
    deviation: float
    thesis: float | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """What a study found."""

    seeds: tuple[int, ...]
    open_parameters: dict[str, str]
    figures: tuple[Figure, ...]

    def mean(self, experiment: str, algorithm: str, case: str, name: str) -> float:
        """Give one figure.

        Raises:
            KeyError: it was not measured.
        """
        wanted = (experiment, algorithm, case, name)
        for one in self.figures:
            if (one.experiment, one.algorithm, one.case, one.name) == wanted:
                return one.mean
        raise KeyError(wanted)


def _cases(experiment: str) -> Iterable[tuple[str, Setting]]:
    match experiment:
        case "occupancy":
            yield "P 300 ms, inCS 300 ms", Setting(pause=0.3, stay=0.3, entries=25)
        case "traffic":
            for nodes, entries in ((12, 10), (12, 18), (12, 50), (6, 10), (18, 10), (24, 10)):
                yield f"{nodes} nodes, {entries} entries", Setting(nodes=nodes, entries=entries)
        case "latency":
            for stay in (1.0, 2.0, 5.0):
                for share in (0.0, 0.5, 1.0, 1.5, 2.0):
                    pause = share * stay
                    setting = Setting(pause=pause, stay=stay, entries=25)
                    yield f"P {pause:g} s, inCS {stay:g} s", setting
        case _:
            yield "within 5 ms", Setting(first=0.005, entries=3, pause=0.0, stay=0.01)


def jobs_of(
    experiments: Sequence[str], algorithms: Sequence[str], seeds: Sequence[int]
) -> list[Job]:
    """List all runs of a study.

    Raises:
        ConfigError: there is no such algorithm.
    """
    for name in algorithms:
        algorithm(name)
    return [
        Job(experiment, name, case, setting, seed)
        for experiment in experiments
        for case, setting in _cases(experiment)
        for name in algorithms
        for seed in seeds
    ]


def measure(job: Job) -> dict[str, float]:
    """Run one job and give its figures by name."""
    trace = simulate(job.setting, job.algorithm, job.seed)
    figures = {"stuck": float(trace.stuck), "overlaps": float(trace.overlaps)}
    entries = sum(map(len, trace.waits.values()))
    match job.experiment:
        case "occupancy":
            figures["inside"] = trace.occupancy
        case "traffic":
            figures["messages"] = float(trace.messages)
            figures["per entry"] = trace.messages / max(1, entries)
        case "latency":
            # As the thesis does, without the first five of each node.
            late = [wait for waits in trace.waits.values() for wait in waits[5:]]
            if late:  # the published algorithm may be stuck before
                figures["wait"] = fmean(late)
            figures["round trip"] = fmean(trace.round_trips)
    return figures


def run_study(
    experiments: Sequence[str],
    algorithms: Sequence[str],
    seeds: Sequence[int],
    *,
    workers: int = 1,
    progress: Callable[[str], None] = lambda what: None,
) -> Study:
    """Run experiments for all algorithms and seeds.

    Args:
        experiments: some of ``EXPERIMENTS``.
        algorithms: keys of ``ALGORITHMS``.
        seeds: one run for each.
        workers: processes.
        progress: called after each run, with what it was.

    Raises:
        ConfigError: there is no such algorithm.
    """
    jobs = jobs_of(experiments, algorithms, seeds)
    found: dict[Job, dict[str, float]] = {}
    for job, figures in _measured(jobs, workers):
        found[job] = figures
        progress(f"{job.experiment}, {job.algorithm}")
    grouped: dict[tuple[str, str, str, str], list[float]] = {}
    for job in jobs:
        for name, value in found[job].items():
            key = (job.experiment, job.algorithm, job.case, name)
            grouped.setdefault(key, []).append(value)
    summary = tuple(
        Figure(*key, fmean(values), pstdev(values), _thesis(*key))
        for key, values in grouped.items()
    )
    return Study(tuple(seeds), dict(OPEN_PARAMETERS), summary)


def _thesis(experiment: str, name: str, case: str, figure: str) -> float | None:
    if figure not in ("messages", "wait"):
        return None
    # What the thesis calls 2-FGME is the published algorithm; ours stands beside the same number.
    known = "published" if name == "2fgme" else name
    return THESIS.get((experiment, known, case))


def _measured(jobs: Sequence[Job], workers: int) -> Iterable[tuple[Job, dict[str, float]]]:
    if workers <= 1:
        yield from ((job, measure(job)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(measure, job): job for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
