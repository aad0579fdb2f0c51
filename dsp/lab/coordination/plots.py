"""Waits and delays of both coordinations as curves."""

from pathlib import Path

from dsp.errors import MissingExtraError
from dsp.lab.coordination.study import Study

__all__ = ["draw"]


def draw(folder: Path, study: Study) -> list[Path]:
    """Draw which share of the steps waited for at most how long, and of the newcomers likewise.

    Args:
        folder: where the picture goes; it is created.
        study: the figures.

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
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for axes, title, values in (
        (left, "from decision to permission", study.waits),
        (right, "from decision to newcomer", study.delays),
    ):
        for name, seconds in values.items():
            ordered = sorted(1000 * each for each in seconds)
            shares = [(place + 1) / len(ordered) for place in range(len(ordered))]
            axes.step(ordered, shares, where="post", label=f"{name}, {len(ordered)}")
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlabel(f"ms {title}")
        axes.set_ylabel("share")
        axes.grid(alpha=0.3)
        axes.legend()
    path = folder / "coordination.png"
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return [path]
