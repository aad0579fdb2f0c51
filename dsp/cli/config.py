"""Commands about the configuration: ``dsp check`` and ``dsp schema``."""

from collections.abc import Mapping
from typing import Annotated

import typer
from rich.text import Text

from dsp.cli.output import compact_json, print_json, print_rows
from dsp.config import Config, Examination, Fault, Source, examine, json_schema
from dsp.errors import ConfigError, MissingExtraError

__all__ = ["check", "schema"]

_URL = "transport.url"


def check(
    config: Annotated[str, typer.Argument(help="The TOML file to check.", metavar="CONFIG")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Check a configuration as a node would load it: the file, then the environment over it.

    Prints every fault with its place (exit code 1), or the values and their sources (exit code 0).
    """
    examination = examine(config)
    faults = [*examination.faults, *_transport_faults(examination)]
    if as_json:
        print_json(
            {"ok": False, "faults": faults}
            if faults
            else {
                "ok": True,
                "values": examination.effective,
                "sources": examination.sources,
            }
        )
    elif faults:
        _print_faults(faults)
    else:
        _print_values(config, examination.effective, examination.sources)
    if faults:
        raise typer.Exit(1)


def schema() -> None:
    """Print the JSON Schema (draft 2020-12) of the configuration, for editors and other tools."""
    print_json(json_schema())


def _transport_faults(examination: Examination[Config]) -> list[Fault]:
    """Ask the registry about the URL, unless the URL is already known to be wrong."""
    from dsp.transport.registry import transport_class

    url = examination.effective.get(_URL)
    if not isinstance(url, str):
        return []
    try:
        transport_class(url)
    except (ConfigError, MissingExtraError) as error:
        problem = str(error).removeprefix(f"{_URL}: ")
    except ImportError as error:
        problem = f"its transport is installed but does not load: {error}"
    else:
        return []
    source = examination.sources.get(_URL, Source("default"))
    return [Fault(source, _URL, " ".join(problem.split()))]


def _print_faults(faults: list[Fault]) -> None:
    print_rows(
        (
            (
                Text(str(fault.source), "dim"),
                Text(fault.path, "bold"),
                Text.assemble((fault.problem, "red"), "\n" if fault.hint else "", fault.hint),
            )
            for fault in faults
        ),
        (str(fault) for fault in faults),
        header=("where", "setting", "what is wrong"),
    )
    # Not on stdout, where each line is a fault.
    typer.echo(f"{len(faults)} fault{'s' if len(faults) > 1 else ''}", err=True)


def _print_values(
    config: str, effective: Mapping[str, object], sources: Mapping[str, Source]
) -> None:
    typer.echo(f"ok: {Source('file', config)}")
    values = {name: compact_json(value) for name, value in effective.items()}
    origins = {name: str(sources.get(name, "")) for name in effective}
    print_rows(
        (
            (Text(name, "bold"), Text(values[name]), Text(origins[name] or "default", "dim"))
            for name in effective
        ),
        (
            f"{name} = {values[name]}" + (f"  # {origins[name]}" if origins[name] else "")
            for name in effective
        ),
        header=("setting", "value", "from"),
    )
