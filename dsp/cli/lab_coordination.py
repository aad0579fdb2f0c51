"""``dsp lab coordination``: scaling steps at once, and under mutual exclusion."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from dsp.cli.output import print_json, print_rows

if TYPE_CHECKING:
    from dsp.lab.coordination.study import Study

__all__ = ["coordination"]


def coordination(
    coordinations: Annotated[
        str, typer.Option(help="What to compare, separated by commas.")
    ] = "ack,2fgme",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    operators: Annotated[
        int, typer.Option(min=1, max=26, help="Operators in the line; all of them scale.")
    ] = 3,
    core: Annotated[
        int, typer.Option(min=1, help="Instances of each at the start: its core group.")
    ] = 1,
    low: Annotated[float, typer.Option(min=1, help="Records per second, low load.")] = 15.0,
    high: Annotated[float, typer.Option(min=1, help="Records per second, high load.")] = 80.0,
    wave: Annotated[float, typer.Option(min=1, help="Seconds of low, then of high load.")] = 6.0,
    waves: Annotated[int, typer.Option(min=1, help="How often the load goes up.")] = 2,
    period: Annotated[
        float, typer.Option(min=0.1, help="Seconds between decisions of an instance.")
    ] = 1.0,
    latency: Annotated[
        float, typer.Option(min=0, help="Seconds that a message takes; not with --live.")
    ] = 0.001,
    jitter: Annotated[
        float, typer.Option(min=0, help="At most so much more; not with --live.")
    ] = 0.004,
    live: Annotated[
        bool, typer.Option("--live", help="In real time, an instance in a process, instead.")
    ] = False,
    url: Annotated[
        str, typer.Option(help="With --live: a transport, with port 0.")
    ] = "zmq://127.0.0.1:0",
    workers: Annotated[int, typer.Option(min=1, help="Processes; not with --live.")] = 2,
    plots: Annotated[Path | None, typer.Option(help="Draw into this folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare scaling.coordination "ack" and "2fgme" on a line of operators under waves of load.

    Messages for each scaling step, the time from a decision to the newcomer, how long the stream
    stalls, and steps of neighbouring operators that overlap. Every record is counted by value.
    """
    from dsp.lab.coordination.application import Setting
    from dsp.lab.coordination.study import run_live_study, run_study

    setting = Setting(
        operators=operators,
        core=core,
        low=low,
        high=high,
        wave=wave,
        waves=waves,
        period=period,
        latency=latency,
        jitter=jitter,
    )
    names = [name.strip() for name in coordinations.split(",") if name.strip()]
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("running", total=len(names) * seeds)
        if live:
            study = asyncio.run(
                run_live_study(setting, names, seeds, url, progress=lambda: bar.advance(task))
            )
        else:
            chosen = range(first_seed, first_seed + seeds)
            study = run_study(
                setting, names, chosen, workers=workers, progress=lambda: bar.advance(task)
            )
    if plots is not None:
        from dsp.lab.coordination.plots import draw

        for path in draw(plots, study):
            typer.echo(f"wrote {path}", err=True)
    if as_json:
        print_json(study)
        return
    _print(study)


def _print(study: "Study") -> None:
    setting = study.setting
    typer.echo(
        f"{setting['operators']:.0f} operators, core {setting['core']:.0f}, "
        f"{setting['low']:g} and {setting['high']:g} records/s in waves of {setting['wave']:g} s, "
        f"{study.runs} runs of each, {study.where}"
    )
    cells = [
        (row.coordination, row.figure, f"mean {row.mean:.2f}", f"p95 {row.p95:.2f}")
        for row in study.rows
    ]
    print_rows(
        ([Text(cell) for cell in row] for row in cells),
        ("  ".join(row) for row in cells),
        header=("coordination", "figure", "mean", "p95"),
    )
