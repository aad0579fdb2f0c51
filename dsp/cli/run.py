"""``dsp run``: run a pipeline, watch it, and say what it counted."""

import os
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.config import load_config
from dsp.errors import ConfigError
from dsp.stream.graph import Kind

if TYPE_CHECKING:
    from dsp.cli.running import Outcome
    from dsp.spark import SparkSettings

__all__ = ["run", "summary_values", "print_summary"]


class Engine(Enum):
    """What runs a pipeline."""

    MESH = "mesh"
    SPARK = "spark"


def run(
    app: Annotated[
        str, typer.Argument(help="The pipeline, as package.module:name.", metavar="APP")
    ],
    config: Annotated[
        str | None, typer.Option(help="A TOML file with settings.", metavar="FILE")
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            help="How instances reach each other, as zmq://127.0.0.1:0; each is a process then.",
            metavar="URL",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw rates and instances over time into this file.")
    ] = None,
    operator: Annotated[
        str | None, typer.Option(help="The operator to draw; the one that changed most without.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Decides what is random here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    engine: Annotated[
        Engine, typer.Option(help="What runs it: the mesh, or Spark as one streaming query.")
    ] = Engine.MESH,
    master: Annotated[
        str | None,
        typer.Option(help="Which Spark, as local[2] or spark://host:7077.", metavar="URL"),
    ] = None,
    package: Annotated[
        list[str] | None,
        typer.Option(
            help="A .py or .zip file that workers of Spark elsewhere need; may be repeated.",
            metavar="FILE",
        ),
    ] = None,
    spark_option: Annotated[
        list[str] | None,
        typer.Option(help="A setting of Spark; may be repeated.", metavar="KEY=VALUE"),
    ] = None,
) -> None:
    """Run a pipeline until its sources are over, and show how it goes.

    Without a transport everything is in this process; with one, every instance is a process of its
    own; over sim:// every instance is a host of a simulated world, in virtual time. With
    --engine spark bodies run on the workers of Spark, and only sources and sinks here. Ctrl-C once
    finishes what is under way, twice stops at once. Exit code 0: nothing was lost; 1: something
    failed; 130: stopped at once.
    """
    from dsp.cli.live import view_on
    from dsp.cli.running import run_pipeline

    # As `python -m` does: an application is where its user is.
    sys.path.insert(0, os.getcwd())
    spark = _spark_settings(engine, master, package or [], spark_option or [], transport)
    overrides = {"transport": {"url": transport}} if transport else None
    settings = load_config(config, overrides=overrides)
    if plot is not None:
        from dsp.lab.following import require_matplotlib

        require_matplotlib()  # before the run, not after it
    with view_on(quiet=as_json) as view:
        if spark is not None:
            from dsp.cli.running_spark import run_on_spark

            outcome = run_on_spark(app, settings, spark, view)
        else:
            outcome = run_pipeline(app, settings, view, seed)
    if plot is not None:
        from dsp.lab.following import draw, most_elastic

        draw(plot, outcome.history, operator or most_elastic(outcome.history, outcome.summary))
        typer.echo(f"wrote {plot}", err=True)
    if as_json:
        print_json(summary_values(outcome))
    else:
        print_summary(outcome)
    if outcome.code:
        raise typer.Exit(outcome.code)


def _spark_settings(
    engine: Engine,
    master: str | None,
    packages: list[str],
    options: list[str],
    transport: str | None,
) -> "SparkSettings | None":
    """Give which Spark is wanted; None for the mesh."""
    given = {"--master": master, "--package": packages, "--spark-option": options}
    if engine is Engine.MESH:
        if faults := [name for name, value in given.items() if value]:
            raise ConfigError(f"{', '.join(faults)}: has an effect with --engine spark only")
        return None
    if transport is not None:
        raise ConfigError("--transport: has no effect with --engine spark; see --master")
    from dsp.spark import SparkSettings

    pairs = [option.partition("=") for option in options]
    if wrong := [key for key, sign, _ in pairs if not sign]:
        raise ConfigError(f"--spark-option {wrong[0]}: write KEY=VALUE")
    told = {key: value for key, _, value in pairs}
    return SparkSettings(master=master, options=told, packages=tuple(packages))


def summary_values(outcome: "Outcome") -> dict[str, Any]:
    """Give what a run counted as plain values."""
    summary = outcome.summary
    return {
        "ok": not outcome.code,
        "stopped": outcome.stopped,
        "faults": outcome.faults,
        "seconds": round(outcome.history.last, 3),
        "records_in": summary.records_in,
        "records_out": summary.records_out,
        "lost": summary.lost,
        "duplicates": summary.repeats,
        "dead_letters": summary.dead_letters,
        "latencies": summary.latencies,
        "engine": "mesh" if outcome.batches is None else "spark",
        **({} if outcome.batches is None else {"batches": outcome.batches}),
        "actions": [list(action) for action in outcome.history.actions],
        "operators": {
            each.name: {
                "kind": each.kind.value,
                "records_in": each.records_in,
                "records_out": each.records_out,
                "dead_letters": each.dead_letters,
                "most_instances": each.most_instances,
                "created": each.created,
                "left": each.left,
            }
            for each in summary.operators.values()
        },
    }


def print_summary(outcome: "Outcome") -> None:
    """Print what a run counted."""
    summary = outcome.summary
    header = ("operator", "in", "out", "dead letters", "most instances", "created", "left")
    rows = [
        (
            each.name,
            "" if each.kind is Kind.SOURCE else str(each.records_in),
            str(each.records_out),
            str(each.dead_letters),
            str(each.most_instances),
            str(each.created),
            str(each.left),
        )
        for each in summary.operators.values()
    ]
    print_rows(
        ([Text(cell) for cell in row] for row in rows),
        (
            "  ".join(f"{title} {cell}" for title, cell in zip(header, row, strict=True) if cell)
            for row in rows
        ),
        header=header,
    )
    typer.echo(
        f"{summary.records_in} records in, {summary.records_out} out, {summary.lost} lost, "
        f"{summary.repeats} duplicates, {summary.dead_letters} dead letters, in "
        f"{outcome.history.last:.1f} s"
    )
    if outcome.batches is not None:
        typer.echo(f"on Spark {outcome.master}: {outcome.batches} batches")
    if summary.latencies:
        each = ", ".join(
            f"{name} {1000 * value:.0f} ms" for name, value in summary.latencies.items()
        )
        typer.echo(f"latency: {each}")
    if outcome.batches is None:
        created = sum(each.created for each in summary.operators.values())
        left = sum(each.left for each in summary.operators.values())
        typer.echo(f"scaling: {created} instances created, {left} left")
    for fault in outcome.faults:
        typer.echo(f"FAILED: {fault}", err=True)
    if outcome.stopped:
        typer.echo("stopped at once: what was under way is not finished", err=True)
