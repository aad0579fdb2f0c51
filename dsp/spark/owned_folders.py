"""Folders for the time that a process lives, also when nobody tidies up after it: after SIGKILL the
next process that makes such a folder takes the old ones away.

Each has a file that its owner keeps locked. The system lets go of the lock with the owner, whatever
ends it; and a lock is seen from another container too, where a process id would mean nothing.
"""

import fcntl
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Final

__all__ = ["PREFIX", "OwnedFolder"]

PREFIX: Final = "dsp-spark-"
_LOCK: Final = "owner.lock"


class OwnedFolder:
    """A new folder. It is gone when it is closed, forgotten, or its process ends.

    Args:
        base: where to make it.

    Attributes:
        path: of the folder.
    """

    def __init__(self, base: str | Path) -> None:
        remove_abandoned(base)
        while True:
            folder = tempfile.mkdtemp(prefix=PREFIX, dir=base)
            lock = os.open(os.path.join(folder, _LOCK), os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                break
            os.close(lock)  # somebody took it for abandoned before it was locked
        self.path = Path(folder)
        self._remove = weakref.finalize(self, _remove, folder, lock)

    def close(self) -> None:
        """Take it away, with all that is in it. Safe to repeat."""
        self._remove()


def remove_abandoned(base: str | Path) -> None:
    """Take away the folders of this user whose owners are gone."""
    for folder in Path(base).glob(f"{PREFIX}*"):
        try:
            if folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR)
        except OSError:
            continue  # it goes just now, or is somebody else's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)  # its owner is there
        else:
            _remove(str(folder), lock)


def _remove(folder: str, lock: int) -> None:
    # The lock is held until all is gone; whoever waits for it sees that its file has no name.
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
