"""``dsp lab``: measurements and experiments."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.text import Text

from dsp.cli.lab_balance import balance
from dsp.cli.lab_coordination import coordination
from dsp.cli.lab_dabs import dabs
from dsp.cli.lab_kafka_groups import kafka_groups
from dsp.cli.lab_mutex import mutex
from dsp.cli.lab_scaling import scaling
from dsp.cli.output import print_json, print_rows
from dsp.errors import ConfigError, MissingExtraError

__all__ = ["lab"]

lab = typer.Typer(
    name="lab", help="Measure on this machine, and repeat experiments.", no_args_is_help=True
)

lab.command()(balance)
lab.command()(coordination)
lab.command()(mutex)
lab.command()(scaling)
lab.command()(dabs)
lab.command()(kafka_groups)


@lab.command()
def transport(
    urls: Annotated[
        list[str] | None,
        typer.Argument(help="Which, with port 0; default: all that need no broker."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=100, help="Runs of each load.")] = 3,
    seconds: Annotated[float, typer.Option(min=0.05, max=60, help="Seconds of each run.")] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Measure transports between two processes on this machine, sessions on.

    Records per second in frames of 256 and one by one, round trips idle and beside a full DATA
    lane, and the memory of both ends when the reader does not read. Ratios are to the first.
    """
    from dsp.lab.transport.load import Load
    from dsp.lab.transport.suite import LOADS, contender, measure
    from dsp.lab.transport.table import HEADER, rows

    chosen = [contender(url, {"url": url}) for url in urls or _installed()]
    if not chosen:
        raise ConfigError("no transport to measure is installed: pip install 'dsp[zmq]'")
    loads = [Load(load.kind, load.record_bytes, load.batch, seconds) for load in LOADS]
    with _progress(runs * len(loads) * len(chosen)) as progress:
        results = measure(chosen, loads, runs=runs, progress=progress)
    if as_json:
        print_json(results)
        return
    table = list(rows(results, [chosen[0].name]))
    print_rows(
        ([Text(cell) for cell in row] for row in table),
        ("  ".join(filter(None, row)) for row in table),
        header=HEADER,
    )


DEFAULTS = ("zmq+tcp://127.0.0.1:0", "grpc://127.0.0.1:0")


def _installed() -> list[str]:
    from dsp.transport.registry import transport_class

    found = []
    for url in DEFAULTS:
        with contextlib.suppress(MissingExtraError, ConfigError):  # not installed: not measured
            transport_class(url)
            found.append(url)
    return found


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[str], None]]:
    """Show what is going on, on standard error."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring", total=total)
        yield lambda line: bar.update(task, advance=1, description=line)
