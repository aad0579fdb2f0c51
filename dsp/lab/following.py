"""The picture of paper 000, figure 4.8: how the instances of an operator follow the load."""

from pathlib import Path
from typing import TYPE_CHECKING

from dsp.errors import MissingExtraError
from dsp.stream.history import History, Line
from dsp.stream.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "most_elastic", "require_matplotlib"]


def require_matplotlib() -> None:
    """Make sure that pictures can be drawn.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtraError("lab", "drawing plots") from error
    matplotlib.use("Agg")


def most_elastic(history: History, summary: Summary) -> str:
    """The operator whose number of instances changed most often."""
    return max(summary.operators, key=lambda name: len(history.instances(name)))


def draw(path: Path, history: History, operator: str) -> None:
    """Draw a run: send rate of each instance, input rate, number of instances, over time.

    Args:
        path: where to; its suffix decides the format.
        history: of the run.
        operator: whose instances are shown.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import pyplot

    figure, (top, middle, bottom) = pyplot.subplots(
        3, sharex=True, figsize=(9, 6.5), layout="constrained", height_ratios=(3, 2, 2)
    )
    _rates(top, history, operator)
    _paint(middle, history.input_rate(), "tab:blue", "records/s into the pipeline")
    line = history.instances(operator)
    _paint(bottom, [*line, (history.last, line[-1][1])] if line else line, "tab:red", "", step=True)
    bottom.set_ylabel(f"instances of {operator}")
    bottom.set_xlabel("seconds")
    for axes in (top, middle, bottom):
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def _rates(axes: "Axes", history: History, operator: str) -> None:
    for line in history.rates(operator).values():
        axes.plot(*zip(*line, strict=True), linewidth=0.8)
    axes.set_ylabel("records/s of each instance")


def _paint(axes: "Axes", line: Line, colour: str, label: str, *, step: bool = False) -> None:
    if line:
        axes.plot(*zip(*line, strict=True), color=colour, drawstyle="steps-post" if step else None)
    axes.set_ylabel(label)
