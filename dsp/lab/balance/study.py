"""The comparison of ways to choose an instance, and how fast they follow a change."""

import multiprocessing
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean

from dsp.errors import ConfigError
from dsp.lab.balance.setting import OPEN_PARAMETERS, Setting, Stream, make_stream
from dsp.lab.balance.simulator import STRATEGIES, Outcome, simulate
from dsp.lab.balance.whole import WHOLE, simulate_whole

__all__ = ["Cell", "Job", "Recovery", "Study", "Summary", "jobs_of", "measure", "run_study"]

# What the grouping without a key is compared with that has the same room to send to.
TURNS = "keyless-turns"
SKEWS = (0.5, 1.0, 1.5, 2.0)
# Records whose mean is looked at to see whether a strategy is over a change.
WINDOW = 256
# It is, when it is no further from the omniscient scheduler than before, by this much, for so many.
NEAR, CALM = 1.25, 4
CHANGES = {
    "costs": Setting(load=0.8, changes=True),
    "slow": Setting(load=0.6, slows=10.0),
}
"""From the middle on: every value has a new cost; the first instance is ten times slower."""


@dataclass(frozen=True, slots=True)
class Job:
    """All strategies on one stream."""

    change: str
    setting: Setting
    strategies: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Cell:
    """Completion times of one strategy in one setting, over all seeds.

    Attributes:
        mean: seconds, of all records, averaged over seeds.
        p99: seconds.
        of_round_robin: mean as a share of round-robin's, paired by seed (geometric mean).
        p99_of_round_robin: the same of p99.
        of_omniscient: mean as a multiple of the omniscient scheduler's.
        p99_of_omniscient: the same of p99.
        of_turns: mean as a share of ``keyless-turns``, which has the same room to send to; None if
            that was not run.
        p99_of_turns: the same of p99.
        left: records after which OSG left round-robin, on average; None if it never did.
    """

    instances: int
    skew: float
    load: float
    strategy: str
    mean: float
    p99: float
    of_round_robin: float
    p99_of_round_robin: float
    of_omniscient: float
    p99_of_omniscient: float
    of_turns: float | None
    p99_of_turns: float | None
    left: float | None


@dataclass(frozen=True, slots=True)
class Recovery:
    """How soon one strategy is over a change.

    Attributes:
        records: after the change until it is as near to the omniscient scheduler as before,
            median over the seeds in which it is at all.
        recovered: share of seeds in which it is.
        after: mean after the change, as a multiple of the omniscient scheduler's.
    """

    change: str
    strategy: str
    records: float | None
    recovered: float
    after: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What is worst for a strategy, over all cells, and its mean.

    Attributes:
        of_round_robin: largest ratio of mean times to round-robin's.
        p99_of_round_robin: the same of p99.
        of_osg: largest ratio to OSG's.
        p99_of_osg: the same of p99.
        of_turns: largest ratio to the one of turns without a key; None if that was not run.
        p99_of_turns: the same of p99.
        of_omniscient: geometric mean of the ratios to the omniscient scheduler's.
        worst_of_omniscient: the largest of them.
    """

    strategy: str
    of_round_robin: float
    p99_of_round_robin: float
    of_osg: float
    p99_of_osg: float
    of_turns: float | None
    p99_of_turns: float | None
    of_omniscient: float
    worst_of_omniscient: float


@dataclass(frozen=True, slots=True)
class Study:
    """What a study found."""

    seeds: tuple[int, ...]
    records: int
    open_parameters: dict[str, str]
    cells: tuple[Cell, ...]
    recoveries: tuple[Recovery, ...]
    summaries: tuple[Summary, ...]


# What is kept of a run: mean, p99, when OSG left round-robin, and the means of windows.
Kept = tuple[float, float, int | None, tuple[float, ...]]
Found = dict[Job, dict[str, Kept]]


def jobs_of(
    strategies: Sequence[str],
    instances: Sequence[int],
    loads: Sequence[float],
    seeds: Sequence[int],
    *,
    records: int,
    changes: bool,
) -> list[Job]:
    """List the streams of a study.

    Raises:
        ConfigError: there is no such strategy.
    """
    known = (*STRATEGIES, *WHOLE)
    for name in strategies:
        if name not in known:
            raise ConfigError(f"no strategy {name!r}; there are {', '.join(known)}")
    # Everything is compared with these two.
    chosen = tuple(dict.fromkeys(("round-robin", *strategies, "omniscient")))
    settings = [
        ("", Setting(instances=k, skew=skew, load=load, records=records))
        for k in instances
        for load in loads
        for skew in SKEWS
    ]
    if changes:
        settings += [(name, replace(each, records=records)) for name, each in CHANGES.items()]
    return [Job(change, setting, chosen, seed) for change, setting in settings for seed in seeds]


def measure(job: Job) -> dict[str, Kept]:
    """Let every strategy run on the stream of a job."""
    stream = make_stream(job.setting, job.seed)
    return {name: _kept(_run(job.setting, name, stream)) for name in job.strategies}


def _run(setting: Setting, strategy: str, stream: Stream) -> Outcome:
    run = simulate_whole if strategy in WHOLE else simulate
    return run(setting, strategy, stream)


def _kept(outcome: Outcome) -> Kept:
    times = outcome.times
    windows = [fmean(times[i : i + WINDOW]) for i in range(0, len(times), WINDOW)]
    return outcome.mean, outcome.p99, outcome.left, tuple(windows)


def run_study(
    jobs: Sequence[Job],
    *,
    workers: int = 1,
    progress: Callable[[str], None] = lambda what: None,
) -> Study:
    """Run all jobs and put together what they found.

    Args:
        jobs: of ``jobs_of``.
        workers: processes.
        progress: called after each, with what it was.
    """
    found: Found = {}
    for job, kept in _measured(jobs, workers):
        found[job] = kept
        progress(job.change or f"k {job.setting.instances}, load {job.setting.load:g}")
    ordered = {job: found[job] for job in jobs}
    cells = tuple(_cells({job: kept for job, kept in ordered.items() if not job.change}))
    return Study(
        tuple(dict.fromkeys(job.seed for job in jobs)),
        jobs[0].setting.records if jobs else 0,
        dict(OPEN_PARAMETERS),
        cells,
        tuple(_recoveries({job: kept for job, kept in ordered.items() if job.change})),
        tuple(_summaries(cells)),
    )


def _cells(found: Found) -> Iterable[Cell]:
    for setting in dict.fromkeys(job.setting for job in found):
        runs = [kept for job, kept in found.items() if job.setting == setting]
        for name in runs[0]:
            left = [run[name][2] for run in runs]
            known = [each for each in left if each is not None]
            with_turns = TURNS in runs[0]
            yield Cell(
                setting.instances,
                setting.skew,
                setting.load,
                name,
                fmean(run[name][0] for run in runs),
                fmean(run[name][1] for run in runs),
                _ratio((run[name][0], run["round-robin"][0]) for run in runs),
                _ratio((run[name][1], run["round-robin"][1]) for run in runs),
                _ratio((run[name][0], run["omniscient"][0]) for run in runs),
                _ratio((run[name][1], run["omniscient"][1]) for run in runs),
                _ratio((run[name][0], run[TURNS][0]) for run in runs) if with_turns else None,
                _ratio((run[name][1], run[TURNS][1]) for run in runs) if with_turns else None,
                fmean(known) if len(known) == len(left) else None,
            )


def _ratio(pairs: Iterable[tuple[float, float]]) -> float:
    return exp(fmean(log(one / other) for one, other in pairs))


def _recoveries(found: Found) -> Iterable[Recovery]:
    for change in dict.fromkeys(job.change for job in found):
        runs = [kept for job, kept in found.items() if job.change == change]
        for name in runs[0]:
            soon = [_recovered(run[name][3], run["omniscient"][3]) for run in runs]
            known = sorted(each for each in soon if each is not None)
            after = [
                (fmean(_second_half(run[name][3])), fmean(_second_half(run["omniscient"][3])))
                for run in runs
            ]
            yield Recovery(
                change,
                name,
                float(known[len(known) // 2]) if known else None,
                len(known) / len(soon),
                _ratio(after),
            )


def _second_half(values: Sequence[float]) -> Sequence[float]:
    return values[len(values) // 2 :]


def _recovered(windows: Sequence[float], ideal: Sequence[float]) -> int | None:
    ratios = [one / other for one, other in zip(windows, ideal, strict=True)]
    middle = len(ratios) // 2
    usual = fmean(ratios[middle // 2 : middle])
    for place in range(middle, len(ratios) - CALM + 1):
        if all(ratio <= NEAR * usual for ratio in ratios[place : place + CALM]):
            return (place - middle) * WINDOW
    return None


def _summaries(cells: Sequence[Cell]) -> Iterable[Summary]:
    osg = {(c.instances, c.skew, c.load): c for c in cells if c.strategy == "osg"}
    for name in dict.fromkeys(cell.strategy for cell in cells):
        mine = [cell for cell in cells if cell.strategy == name]
        pairs = [(c, osg.get((c.instances, c.skew, c.load), c)) for c in mine]
        yield Summary(
            name,
            max(cell.of_round_robin for cell in mine),
            max(cell.p99_of_round_robin for cell in mine),
            max(c.of_round_robin / other.of_round_robin for c, other in pairs),
            max(c.p99_of_round_robin / other.p99_of_round_robin for c, other in pairs),
            max((c.of_turns for c in mine if c.of_turns is not None), default=None),
            max((c.p99_of_turns for c in mine if c.p99_of_turns is not None), default=None),
            exp(fmean(log(cell.of_omniscient) for cell in mine)),
            max(cell.of_omniscient for cell in mine),
        )


def _measured(jobs: Sequence[Job], workers: int) -> Iterable[tuple[Job, dict[str, Kept]]]:
    if workers <= 1:
        yield from ((job, measure(job)) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = {pool.submit(measure, job): job for job in jobs}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
