"""Commands about transports: ``dsp transports``."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer
from rich.text import Text

from dsp.cli.output import print_json, print_rows
from dsp.errors import ConfigError, MissingExtraError

__all__ = ["transports"]

_STYLES = {"installed": "green", "not installed": "yellow", "broken": "red"}


@dataclass(frozen=True, slots=True)
class _Listed:
    scheme: str
    status: Literal["installed", "not installed", "broken"]
    extra: str | None
    note: str

    def __str__(self) -> str:
        return f"{self.scheme}:// {self.status}" + (f": {self.note}" if self.note else "")


def transports(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the transports: the scheme of their URLs, whether installed, and how to install."""
    from dsp.transport.registry import known_schemes

    listed = [_listed(scheme, entry.extra) for scheme, entry in known_schemes().items()]
    if as_json:
        print_json(listed)
        return
    print_rows(
        (
            (
                Text(f"{one.scheme}://", "bold"),
                Text(one.status, _STYLES[one.status]),
                Text(one.note),
            )
            for one in listed
        ),
        (str(one) for one in listed),
        header=("scheme", "status", "to do"),
    )


def _listed(scheme: str, extra: str | None) -> _Listed:
    from dsp.transport.registry import transport_class

    try:
        transport_class(f"{scheme}://")
    except MissingExtraError as error:
        return _Listed(scheme, "not installed", error.extra, f"pip install 'dsp[{error.extra}]'")
    except (ConfigError, ImportError) as error:
        # One package's broken transport must not hide the others.
        return _Listed(scheme, "broken", extra, " ".join(str(error).split()))
    return _Listed(scheme, "installed", extra, "")
