"""Output of commands: for people on a terminal, for pipes, and for programs."""

import sys
from collections.abc import Iterable, Sequence

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["Row", "compact_json", "print_json", "print_rows"]

Row = Sequence[Text]


def compact_json(value: object) -> str:
    """Write one value on one line. Types that JSON lacks are written as their text."""
    return orjson.dumps(value, default=str).decode()


def print_json(value: object) -> None:
    """Print a value for programs; dataclasses become objects."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str))


def print_rows(rows: Iterable[Row], plain: Iterable[str], *, header: Sequence[str] = ()) -> None:
    """Print rows as a table on a terminal, and the plain lines everywhere else.

    Args:
        rows: cells of each row.
        plain: the same content, one line per row; never wrapped or cut.
        header: titles of the columns, shown in the table only.
    """
    # Not rich's own guess: variables that force colours must not break a pipe.
    if not sys.stdout.isatty():
        for line in plain:
            typer.echo(line)
        return
    table = Table(*header, box=None, show_header=bool(header), pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
