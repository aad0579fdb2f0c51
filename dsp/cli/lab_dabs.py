"""``dsp lab dabs``: the experiments of paper 002 (section 7)."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.errors import ConfigError

if TYPE_CHECKING:
    from dsp.lab.dabs.study import Cell, Study

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
    from dsp.lab.dabs.study import ENGINES, Choice, chosen, run_study

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
    if engine not in ENGINES:
        raise ConfigError(f"no engine {engine!r}; there are {', '.join(ENGINES)}")
    total = len(chosen(setting, choice)) * seeds
    chosen_seeds = range(first_seed, first_seed + seeds)
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task(engine, total=total)
        study = run_study(
            setting,
            choice,
            chosen_seeds,
            engine=engine,
            workers=workers if engine == "simulated" else 1,
            progress=lambda: bar.advance(task),
        )
    if plots is not None:
        from dsp.lab.dabs.plots import draw

        for grouping in choice.groupings:
            for each in chosen(
                setting, replace(choice, strategies=("static",), groupings=("osg",))
            ):
                one = replace(each, grouping=grouping)
                path = draw(plots, one, choice.strategies, first_seed, engine=engine)
                typer.echo(f"wrote {path}", err=True)
    if as_json:
        print_json(study)
        return
    _print(study)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _print(study: "Study") -> None:
    setting, seeds = study.setting, study.seeds
    typer.echo(
        f"{setting['low']:g} to {setting['high']:g} tuples/s for {setting['duration']:g} s, "
        f"{setting['cost']:g} s each at the critical operator, seeds {seeds[0]} to {seeds[-1]}"
    )
    typer.echo("left open by the paper:")
    for name, text in study.open_parameters.items():
        typer.echo(f"  {name}: {text}")
    for name, share in study.learning.items():
        typer.echo(f"the paper's learning baseline, not built here, {name}: {100 * share:g} % late")
    cells = [_shown(cell) for cell in study.cells]
    print_rows(
        ([Text(text) for text in row] for row in cells),
        (
            "  ".join(f"{title} {text}" for title, text in zip(HEADER, row, strict=True))
            for row in cells
        ),
        header=HEADER,
    )


def _shown(cell: "Cell") -> tuple[str, ...]:
    figures = cell.figures
    return (
        cell.topology,
        cell.stream,
        cell.values,
        cell.strategy,
        cell.grouping,
        f"{100 * figures.late:.2f} %",
        "-" if cell.paper is None else f"{100 * cell.paper:g} %",
        f"{figures.latency:.2f} s",
        f"{figures.instances:.1f}",
        f"{figures.most:.0f}",
        f"{figures.actions:.0f}",
        f"{figures.lost:.0f}",
    )
