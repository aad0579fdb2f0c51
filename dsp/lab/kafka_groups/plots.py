"""The picture of paper 000, figure 4.8, for both runs side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dsp.lab.following import require_matplotlib
from dsp.lab.kafka_groups.flow import Flow
from dsp.lab.timed import longest_gap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_flows"]


def draw_flows(path: Path, flows: Sequence[Flow], operator: str) -> None:
    """Draw send rates, input rate and number of replicas over time, a column for each run.

    Args:
        path: where to; its suffix decides the format.
        flows: the runs.
        operator: whose replicas are shown.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import pyplot

    figure, rows = pyplot.subplots(
        4,
        len(flows),
        sharex=True,
        sharey="row",
        squeeze=False,
        figsize=(6 * len(flows), 8),
        layout="constrained",
        height_ratios=(3, 2, 2, 2),
    )
    for column, flow in enumerate(flows):
        _draw(flow, operator, [row[column] for row in rows])
    for row, label in zip(
        rows,
        ("records/s of each replica", "records/s in", f"replicas of {operator}", "records/s out"),
        strict=True,
    ):
        row[0].set_ylabel(label)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _draw(flow: Flow, operator: str, axes: "Sequence[Axes]") -> None:
    rates, given, count, out = axes
    rates.set_title(f"{flow.name}: longest stall {longest_gap(flow.arrivals):.2f} s")
    for line in flow.rates.values():
        if line:
            rates.plot(*zip(*line, strict=True), linewidth=0.8)
    if flow.input_rate:
        given.plot(*zip(*flow.input_rate, strict=True), color="tab:blue")
    end = flow.arrivals[-1][0] if flow.arrivals else 0.0
    line = [point for point in flow.instances[operator] if point[0] <= end]
    if line:
        points = [*line, (end, line[-1][1])]
        count.plot(*zip(*points, strict=True), color="tab:red", drawstyle="steps-post")
    out.hist(
        [at for at, _ in flow.arrivals],
        weights=[records / 0.5 for _, records in flow.arrivals],
        bins=max(1, int(end / 0.5)),
        color="tab:green",
    )
    for begin, over in flow.rebalances:
        for each in axes:
            each.axvspan(begin, over, color="grey", alpha=0.3)
    for each in axes:
        each.grid(alpha=0.3)
        each.set_ylim(bottom=0)
    out.set_xlabel(
        "seconds; grey: the group shares out its partitions anew" if flow.rebalances else "seconds"
    )
