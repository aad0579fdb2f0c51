"""What one run of a job gave: when records reached the sink, and what each replica did."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean, median

from dsp.lab.timed import longest_gap
from dsp.stream.history import Line

__all__ = ["Flow", "Figures", "figures_of"]

# Shares are compared while nobody comes or goes, for so many seconds at least; the first of them
# is left out, since queues fill then.
LEAST_CALM = 3.0
UNSETTLED = 1.0


@dataclass(slots=True)
class Flow:
    """A run. Times are in seconds from the first record at the sink on.

    Attributes:
        name: what shared out the records.
        given: records that the source gave.
        arrivals: (time, records) of each write of the sink.
        ids: identities of the records that reached the sink.
        repeats: records that came there again.
        input_rate: records per second of the source.
        instances: number of instances of every operator with a body.
        rates: records per second of each replica of the operator that is looked at.
        rebalances: (begin, end) of every time in which a group shared out its partitions anew.
        joins: seconds that each newcomer waited for its first partitions.
    """

    name: str
    given: int
    arrivals: list[tuple[float, int]]
    ids: set[int]
    repeats: int
    input_rate: Line
    instances: dict[str, Line]
    rates: dict[str, Line]
    rebalances: list[tuple[float, float]] = field(default_factory=list)
    joins: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run.

    Attributes:
        given: records that the source gave.
        taken: different records that reached the sink.
        lost: records that had to reach it and did not.
        repeats: records that came again.
        seconds: from the first record at the sink to the last.
        instances: of the operator that is looked at, at most.
        changes: how often one came or went.
        rebalances: how often partitions were shared out anew among its replicas.
        rebalancing: seconds that this took, all together.
        join: the longest wait of a newcomer for its first partitions; None where there are none.
        stall: the longest time without a record at the sink.
        uneven: rate of the busiest replica over the mean, while nobody came or went.
        silence: the longest time in which a replica that was there sent nothing.
    """

    given: int
    taken: int
    lost: int
    repeats: int
    seconds: float
    instances: int
    changes: int
    rebalances: int
    rebalancing: float
    join: float | None
    stall: float
    uneven: float
    silence: float


def figures_of(flow: Flow, operator: str, wanted: set[int]) -> Figures:
    """Give the figures of a run.

    Args:
        flow: the run.
        operator: the one that is looked at.
        wanted: identities of the records that have to reach the sink.
    """
    line = flow.instances[operator]
    return Figures(
        given=flow.given,
        taken=len(flow.ids),
        lost=len(wanted - flow.ids),
        repeats=flow.repeats,
        seconds=flow.arrivals[-1][0] - flow.arrivals[0][0] if flow.arrivals else 0.0,
        instances=int(max((count for _, count in line), default=0)),
        changes=sum(1 for time, _ in line if time > 0),
        rebalances=len(flow.rebalances),
        rebalancing=sum(end - begin for begin, end in flow.rebalances),
        join=max(flow.joins, default=None),
        stall=longest_gap(flow.arrivals),
        uneven=_mean_uneven(flow, operator),
        silence=max((_silence(line, _end(flow)) for line in flow.rates.values()), default=0.0),
    )


def _calm(flow: Flow, operator: str) -> Iterator[tuple[float, float]]:
    """The times in which the same instances were there."""
    if not flow.arrivals:
        return
    end = _end(flow)
    moments = [0.0, *(time for time, _ in flow.instances[operator] if 0 < time < end), end]
    for before, after in pairwise(moments):
        if after - before >= LEAST_CALM:
            yield before + UNSETTLED, after


def _end(flow: Flow) -> float:
    """When the source had no more: what is left over is not shared out any more."""
    return flow.input_rate[-1][0] if flow.input_rate else flow.arrivals[-1][0]


def _mean_uneven(flow: Flow, operator: str) -> float:
    spans = [*_calm(flow, operator)]
    total = sum(end - begin for begin, end in spans)
    if not total:
        return 1.0
    return sum((end - begin) * _uneven(flow, begin, end) for begin, end in spans) / total


def _silence(line: Line, end: float) -> float:
    """The longest time without a record between two with some."""
    busy = [time for time, rate in line if rate > 0 and time <= end]
    steps = [after - before for (before, _), (after, _) in pairwise(line)]
    usual = median(steps) if steps else 0.0
    return max((after - before - usual for before, after in pairwise(busy)), default=0.0)


def _uneven(flow: Flow, begin: float, end: float) -> float:
    """How much more than the mean the busiest replica did."""
    means = []
    for line in flow.rates.values():
        inside = [rate for time, rate in line if begin <= time <= end]
        if inside:
            means.append(fmean(inside))
    return max(means) / fmean(means) if means and any(means) else 1.0
