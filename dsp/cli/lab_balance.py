"""``dsp lab balance``: which instance gets a record, compared in virtual time."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.errors import ConfigError

if TYPE_CHECKING:
    from dsp.lab.balance.study import Study

__all__ = ["balance"]


def balance(
    strategies: Annotated[
        str, typer.Option(help="What to compare with round-robin and an omniscient scheduler.")
    ] = "osg,osg-quick,adaptive,keyless-turns,keyless",
    instances: Annotated[str, typer.Option(help="Instances, separated by commas.")] = "5,10",
    loads: Annotated[
        str, typer.Option(help="Shares of what all can do, separated by commas.")
    ] = "0.8,0.95,1.0",
    changes: Annotated[
        bool, typer.Option(help="Also: new costs, or a slow instance, in mid-stream.")
    ] = True,
    records: Annotated[int, typer.Option(min=1024, help="Records of each stream.")] = 32_768,
    seeds: Annotated[int, typer.Option(min=1, help="Streams of each case.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare ways to choose an instance for each record, by the time until it is executed.

    Records differ in cost by their value (1 to 64 ms, values by zipf .5 to 2); the machines are
    those that the engine runs. Ratios are paired by seed.
    """
    from dsp.lab.balance.study import jobs_of, run_study

    jobs = jobs_of(
        _words(strategies),
        [int(_number(word, "instances")) for word in _words(instances)],
        [_number(word, "loads") for word in _words(loads)],
        range(first_seed, first_seed + seeds),
        records=records,
        changes=changes,
    )
    console = Console(stderr=True)
    with Progress(console=console, disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("simulating", total=len(jobs))
        study = run_study(
            jobs,
            workers=workers,
            progress=lambda what: bar.update(task, advance=1, description=what),
        )
    if as_json:
        print_json(study)
        return
    _print(study)


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(word: str, option: str) -> float:
    try:
        value = float(word)
    except ValueError:
        raise ConfigError(f"--{option}: {word!r} is no number") from None
    if not 0 < value <= 1000 or (option == "instances" and value != int(value)):
        raise ConfigError(f"--{option}: {word} makes no sense")
    return value


def _print(study: "Study") -> None:
    typer.echo(
        f"seeds {study.seeds[0]} to {study.seeds[-1]}, {study.records} records; how it was settled:"
    )
    for name, text in study.open_parameters.items():
        typer.echo(f"  {name}: {text}")
    typer.echo("")
    header = ("k", "zipf", "load", "strategy", "mean", "p99", "of round-robin", "of omniscient", "")
    _rows(
        header,
        (
            (
                str(cell.instances),
                f"{cell.skew:g}",
                f"{cell.load:g}",
                cell.strategy,
                f"{1000 * cell.mean:.0f} ms",
                f"{1000 * cell.p99:.0f} ms",
                f"{cell.of_round_robin:.2f}, p99 {cell.p99_of_round_robin:.2f}",
                f"{cell.of_omniscient:.2f}, p99 {cell.p99_of_omniscient:.2f}",
                "" if cell.left is None else f"left round-robin after {cell.left:.0f}",
            )
            for cell in study.cells
        ),
    )
    if study.summaries:
        typer.echo(
            "\nover all cells: largest ratios to round-robin, OSG and turns with the room of the "
            "engine, and to omniscient"
        )
    _rows(
        ("strategy", "of round-robin", "of OSG", "of turns", "of omniscient: all, worst"),
        (
            (
                one.strategy,
                f"{one.of_round_robin:.3f}, p99 {one.p99_of_round_robin:.3f}",
                f"{one.of_osg:.3f}, p99 {one.p99_of_osg:.3f}",
                "" if one.of_turns is None else f"{one.of_turns:.3f}, p99 {one.p99_of_turns:.3f}",
                f"{one.of_omniscient:.3f}, {one.worst_of_omniscient:.3f}",
            )
            for one in study.summaries
        ),
    )
    if study.recoveries:
        typer.echo("\nafter a change in mid-stream: new costs, or one instance ten times slower")
    _rows(
        ("change", "strategy", "recovered", "records until then", "mean, of omniscient"),
        (
            (
                one.change,
                one.strategy,
                f"{100 * one.recovered:.0f} %",
                "never" if one.records is None else f"{one.records:.0f}",
                f"{one.after:.2f}",
            )
            for one in study.recoveries
        ),
    )


def _rows(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    cells = list(rows)
    if cells:
        print_rows(
            ([Text(cell) for cell in row] for row in cells),
            ("  ".join(filter(None, row)) for row in cells),
            header=header,
        )
