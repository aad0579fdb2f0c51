"""Entry point of the ``dsp`` command.

Nothing here needs more than the base installation, so that a missing extra can be named.
"""

import sys

from dsp.errors import DspError, InvariantError, MissingExtraError

__all__ = ["run"]

_NEEDED = ("typer", "rich")


def run() -> None:
    """Run the command line and exit.

    Exit codes: 0 for success, 1 for a known error or a check that found faults, 2 for wrong
    usage. A known error is one clean message on stderr; any other keeps its traceback.
    """
    try:
        _app()
    except InvariantError:
        # A bug in dsp: the traceback is what its report needs.
        raise
    except DspError as error:
        print(f"dsp: {error}", file=sys.stderr)
        sys.exit(1)


def _app() -> None:
    try:
        from dsp.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        raise MissingExtraError("cli", "the dsp command") from error
    app(prog_name="dsp")
