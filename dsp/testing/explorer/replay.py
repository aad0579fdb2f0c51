"""Take the steps of a trace again, and make long traces shorter."""

from collections.abc import Iterable, Sequence

from dsp.errors import ConfigError
from dsp.testing.explorer.actions import Action, Step
from dsp.testing.explorer.engine import Engine, Flaw
from dsp.testing.explorer.model import AnyModel
from dsp.testing.explorer.result import Violation
from dsp.testing.explorer.script import Snapshot

__all__ = ["replay", "rerun", "shorten", "tell_story"]


def _actions(trace: Iterable[Step | Action]) -> list[Action]:
    return [item.action if isinstance(item, Step) else item for item in trace]


def replay(model: AnyModel, trace: Iterable[Step | Action]) -> list[Snapshot]:
    """Take the steps of a trace again, to look at the states on the way.

    Args:
        model: the model that the trace is of.
        trace: steps (``violation.trace``, or with ``violation.cycle`` after it) or bare actions.

    Returns:
        The state at the start and after each step. A last step that breaks, because a machine
        raises in it, leaves the state as it was.

    Raises:
        ConfigError: a step is not possible where the trace says.
    """
    engine = Engine(model)
    state, fingerprint = engine.initial()
    seen = [engine.snapshot(state)]
    for number, action in enumerate(_actions(trace), 1):
        found = engine.successors(state, fingerprint)
        possible = [item[0] for item in found] + [flaw.action for flaw in engine.flaws]
        if action not in possible:
            raise ConfigError(f"step {number} of the trace is not possible there: {action}")
        _, state, fingerprint = engine.explain(state, fingerprint, action)
        seen.append(engine.snapshot(state))
    return seen


def rerun(engine: Engine, actions: Sequence[Action]) -> tuple[list[Action], Flaw | None]:
    """Take those of the actions that are possible, until something is wrong.

    Returns:
        The actions taken, and what is wrong after them.
    """
    state, fingerprint = engine.initial()
    taken: list[Action] = []
    flaw = engine.flaw_in(state)
    position = 0
    while flaw is None:
        found = engine.successors(state, fingerprint)
        flaws = {item.action: item for item in engine.flaws}
        if not found and not flaws:
            return taken, None if engine.cut else engine.flaw_at_end(state)
        following = {action: (after, total) for action, after, total in found}
        while position < len(actions):
            action = actions[position]
            position += 1
            if action in flaws:
                taken.append(action)
                return taken, flaws[action]
            if action in following:
                taken.append(action)
                state, fingerprint = following[action]
                flaw = engine.flaw_in(state)
                break
        else:
            return taken, None
    return taken, flaw


def shorten(model: AnyModel, actions: Sequence[Action], flaw: Flaw) -> list[Action]:
    """Leave out steps as long as the same kind of fault comes out, largest pieces first.

    Args:
        model: the model.
        actions: a run that ends in the fault.
        flaw: the fault.
    """
    engine = Engine(model)
    best = list(actions)
    size = max(1, len(best) // 2)
    while True:
        start, shorter = 0, False
        while start < len(best):
            attempt, found = rerun(engine, best[:start] + best[start + size :])
            if found is not None and found.kind is flaw.kind and len(attempt) < len(best):
                best, shorter = attempt, True
            else:
                start += size
        if size == 1 and not shorter:
            return best
        size = max(1, size // 2)


def tell_story(model: AnyModel, actions: Sequence[Action], flaw: Flaw) -> Violation:
    """The violation at the end of a run, with every step written down."""
    engine = Engine(model)
    state, fingerprint = engine.initial()
    steps = []
    for action in actions:
        step, state, fingerprint = engine.explain(state, fingerprint, action)
        steps.append(step)
    return Violation(flaw.kind, flaw.message, tuple(steps))
