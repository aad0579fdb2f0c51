"""The figures of both papers, drawn from simulations."""

from pathlib import Path
from typing import TYPE_CHECKING

from dsp.errors import MissingExtraError
from dsp.lab.scaling.setting import Setting
from dsp.lab.scaling.simulator import OperatorTrace
from dsp.lab.scaling.study import simulate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["draw"]


def draw(folder: Path, setting: Setting, rules: "Sequence[str]", seed: int) -> list[Path]:
    """Draw one run of each rule, for the first operator, and the traffic of all.

    Args:
        folder: where the pictures go; it is created.
        setting: the parameters.
        rules: the rules to show beside each other.
        seed: of the run.

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
    runs = {rule: simulate(setting, rule, seed) for rule in rules}
    written = []
    for name, title, paint in (
        ("instances", "Instances and load", _instances),
        ("accuracy", "Accuracy: instances over ideal", _accuracy),
        ("throughput", "Share of the ideal throughput, %", _throughput),
        ("messages", "Messages per time step, all operators", _messages),
        ("traffic", "Messages over instances, all operators", _traffic),
    ):
        figure, axes = pyplot.subplots(figsize=(9, 4.5), layout="constrained")
        paint(axes, setting, runs)
        axes.set_title(f"{title} ({setting.load} load, seed {seed})")
        axes.grid(alpha=0.3)
        axes.legend()
        path = folder / f"scaling-{setting.load}-{name}.png"
        figure.savefig(path, dpi=110)
        pyplot.close(figure)
        written.append(path)
    return written


_Runs = dict[str, list[OperatorTrace]]


def _instances(axes: "Axes", setting: Setting, runs: _Runs) -> None:
    for rule, traces in runs.items():
        axes.step(range(setting.steps), traces[0].running, label=rule, where="post")
    load = next(iter(runs.values()))[0].load
    axes.plot([setting.ideal(value) for value in load], label="ideal", color="black", lw=0.8)
    axes.set_xlabel("time step")
    axes.set_ylabel("instances of the first operator")


def _accuracy(axes: "Axes", setting: Setting, runs: _Runs) -> None:
    for rule, traces in runs.items():
        trace = traces[0]
        pairs = zip(trace.running, trace.load, strict=True)
        axes.plot([n / setting.ideal(load) for n, load in pairs], label=rule)
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set_xlabel("time step")


def _throughput(axes: "Axes", setting: Setting, runs: _Runs) -> None:
    for rule, traces in runs.items():
        trace = traces[0]
        pairs = zip(trace.working, trace.load, strict=True)
        axes.plot([100 * min(1.0, n * setting.capacity / load) for n, load in pairs], label=rule)
    axes.set_xlabel("time step")


def _messages(axes: "Axes", setting: Setting, runs: _Runs) -> None:
    for rule, traces in runs.items():
        axes.plot([sum(t.messages[s] for t in traces) for s in range(setting.steps)], label=rule)
    axes.set_xlabel("time step")


def _traffic(axes: "Axes", setting: Setting, runs: _Runs) -> None:
    for rule, traces in runs.items():
        counts = [sum(t.running[s] for t in traces) for s in range(setting.steps)]
        messages = [sum(t.messages[s] for t in traces) for s in range(setting.steps)]
        axes.scatter(counts, messages, s=8, label=rule)
    axes.set_xlabel("instances")
    axes.set_ylabel("messages")
