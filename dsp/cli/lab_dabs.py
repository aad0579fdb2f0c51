"""``dsp lab dabs``: the experiments of paper 002 (section 7)."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from dsp.cli.output import print_json
from dsp.errors import ConfigError

__all__ = ["dabs"]

HEADER = (
    "topology", "stream", "values", "strategy", "grouping",
    "late", "paper", "latency", "instances", "most", "actions", "lost",
)  # fmt: skip


def dabs(
    topologies: Annotated[
        str, typer.Option(help="insensitive, sensitive, complex.")
    ] = "insensitive,sensitive,complex",
    streams: Annotated[str, typer.Option(help="progressive, erratic.")] = "progressive,erratic",
    values: Annotated[str, typer.Option(help="uniform, zipf (1.5).")] = "uniform,zipf",
    strategies: Annotated[
        str, typer.Option(help="Who decides how many instances there are.")
    ] = "static,incremental,decentralised,ranked,autoscale,autoscale-late,autoscale-lean",
    groupings: Annotated[
        str, typer.Option(help="Who chooses an instance: round-robin, osg, adaptive.")
    ] = "round-robin,osg,adaptive",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each combination.")] = 3,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    low: Annotated[float, typer.Option(help="Least rate, tuples per second.")] = 1.5,
    high: Annotated[float, typer.Option(help="Highest rate, tuples per second.")] = 32.0,
    duration: Annotated[float, typer.Option(help="Seconds of a stream.")] = 600.0,
    cost: Annotated[
        float, typer.Option(help="Mean seconds of a tuple at the critical operator.")
    ] = 0.5,
    period: Annotated[float, typer.Option(help="Seconds between decisions.")] = 10.0,
    beta: Annotated[float, typer.Option(help="Of AUTOSCALE+; table 2.")] = 0.8,
    weight: Annotated[float, typer.Option(help="Lambda of AUTOSCALE+; table 2.")] = 0.3,
    start_time: Annotated[
        float, typer.Option(min=0, help="Seconds until a new instance takes tuples.")
    ] = 5.0,
    maximum: Annotated[int, typer.Option(min=1, help="Instances of an operator, at most.")] = 36,
    osg_window: Annotated[int, typer.Option(min=1, help="OSG's N.")] = 128,
    engine: Annotated[
        str,
        typer.Option(
            help="'simulated' for the sweep, 'world' for the engine in virtual time, 'processes' "
            "for the engine on this machine."
        ),
    ] = "simulated",
    workers: Annotated[int, typer.Option(min=1, help="Processes of the simulation.")] = 2,
    plots: Annotated[
        Path | None, typer.Option(help="Draw the first seed's runs into this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare strategies of scaling and balancing on the streams of paper 002."""
    from dsp.lab.dabs.setting import Setting
    from dsp.lab.dabs.study import Choice, chosen

    setting = Setting(
        low=low,
        high=high,
        duration=duration,
        cost=cost,
        period=period,
        beta=beta,
        weight=weight,
        start_time=start_time,
        maximum=maximum,
        osg_window=osg_window,
    )
    choice = Choice(*map(_names, (topologies, streams, values, strategies, groupings)))
    total = len(chosen(setting, choice)) * seeds
    chosen_seeds = range(first_seed, first_seed + seeds)
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("simulating" if engine == "simulated" else "running", total=total)

        def advance() -> None:
            bar.advance(task)

        if engine == "simulated":
            from dsp.lab.dabs.study import run_study

            study = run_study(setting, choice, chosen_seeds, workers=workers, progress=advance)
        elif engine in ("world", "processes"):
            from dsp.lab.dabs.real import run_on_engine

            study = (
                asyncio.run(
                    run_on_engine(
                        setting, choice, chosen_seeds, real=engine == "processes", progress=advance
                    )
                )
                if engine == "processes"
                else run_in_worlds(setting, choice, chosen_seeds, advance)
            )
        else:
            raise ConfigError(f"no engine {engine!r}; there are simulated, world, processes")
    if plots is not None:
        _draw(plots, setting, choice, first_seed)
    if as_json:
        print_json(study)
        return
    _print(study)
