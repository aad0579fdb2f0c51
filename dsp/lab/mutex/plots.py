"""The figures of chapter 5, drawn from simulations."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dsp.errors import MissingExtraError
from dsp.lab.mutex.setting import Setting
from dsp.lab.mutex.simulator import Trace, simulate
from dsp.lab.mutex.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw"]


def draw(folder: Path, study: Study, algorithms: Sequence[str]) -> list[Path]:
    """Draw what a study has: occupancy over time (5.2 to 5.4), traffic (5.5, 5.6), waits (5.7 on).

    Args:
        folder: where the pictures go; it is created.
        study: the figures.
        algorithms: what to draw, of those that the study has.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtraError("lab", "drawing plots") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    have = {figure.experiment for figure in study.figures}
    written: list[Path] = []

    def picture(name: str, title: str) -> "Axes":
        axes: Axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")[1]
        axes.set_title(title)
        axes.grid(alpha=0.3)
        written.append(folder / f"mutex-{name}.png")
        return axes

    def save(axes: "Axes") -> None:
        axes.legend()
        pyplot.savefig(written[-1], dpi=110)
        pyplot.close("all")

    if "occupancy" in have:
        for name in algorithms:
            axes = picture(f"occupancy-{name}", f"{name}: who wants to be inside, and who is")
            setting = Setting(pause=0.3, stay=0.3, entries=10)
            _occupancy(axes, simulate(setting, name, study.seeds[0]))
            save(axes)
    if "traffic" in have:
        for vary in ("entries", "nodes"):
            axes = picture(f"traffic-{vary}", f"messages by {vary}")
            for name in algorithms:
                axes.plot(*_traffic(study, name, vary), marker="o", label=name)
            axes.set_xlabel(vary)
            axes.set_ylabel("messages")
            save(axes)
    if "latency" in have:
        for name in algorithms:
            axes = picture(f"latency-{name}", f"{name}: wait by pause")
            for stay in ("1", "2", "5"):
                pauses, waits, errors = _latency(study, name, stay)
                axes.errorbar(pauses, waits, errors, marker="o", label=f"inCS {stay} s")
            axes.set_xlabel("P, s")
            axes.set_ylabel("wait, s")
            save(axes)
    return written


def _occupancy(axes: "Axes", trace: Trace) -> None:
    times = [time for time, _, _ in trace.timeline]
    for group, sign, wanted, was in ((0, 1, "green", "red"), (1, -1, "blue", "purple")):
        wants = [sign * row[1][group] for row in trace.timeline]
        inside = [sign * row[2][group] for row in trace.timeline]
        axes.step(times, wants, where="post", color=wanted, lw=0.8, label=f"group {group} wants")
        axes.step(times, inside, where="post", color=was, lw=1.2, label=f"group {group} inside")
    axes.set_xlabel("time, s")


def _traffic(study: Study, name: str, vary: str) -> tuple[list[int], list[float]]:
    points = []
    for figure in study.figures:
        if (figure.experiment, figure.algorithm, figure.name) == ("traffic", name, "messages"):
            nodes, entries = (int(part.split()[0]) for part in figure.case.split(", "))
            if vary == "entries" and nodes == 12:
                points.append((entries, figure.mean))
            elif vary == "nodes" and entries == 10:
                points.append((nodes, figure.mean))
    return [x for x, _ in sorted(points)], [y for _, y in sorted(points)]


def _latency(study: Study, name: str, stay: str) -> tuple[list[float], list[float], list[float]]:
    points = []
    for figure in study.figures:
        if (figure.experiment, figure.algorithm, figure.name) == ("latency", name, "wait"):
            pause, inside = (part.split()[1] for part in figure.case.split(", "))
            if inside == stay:
                points.append((float(pause), figure.mean, figure.deviation))
    points.sort()
    return [x for x, _, _ in points], [y for _, y, _ in points], [error for _, _, error in points]
