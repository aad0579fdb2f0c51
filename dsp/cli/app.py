"""The ``dsp`` command, put together from its groups."""

from typing import Annotated

import typer

from dsp import __version__
from dsp.cli.calibrate import calibrate
from dsp.cli.config import check, schema
from dsp.cli.keys import keygen
from dsp.cli.lab import lab
from dsp.cli.run import run
from dsp.cli.transports import transports

__all__ = ["app"]

app = typer.Typer(
    name="dsp",
    help=(
        "Decentralised stream processing for edge and fog machines.\n\n"
        "Exit codes: 0 success, 1 an error or a check that found faults, 2 wrong usage."
    ),
    no_args_is_help=True,
    # Tracebacks of bugs stay as Python prints them: they can be pasted whole, locals left out.
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dsp {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command()(run)
app.command()(calibrate)
app.command()(check)
app.command()(schema)
app.command()(transports)
app.command()(keygen)
app.add_typer(lab)
