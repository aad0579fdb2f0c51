"""Epochs that grow although a clock is set back: the last one is kept in a file."""

import os
import time
from pathlib import Path
from typing import Final

from dsp.errors import ConnectError

__all__ = ["epoch_of_start", "next_epoch"]

# A session that is given up counts the epoch of its peer's link up by one: no process comes near.
STEP: Final = 1 << 32


def epoch_of_start(file: str | None) -> int:
    """Give the epoch of an endpoint that starts now, above the one that ``file`` keeps, if any."""
    now = time.time_ns()  # wall time, because it goes on while a process is down
    return now if file is None else next_epoch(Path(file), now)


def next_epoch(file: Path, now: int) -> int:
    """Give an epoch above the last one, and keep it in the file before anybody hears of it.

    Args:
        file: of this endpoint alone; made at the first start.
        now: the wall clock in nanoseconds, which is the epoch where it is late enough.

    Raises:
        ConnectError: the file cannot be read or written, or holds something else.
    """
    fresh = file.with_name(f"{file.name}.new")
    try:
        last = int(file.read_text(encoding="ascii")) if file.exists() else 0
        epoch = max(now, last + STEP)
        with fresh.open("w", encoding="ascii") as output:
            output.write(f"{epoch}\n")
            output.flush()
            os.fsync(output.fileno())
        fresh.replace(file)
    except (OSError, ValueError) as error:
        raise ConnectError(
            f"transport.epoch_file: {file} must be a file of this endpoint alone that it can read "
            f"and write: {error}"
        ) from error
    return epoch
