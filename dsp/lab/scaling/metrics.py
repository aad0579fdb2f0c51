"""Figures of a run: accuracy, throughput, traffic, actions, reversals, settling."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from dsp.lab.scaling.loads import STEP_AT
from dsp.lab.scaling.setting import Setting
from dsp.lab.scaling.simulator import OperatorTrace

__all__ = ["Figures", "measure", "reversals", "settling", "percentile"]

SETTLED = 0.15


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run comes to, over all operators and time steps.

    Attributes:
        error: mean distance of the number of instances from the ideal, as a share of it; an
            instance counts until it is gone.
        error_published: the same where a leaver counts until its predecessors are silent, which
            is as long as in the published protocol.
        full: share of time steps in which the instances can process the whole load.
        throughput: mean share of the load that they can process.
        messages: per time step, all operators together.
        actions: instances created or sent away.
        reversals: actions that an opposite one undoes within two periods.
        settling: for loads with a step, time steps until the number of instances stays within
            15 % of the ideal; one value for each operator.
    """

    error: float
    error_published: float
    full: float
    throughput: float
    messages: float
    actions: int
    reversals: int
    settling: tuple[int, ...] = ()


def measure(setting: Setting, traces: Sequence[OperatorTrace]) -> Figures:
    """Give the figures of a run."""
    error, published, full, throughput = [], [], [], []
    for trace in traces:
        ideals = [setting.ideal(load) for load in trace.load]
        error += [abs(n / i - 1) for n, i in zip(trace.running, ideals, strict=True)]
        published += [abs(n / i - 1) for n, i in zip(trace.working, ideals, strict=True)]
        able = [n * setting.capacity for n in trace.working]
        full += [a >= load for a, load in zip(able, trace.load, strict=True)]
        throughput += [min(1.0, a / load) for a, load in zip(able, trace.load, strict=True)]
    window = 2 * setting.period
    stepped = setting.load in ("doubling", "halving")
    return Figures(
        error=fmean(error),
        error_published=fmean(published),
        full=fmean(full),
        throughput=fmean(throughput),
        messages=sum(sum(trace.messages) for trace in traces) / setting.steps,
        actions=sum(sum(trace.created) + sum(trace.left) for trace in traces),
        reversals=sum(reversals(trace.created, trace.left, window) for trace in traces),
        settling=tuple(settling(setting, trace) for trace in traces) if stepped else (),
    )


def reversals(created: Sequence[int], left: Sequence[int], window: int) -> int:
    """Count actions that an opposite one undoes within so many time steps, each action once."""
    open_actions: deque[tuple[int, int]] = deque()
    count = 0
    for step, (more, less) in enumerate(zip(created, left, strict=True)):
        while open_actions and step - open_actions[0][0] > window:
            open_actions.popleft()
        for sign in (1,) * more + (-1,) * less:
            match = next((entry for entry in open_actions if entry[1] == -sign), None)
            if match is None:
                open_actions.append((step, sign))
            else:
                open_actions.remove(match)
                count += 1
    return count


def settling(setting: Setting, trace: OperatorTrace) -> int:
    """Time steps from the change of the load until the operator is near the ideal and stays.

    An operator that strays again later, by the dice, has settled all the same: what counts is the
    first time that it is near for one whole period.
    """
    near = [
        abs(n / setting.ideal(load) - 1) <= SETTLED
        for n, load in zip(trace.working, trace.load, strict=True)
    ]
    for step in range(STEP_AT, len(near)):
        if all(near[step : step + setting.period]):
            return step - STEP_AT
    return len(near) - STEP_AT


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which a share of all values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
