"""Many runs: every strategy with every grouping on the same streams, in parallel processes."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from itertools import product
from statistics import fmean

from dsp.errors import ConfigError
from dsp.lab.dabs.real import run_in_world, run_on_processes
from dsp.lab.dabs.setting import GROUPINGS, OPEN_PARAMETERS, PAPER, STRATEGIES, Setting
from dsp.lab.dabs.simulator import Simulation, Trace
from dsp.lab.dabs.streams import STREAMS, VALUES
from dsp.lab.dabs.topologies import TOPOLOGIES

__all__ = [
    "Figures",
    "Cell",
    "Study",
    "Choice",
    "ENGINES",
    "chosen",
    "simulate",
    "run_study",
    "excess",
]

Figure = float | None


@dataclass(frozen=True, slots=True)
class Choice:
    """Which experiments to run: all combinations."""

    topologies: Sequence[str] = tuple(TOPOLOGIES)
    streams: Sequence[str] = tuple(STREAMS)
    values: Sequence[str] = tuple(VALUES)
    strategies: Sequence[str] = tuple(STRATEGIES)
    groupings: Sequence[str] = GROUPINGS


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run comes to; means over its tuples or its time.

    Attributes:
        late: share of tuples that were late.
        latency: seconds from the source to the end.
        instances: that scale, of all operators.
        most: instances of the critical operator.
        actions: instances created or sent away.
        lost: tuples that did not come to the end, or came twice.
    """

    late: float
    latency: float
    instances: float
    most: float
    actions: float
    lost: float

    @classmethod
    def of(cls, trace: Trace) -> "Figures":
        """Take the figures of a run."""
        return cls(
            late=trace.late_share,
            latency=trace.total_latency / max(1, trace.ended),
            instances=trace.seconds / trace.times[-1],
            most=max(trace.instances),
            actions=trace.actions,
            lost=trace.expected - trace.ended + 2 * trace.doubled,
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """An experiment with a strategy and a grouping: means over all seeds, beside the paper's."""

    topology: str
    stream: str
    values: str
    strategy: str
    grouping: str
    figures: Figures
    paper: Figure = None


@dataclass(frozen=True, slots=True)
class Study:
    """What a study found.

    Attributes:
        setting: parameters that all runs share.
        seeds: of the runs.
        open_parameters: what the paper leaves open, and how it is settled here.
        cells: one for each experiment, strategy and grouping.
        learning: shares that the paper prints for its learning baseline, which is not built.
    """

    setting: dict[str, object]
    seeds: tuple[int, ...]
    open_parameters: dict[str, str]
    cells: tuple[Cell, ...]
    learning: dict[str, float]


def chosen(setting: Setting, choice: Choice) -> list[Setting]:
    """Give the setting of every run of a seed.

    Raises:
        ConfigError: there is no such topology, stream, distribution, strategy or grouping.
    """
    for known, wanted, what in (
        (STREAMS, choice.streams, "stream"),
        (VALUES, choice.values, "values"),
    ):
        for name in wanted:
            if name not in known:
                raise ConfigError(f"no {what} {name!r}; there are {', '.join(known)}")
    return [
        replace(
            setting,
            topology=topology,
            stream=stream,
            values=values,
            strategy=strategy,
            grouping=grouping,
        )
        for topology, stream, values, strategy, grouping in product(
            choice.topologies,
            choice.streams,
            choice.values,
            choice.strategies,
            choice.groupings,
        )
    ]


def simulate(setting: Setting, seed: int, engine: str = "simulated") -> Trace:
    """Run one experiment.

    Args:
        setting: the experiment.
        seed: of everything that is drawn.
        engine: one of ``ENGINES``.
    """
    return ENGINES[engine](setting, seed)


def _simulated(setting: Setting, seed: int) -> Trace:
    return Simulation(setting, seed).run()


ENGINES: dict[str, Callable[[Setting, int], Trace]] = {
    "simulated": _simulated,
    "world": run_in_world,
    "processes": run_on_processes,
}
"""What an experiment runs on: a simulation, the engine in virtual time, or on this machine."""


def _figures(setting: Setting, seed: int, engine: str) -> tuple[Setting, Figures]:
    return setting, Figures.of(simulate(setting, seed, engine))


def run_study(
    setting: Setting,
    choice: Choice,
    seeds: Sequence[int],
    *,
    engine: str = "simulated",
    workers: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Study:
    """Run every combination on every seed.

    Args:
        setting: parameters that all runs share.
        choice: what is combined.
        seeds: one run of each combination for each.
        engine: what they run on, one of ``ENGINES``.
        workers: processes.
        progress: called after each run.

    Raises:
        ConfigError: a name or a parameter is wrong.
    """
    settings = chosen(setting, choice)
    if not settings or not seeds:
        raise ConfigError("nothing to run: name at least one of each kind, and a seed")
    found: dict[Setting, list[Figures]] = {each: [] for each in settings}
    for each, figures in _runs(settings, seeds, engine, workers):
        found[each].append(figures)
        progress()
    values = setting.describe()
    return Study(
        setting=values,
        seeds=tuple(seeds),
        open_parameters={
            name: f"{values[name]:g}, {text}" if name in values else text
            for name, text in OPEN_PARAMETERS.items()
        },
        cells=tuple(_cell(each, found[each]) for each in settings),
        learning={
            " ".join(cell): shares["learning"]
            for cell, shares in PAPER.items()
            if "learning" in shares
        },
    )


def _runs(
    settings: Sequence[Setting], seeds: Sequence[int], engine: str, workers: int
) -> Iterator[tuple[Setting, Figures]]:
    jobs = list(product(settings, seeds, (engine,)))
    if workers <= 1:
        yield from (_figures(*job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for future in as_completed([pool.submit(_figures, *job) for job in jobs]):
            yield future.result()


def _cell(setting: Setting, runs: Sequence[Figures]) -> Cell:
    means = {
        name: fmean(asdict(run)[name] for run in runs) for name in Figures.__dataclass_fields__
    }
    return Cell(
        setting.topology,
        setting.stream,
        setting.values,
        setting.strategy,
        setting.grouping,
        Figures(**means),
        PAPER.get(setting.cell, {}).get(setting.strategy),
    )


def excess(study: Study, one: tuple[str, str], others: Sequence[tuple[str, str]]) -> list[float]:
    """By how much one pair of strategy and grouping has more late tuples than the best of others.

    Args:
        study: where all of them were run.
        one: strategy and grouping.
        others: to compare with.

    Returns:
        For each experiment the difference of the shares; below 0 if the one is better than all.
    """
    shares: dict[tuple[str, str, str], dict[tuple[str, str], float]] = {}
    for cell in study.cells:
        experiment = shares.setdefault((cell.topology, cell.stream, cell.values), {})
        experiment[cell.strategy, cell.grouping] = cell.figures.late
    return [each[one] - min(each[other] for other in others) for each in shares.values()]
