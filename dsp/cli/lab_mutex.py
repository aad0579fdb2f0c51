"""``dsp lab mutex``: the experiments of paper 000 chapter 5."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.errors import ConfigError

if TYPE_CHECKING:
    from dsp.lab.mutex.study import Figure, Study

__all__ = ["mutex"]


def mutex(
    algorithms: Annotated[
        str, typer.Option(help="What to compare, separated by commas.")
    ] = "2fgme,ra2,ra1,token,published",
    experiments: Annotated[
        str, typer.Option(help="occupancy, traffic, latency, burst.")
    ] = "occupancy,traffic,latency,burst",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each case.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    live: Annotated[
        bool, typer.Option("--live", help="In real time over real sockets, instead.")
    ] = False,
    url: Annotated[
        str, typer.Option(help="With --live: a transport, with port 0.")
    ] = "zmq+tcp://127.0.0.1:0",
    nodes: Annotated[int, typer.Option(min=2, help="With --live: in both groups.")] = 12,
    entries: Annotated[int, typer.Option(min=1, help="With --live: of each node.")] = 10,
    pause: Annotated[float, typer.Option(min=0, help="With --live: P, in seconds.")] = 0.1,
    stay: Annotated[float, typer.Option(min=0, help="With --live: inCS, in seconds.")] = 0.1,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    plots: Annotated[
        Path | None, typer.Option(help="Draw the thesis's figures into this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare algorithms of mutual exclusion, beside the thesis's numbers.

    Occupancy (figures 5.2 to 5.4), traffic (5.5, 5.6) and latency (5.7 to 5.9) in virtual time, and
    a burst in which all ask within 5 ms; or one run of all three over real sockets.
    """
    from dsp.lab.mutex.live_study import run_live_study
    from dsp.lab.mutex.study import EXPERIMENTS, jobs_of, run_study

    names = [name.strip() for name in algorithms.split(",") if name.strip()]
    wanted = [name.strip() for name in experiments.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in EXPERIMENTS]
    if unknown:
        raise ConfigError(f"no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    chosen = range(first_seed, first_seed + seeds)
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        if live:
            task = bar.add_task("visiting", total=len(names) * seeds * nodes)
            study = asyncio.run(
                run_live_study(
                    names,
                    chosen,
                    nodes=nodes,
                    entries=entries,
                    pause=pause,
                    stay=stay,
                    url=url,
                    progress=lambda: bar.advance(task),
                )
            )
        else:
            task = bar.add_task("simulating", total=len(jobs_of(wanted, names, chosen)))
            study = run_study(
                wanted,
                names,
                chosen,
                workers=workers,
                progress=lambda what: bar.update(task, advance=1, description=what),
            )
    if plots is not None:
        from dsp.lab.mutex.plots import draw

        for path in draw(plots, study, names):
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        print_json(study)
        return
    _print(study)


def _print(study: "Study") -> None:
    typer.echo(f"seeds {study.seeds[0]} to {study.seeds[-1]}; left open by the thesis:")
    for name, text in study.open_parameters.items():
        typer.echo(f"  {name}: {text}")
    header = ("experiment", "case", "algorithm", "figure", "mean", "deviation", "thesis")
    cells = [
        (one.experiment, one.case, one.algorithm, one.name, *_shown(one))
        for one in study.figures
        if one.mean or one.name not in ("overlaps", "stuck")
    ]
    print_rows(
        ([Text(cell) for cell in row] for row in cells),
        ("  ".join(filter(None, row)) for row in cells),
        header=header,
    )


def _shown(figure: "Figure") -> tuple[str, str, str]:
    def show(value: float) -> str:
        if figure.name in ("wait", "round trip"):
            return f"{1000 * value:.1f} ms"
        return f"{value:.0f}" if figure.name == "messages" else f"{value:.2f}"

    thesis = "" if figure.thesis is None else f"thesis {show(figure.thesis)}"
    return show(figure.mean), f"+- {show(figure.deviation)}", thesis
