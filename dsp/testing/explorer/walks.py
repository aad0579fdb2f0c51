"""Random walks, for sizes that cannot be explored in full."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from dsp.testing.explorer.actions import Action
from dsp.testing.explorer.engine import Engine, Flaw
from dsp.testing.explorer.many import run_in_processes
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.replay import rerun, shorten, tell_story
from dsp.testing.explorer.result import Result
from dsp.testing.explorer.space import Broken

__all__ = ["random_walks"]


@dataclass(frozen=True, slots=True)
class _Walk:
    actions: tuple[Action, ...]
    transitions: int
    quiet: bool
    cut: bool
    flaw: Flaw | None


def _walk(engine: Engine, random: Random, steps: int) -> _Walk:
    try:
        state, fingerprint = engine.initial()
    except Broken as broken:
        return _Walk((), 0, False, False, Flaw(broken.kind, broken.message))
    actions: list[Action] = []
    flaw = engine.flaw_in(state)
    while flaw is None and len(actions) < steps:
        found = engine.successors(state, fingerprint)
        if engine.flaws:
            flaw = random.choice(engine.flaws)
            assert flaw.action is not None
            return _Walk((*actions, flaw.action), len(actions), False, False, flaw)
        if not found:
            end = None if engine.cut else engine.flaw_at_end(state)
            return _Walk(tuple(actions), len(actions), not engine.cut, engine.cut, end)
        action, state, fingerprint = found[int(random.random() * len(found))]
        actions.append(action)
        flaw = engine.flaw_in(state)
    return _Walk(tuple(actions), len(actions), False, False, flaw)


def _share(
    model: AnyModel, seeds: Sequence[str], steps: int
) -> list[tuple[int, bool, bool, tuple[Action, ...], Flaw | None]]:
    engine = Engine(model)
    done = []
    for seed in seeds:
        walk = _walk(engine, Random(seed), steps)
        actions = walk.actions if walk.flaw is not None else ()
        done.append((walk.transitions, walk.quiet, walk.cut, actions, walk.flaw))
        if walk.flaw is not None:
            break
    return done


def random_walks(
    model: AnyModel,
    *,
    seed: int | str,
    walks: int = 1000,
    steps: int = 1000,
    workers: int = 1,
    shortest: bool = True,
) -> Result:
    """Walk at random through a model, with the checks of ``explore`` on every state.

    Args:
        model: what to explore.
        seed: the walks are a function of it. Given the ``seed`` of a failed result, which is a
            string, that one walk is repeated.
        walks: how many walks, each from the start.
        steps: the length at which a walk is given up.
        workers: processes to divide the walks over; the outcome is the same for any number.
        shortest: leave out the steps of a failed walk that are not needed for its fault.

    Returns:
        Figures over all walks up to the first one that failed; ``states`` counts visits, and
        ``complete`` is never true.
    """
    began = time.perf_counter()
    seeds = [seed] if isinstance(seed, str) else [f"{seed}/{number}" for number in range(walks)]
    shares = [seeds[number::workers] for number in range(workers)]
    done = run_in_processes(
        [partial(_share, model, share, steps) for share in shares if share], workers
    )
    transitions = depth = quiet = cut = visits = 0
    violation, failed = None, None
    for number in range(len(seeds)):
        length, is_quiet, is_cut, actions, flaw = done[number % workers][number // workers]
        transitions += length
        visits += length + 1
        depth = max(depth, length)
        quiet += is_quiet
        cut += is_cut
        if flaw is not None:
            failed = seeds[number]
            if shortest and actions:
                actions = tuple(shorten(model, actions, flaw))
                flaw = rerun(Engine(model), actions)[1] or flaw
            violation = tell_story(model, actions, flaw)
            break
    seconds = time.perf_counter() - began
    name = type(model).__name__
    return Result(visits, transitions, depth, quiet, cut, seconds, False, violation, name, failed)
