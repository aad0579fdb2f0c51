"""``dsp calibrate``: how many records an instance of an operator can take."""

import asyncio
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.config import load_config

if TYPE_CHECKING:
    from dsp.lab.calibrate import Capacity, Reading

__all__ = ["calibrate"]

# As far as the picture in the thesis goes: up to the cores, and as much again.
MOST_THREADS = 2 * (os.cpu_count() or 1)


def calibrate(
    app: Annotated[
        str, typer.Argument(help="The pipeline, as package.module:name.", metavar="APP")
    ],
    operators: Annotated[
        list[str], typer.Argument(help="Names of operators with a body.", metavar="OPERATOR...")
    ],
    threads: Annotated[
        int, typer.Option(min=1, max=256, help="Measure with 1 to so many threads.")
    ] = MOST_THREADS,
    seconds: Annotated[
        float, typer.Option(min=0.05, help="Seconds that each input rate is held.")
    ] = 1.0,
    config: Annotated[
        str | None, typer.Option(help="A TOML file; its [stream] table counts.", metavar="FILE")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw capacities into this file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Find the capacity of one instance: raise the input rate until the output falls behind.

    What is before the operator runs shortly, to give it records of the application; then it runs
    alone, in this process, with 1 to n threads. Nothing else should compute meanwhile.
    """
    from dsp.lab.calibrate import Effort, draw_capacities
    from dsp.lab.calibrate import calibrate as measure
    from dsp.stream.processes import load_pipeline

    # As `python -m` does: an application is where its user is.
    sys.path.insert(0, os.getcwd())
    settings = load_config(config)
    if plot is not None:
        from dsp.lab.following import require_matplotlib

        require_matplotlib()  # before the measurement, not after it
    graph = load_pipeline(app).graph()
    effort = Effort(seconds=seconds)
    found = asyncio.run(
        measure(graph, operators, threads, settings, effort, None if as_json else _progress)
    )
    if plot is not None:
        draw_capacities(plot, found)
        typer.echo(f"wrote {plot}", err=True)
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        _print(found)


def _progress(operator: str, threads: int, reading: "Reading") -> None:
    typer.echo(
        f"{operator}, threads {threads}: {reading.offered:.1f} records/s in, "
        f"{reading.taken:.1f} out",
        err=True,
    )


def _print(found: "list[Capacity]") -> None:
    header = ("operator", "threads", "records/s", "times one thread")
    single = {each.operator: each.capacity for each in found if each.threads == 1}
    rows = [
        (
            each.operator,
            str(each.threads),
            f"{each.capacity:.1f}",
            f"{each.capacity / single[each.operator]:.2f}",
        )
        for each in found
    ]
    print_rows(
        ([Text(cell) for cell in row] for row in rows),
        (f"{name}  threads {n}  {rate} records/s  {times} times" for name, n, rate, times in rows),
        header=header,
    )
