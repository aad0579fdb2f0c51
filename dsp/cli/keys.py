"""``dsp keygen``: keys for a mesh that trusts nobody else."""

from pathlib import Path
from typing import Annotated

import typer

from dsp.errors import ConfigError, MissingExtraError

__all__ = ["keygen"]


def keygen(
    file: Annotated[Path, typer.Argument(help="Where the secret key goes; the public one: .pub.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace files that exist.")] = False,
) -> None:
    """Make a CURVE key pair for zmq:// and print the public key, for the allow-lists of peers.

    The secret key stays on this machine: name its file in transport.zmq.curve_secret_key_file.
    """
    try:
        from dsp.transport.zmq.keys import write_key_pair
    except ModuleNotFoundError as error:
        if error.name != "zmq":
            raise
        raise MissingExtraError("zmq", "dsp keygen") from error
    try:
        typer.echo(write_key_pair(file, replace=replace))
    except FileExistsError as error:
        raise ConfigError(f"{error}; --replace makes a new key in its place") from error
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from error
