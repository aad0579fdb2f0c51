"""Many runs: every rule on the same loads, over many seeds, in parallel processes."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from random import Random
from statistics import fmean

from dsp.errors import ConfigError
from dsp.lab.scaling.loads import make_loads
from dsp.lab.scaling.metrics import Figures, measure, percentile
from dsp.lab.scaling.setting import OPEN_PARAMETERS, Setting
from dsp.lab.scaling.simulator import OperatorTrace, Rule, Simulation
from dsp.scaling.deciders import DECIDERS, Decider, make_decider
from dsp.scaling.deciders.probabilistic import Literal

__all__ = ["RULES", "Summary", "Study", "simulate", "run_study", "PAPER"]


def _named(name: str) -> Rule:
    def make(random: Random, setting: Setting) -> Decider:
        return make_decider(name, random, setting.thresholds, setting.proactive)

    return make


def _literal(random: Random, setting: Setting) -> Decider:
    return Literal(random, setting.thresholds)


RULES: dict[str, Rule] = {name: _named(name) for name in DECIDERS} | {"literal": _literal}
"""The rules that can be compared; ``literal`` is the papers' pseudo-code as printed."""

PAPER = {
    ("brownian", "probabilistic"): {
        "error_published": 0.149,
        "error": 0.161,
        "full": 0.976,
        "throughput": 0.9955,
        "messages": 40.0,
    },
    ("brownian", "centralised"): {
        "error_published": 0.136,
        "full": 0.967,
        "throughput": 0.9932,
        "messages": 49.0,
    },
    ("brownian", "literal"): {"error_published": 0.761},
    ("doubling", "probabilistic"): {"settling": 5.7},
    ("halving", "probabilistic"): {"settling": 7.2},
    ("sinusoidal", "probabilistic"): {"full": 0.950},
    ("sinusoidal", "secure"): {"full": 0.970},
}
"""Reference figures: the papers print curves, these are re-measurements of their set-up."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One figure of one rule over all seeds."""

    mean: float
    p5: float
    p95: float
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """What a study found.

    Attributes:
        setting: its parameters.
        seeds: the seeds of its runs.
        open_parameters: what the papers leave open, and how it is settled here.
        rules: for each rule, each figure.
    """

    setting: dict[str, object]
    seeds: tuple[int, ...]
    open_parameters: dict[str, str]
    rules: dict[str, dict[str, Summary]]


def simulate(setting: Setting, rule: str, seed: int) -> list[OperatorTrace]:
    """Run one simulation.

    Raises:
        ConfigError: there is no such rule or load.
    """
    if rule not in RULES:
        raise ConfigError(f"no rule {rule!r}; there are {', '.join(RULES)}")
    return Simulation(setting, RULES[rule], make_loads(setting, seed), seed).run()


def _figures(setting: Setting, rule: str, seed: int) -> tuple[str, int, Figures]:
    return rule, seed, measure(setting, simulate(setting, rule, seed))


def run_study(
    setting: Setting,
    rules: Sequence[str],
    seeds: Sequence[int],
    *,
    workers: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Study:
    """Run every rule on every seed.

    Args:
        setting: the parameters.
        rules: keys of ``RULES``.
        seeds: one run for each.
        workers: processes.
        progress: called after each run.

    Raises:
        ConfigError: there is no such rule or load.
    """
    for rule in rules:
        if rule not in RULES:
            raise ConfigError(f"no rule {rule!r}; there are {', '.join(RULES)}")
    make_loads(replace(setting, steps=1), 0)
    found: dict[str, dict[int, Figures]] = {rule: {} for rule in rules}
    for rule, seed, figures in _runs(setting, rules, seeds, workers):
        found[rule][seed] = figures
        progress()
    summaries = {
        rule: _summaries(setting.load, rule, [found[rule][seed] for seed in seeds])
        for rule in rules
    }
    values = asdict(setting)
    open_parameters = {
        name: f"{values[name]:g}, {text}" if name in values else text
        for name, text in OPEN_PARAMETERS.items()
    }
    return Study(values, tuple(seeds), open_parameters, summaries)


def _runs(
    setting: Setting, rules: Sequence[str], seeds: Sequence[int], workers: int
) -> Iterator[tuple[str, int, Figures]]:
    jobs = [(setting, rule, seed) for seed in seeds for rule in rules]
    if workers <= 1:
        yield from (_figures(*job) for job in jobs)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for future in as_completed([pool.submit(_figures, *job) for job in jobs]):
            yield future.result()


def _summaries(load: str, rule: str, figures: Sequence[Figures]) -> dict[str, Summary]:
    reference = PAPER.get((load, rule), {})
    values: dict[str, list[float]] = {}
    for one in figures:
        for name, value in asdict(one).items():
            values.setdefault(name, []).extend(value if isinstance(value, tuple) else [value])
    return {
        name: Summary(
            fmean(all_values),
            percentile(all_values, 0.05),
            percentile(all_values, 0.95),
            reference.get(name),
        )
        for name, all_values in values.items()
        if all_values
    }
