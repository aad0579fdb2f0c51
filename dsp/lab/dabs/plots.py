"""Figures 12 to 17 of paper 002, drawn from our runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dsp.errors import MissingExtraError
from dsp.lab.dabs.setting import Setting
from dsp.lab.dabs.simulator import Trace
from dsp.lab.dabs.streams import STREAMS, rate_at
from dsp.lab.dabs.study import simulate

__all__ = ["draw", "draw_traces"]


def draw(
    folder: Path,
    setting: Setting,
    strategies: Sequence[str],
    seed: int,
    *,
    engine: str = "simulated",
) -> Path:
    """Draw one run of each strategy, below each other: instances, latency and late tuples.

    Args:
        folder: where the picture goes; it is created.
        setting: the experiment and its grouping.
        strategies: to show beside each other.
        seed: of the runs.
        engine: what they run on.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    _pyplot()
    traces = {name: simulate(replace(setting, strategy=name), seed, engine) for name in strategies}
    name = f"dabs-{setting.topology}-{setting.stream}-{setting.values}-{setting.grouping}.png"
    return draw_traces(folder / name, setting, traces)


def draw_traces(path: Path, setting: Setting, traces: dict[str, Trace]) -> Path:
    """Draw runs that were made.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    pyplot = _pyplot()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, (top, middle, bottom) = pyplot.subplots(
        3, 1, figsize=(9, 10), sharex=True, layout="constrained"
    )
    top.set_title(
        f"{setting.topology} topology, {setting.stream} stream, {setting.values} values, "
        f"{setting.grouping}"
    )
    for name, trace in traces.items():
        top.step(trace.times, trace.instances, where="post", label=name)
        seen = [(t, value) for t, value in zip(trace.times, trace.latencies, strict=True)]
        known = [(t, value) for t, value in seen if value is not None]
        middle.plot([t for t, _ in known], [value for _, value in known], label=name)
        share = [100 * late / trace.expected for late in trace.late]
        bottom.plot(trace.times, share, label=name)
    shape, span = STREAMS[setting.stream], setting.duration
    times = [span * n / 200 for n in range(201)]
    needed = [rate_at(shape, t / span, setting.low, setting.high) * setting.cost for t in times]
    top.plot(times, needed, color="black", lw=0.8, label="busy at the source's rate")
    top.set_ylabel("instances of the critical operator")
    middle.set_ylabel("mean latency, s")
    middle.set_yscale("symlog", linthresh=1.0)
    middle.axhline(setting.late, color="black", lw=0.8, ls="--")
    bottom.set_ylabel("late tuples so far, % of all")
    bottom.set_xlabel("seconds")
    for axes in (top, middle, bottom):
        axes.grid(alpha=0.3)
    top.legend()
    top.set_xlim(0, 1.5 * span)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
    return path


def _pyplot() -> Any:  # noqa: ANN401
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtraError("lab", "drawing plots") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
