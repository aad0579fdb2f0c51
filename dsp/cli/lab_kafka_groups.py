"""``dsp lab kafka-groups``: the arrangement of paper 000 chapter 4, beside the same job on dsp."""

import asyncio
import logging
import os
import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.config import load_config
from dsp.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from dsp.lab.kafka_groups.study import Study

__all__ = ["kafka_groups"]

TITLES = {
    "given": "records of the source",
    "taken": "records at the sink",
    "lost": "lost",
    "repeats": "came again",
    "seconds": "seconds until the last",
    "instances": "most replicas",
    "changes": "replicas that came or went",
    "rebalances": "rebalances",
    "rebalancing": "seconds in rebalances",
    "join": "longest wait of a newcomer, seconds",
    "stall": "longest stall, seconds",
    "silence": "longest silence of a replica, seconds",
    "uneven": "busiest replica / mean",
}


def kafka_groups(
    app: Annotated[
        str, typer.Argument(help="The job, as package.module:name; a line.", metavar="APP")
    ] = "examples.taxi.app:pipeline",
    operator: Annotated[
        str | None, typer.Option(help="Whose replicas are looked at; default: the elastic one.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="A TOML file; default: dsp.toml beside the job.", metavar="FILE"),
    ] = None,
    url: Annotated[
        str, typer.Option(help="Transport of the run on dsp, with port 0.")
    ] = "zmq://127.0.0.1:0",
    kafka: Annotated[
        str | None,
        typer.Option(help="A broker that runs; default: one is started.", metavar="HOST:PORT"),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, max=1000, help="Of each data topic.")] = 16,
    heartbeat: Annotated[
        float, typer.Option(min=0.05, max=60, help="Seconds between heartbeats of group members.")
    ] = 3.0,
    plot: Annotated[
        Path | None, typer.Option(help="Draw figure 4.8 of both runs into this file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Share out records by Kafka's consumer groups, and beside it by dsp's own edges.

    The thesis gave each operator one topic of 16 partitions and a consumer group; whenever a
    replica comes or goes, the whole group stops to share out its partitions anew. First the job
    runs on dsp, where instances decide how many they are; then in consumer groups, with as many
    replicas at the same moments.
    """
    try:
        import aiokafka  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("kafka", "dsp lab kafka-groups") from error
    from dsp.lab.kafka_groups.stage import GroupSettings
    from dsp.lab.kafka_groups.study import default_config, run_study
    from dsp.stream.processes import load_pipeline

    # As `python -m` does: an application is where its user is.
    sys.path.insert(0, os.getcwd())
    if plot is not None:
        from dsp.lab.following import require_matplotlib

        require_matplotlib()  # before the measurement, not after it
    try:
        load_pipeline(app)
    except ConfigError as error:
        if app.startswith("examples."):
            raise ConfigError(
                f"{error}: the taxi job is in the sources of dsp; run this in their folder, "
                "or name a job of yours"
            ) from error
        raise
    settings = load_config(config or default_config(app), overrides={"transport": {"url": url}})
    # Members complain of every rebalance, and rebalances are what this is about.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    groups = GroupSettings(partitions=partitions, heartbeat=heartbeat)
    with ExitStack() as stack:
        bootstrap = kafka or _broker(stack)
        bar = Progress(console=Console(stderr=True), disable=not sys.stderr.isatty())
        stack.enter_context(bar)
        tasks = {
            name: bar.add_task(f"{name}: records at the sink", total=None)
            for name in ("dsp", "Kafka groups")
        }
        study, flows = asyncio.run(
            run_study(
                app,
                settings,
                bootstrap,
                operator=operator,
                settings=groups,
                progress=lambda name, records: bar.update(
                    tasks[name], completed=records, description=f"{name}: {records} at the sink"
                ),
            )
        )
    if plot is not None:
        from dsp.lab.kafka_groups.plots import draw_flows

        draw_flows(plot, flows, study.operator)
        typer.echo(f"wrote {plot}", err=True)
    if as_json:
        print_json(asdict(study))
    else:
        _print(study)


def _broker(stack: ExitStack) -> str:
    from dsp.testing.kafka import find_broker

    return stack.enter_context(find_broker()).bootstrap


def _print(study: "Study") -> None:
    names = list(study.figures)
    rows = [
        (title, *(_shown(getattr(study.figures[name], key)) for name in names))
        for key, title in TITLES.items()
    ]
    print_rows(
        ([Text(cell) for cell in row] for row in rows),
        (
            "  ".join(
                [row[0], *(f"{name} {cell}" for name, cell in zip(names, row[1:], strict=True))]
            )
            for row in rows
        ),
        header=("", *names),
    )


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.2f}"
