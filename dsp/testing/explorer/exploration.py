"""The front door: explore a model, in one process or in several."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from dsp.errors import ConfigError
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.parallel import Team
from dsp.testing.explorer.result import Progress, Result, Violation
from dsp.testing.explorer.search import Finding, Level, Shard, patient_collector, retrace

__all__ = ["explore"]


class _Crew(Protocol):
    """Whoever does the work: one shard, or a team of processes with a shard each."""

    def start(self) -> Level: ...
    def expand(self, depth: int) -> Level: ...
    def parent(self, link: int) -> tuple[int, int]: ...


@contextmanager
def _crew(model: AnyModel, workers: int, *, links: bool) -> Iterator[_Crew]:
    if workers == 1:
        yield Shard(model, links=links)
        return
    with Team(model, workers, links=links) as team:
        yield team


def _way(crew: _Crew, finding: Finding) -> list[int]:
    """Fingerprints from the start (left out) to where the finding is."""
    steps = finding.length - (finding.flaw.action is not None)
    way = []
    link = finding.link
    for _ in range(steps):
        fingerprint, link = crew.parent(link)
        way.append(fingerprint)
    return way[::-1]


def explore(
    model: AnyModel,
    *,
    workers: int = 1,
    max_states: int = 10_000_000,
    max_depth: int | None = None,
    keep_traces: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Result:
    """Try every interleaving of a model, and report a shortest way to a fault, if there is one.

    States are visited level by level, so the first fault found is at the end of a shortest trace;
    the level in which it was found is completed, so that all figures and the fault that is
    reported are the same however many processes work on it.

    Args:
        model: what to explore.
        workers: processes to divide this one exploration over. Messages, states and machines must
            then be picklable. Worth it from some 100,000 states upwards, or with costly machines.
        max_states: stop, incomplete, after the level in which so many states were found.
        max_depth: stop, incomplete, after so many steps from the start.
        keep_traces: without, 4 bytes for each state are saved and a fault comes without its trace.
        progress: called after each level.

    Returns:
        Figures, and the fault if there is one.
    """
    if workers < 1:
        raise ConfigError(f"workers is {workers}; at least 1 is needed")
    began = time.perf_counter()
    states = transitions = quiet = cut = depth = 0
    with patient_collector(), _crew(model, workers, links=keep_traces) as crew:
        level = crew.start()
        states = frontier = level.new
        while frontier and level.finding is None:
            if states >= max_states or (max_depth is not None and depth >= max_depth):
                break
            level = crew.expand(depth)
            transitions += level.transitions
            quiet += level.quiet
            cut += level.cut
            states += level.new
            frontier = level.new
            depth += frontier > 0
            if progress is not None:
                seconds = time.perf_counter() - began
                progress(Progress(depth, states, transitions, frontier, seconds))
        violation = None
        if level.finding is not None:
            flaw = level.finding.flaw
            if keep_traces:
                violation = retrace(model, _way(crew, level.finding), flaw)
            else:
                violation = Violation(flaw.kind, flaw.message + " (no trace was kept)", ())
    seconds = time.perf_counter() - began
    complete = not frontier and violation is None
    result = Result(states, transitions, depth, quiet, cut, seconds, complete, violation)
    return replace(result, name=type(model).__name__)
