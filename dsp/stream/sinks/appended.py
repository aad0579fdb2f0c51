"""A file that only grows, and that a crash leaves in order."""

import fcntl
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from dsp.errors import ConfigError
from dsp.stream.sinks.base import SinkBroken
from dsp.stream.sinks.identities import Identities

__all__ = ["AppendedFile", "writable_place", "whole_lines"]

logger = logging.getLogger(__name__)

TAIL = 1 << 16


def writable_place(path: Path) -> None:
    """Look whether a file can be written.

    Raises:
        ConfigError: it cannot; says why and what to do.
    """
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ConfigError(f"{path}: there is no folder {folder}; make it, or change the path")
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: name a file in it")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ConfigError(f"{path} may not be written by this user: change its permissions")


def whole_lines(file: int, size: int) -> int:
    """Give the length of a file without a last line that has no end."""
    while size > 0:
        start = max(0, size - TAIL)
        found = os.pread(file, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


class AppendedFile:
    """A file to which records are appended, with their identities beside it if asked for.

    A write is over when the bytes are in the file, on the disk with ``fsync``, and then the
    identities and the new length are noted in one step. What is behind that length after a crash
    was never acknowledged, and is cut off.

    Args:
        path: of the file.
        notes: where identities are kept.
        fsync: whether to wait for the disk.
        remember: whether to keep identities; they are kept on if there are some from before.
        whole: gives the length of the file without a last part that a crash left unfinished.
    """

    def __init__(
        self,
        path: Path,
        notes: Path,
        *,
        fsync: bool,
        remember: bool,
        whole: Callable[[int, int], int],
    ) -> None:
        self.path = path
        self._fsync = fsync
        self.identities: Identities | None = None
        try:
            is_new = not path.exists()
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise SinkBroken(f"{path} cannot be opened: {error.strerror}") from error
        try:
            self._lock()
            if is_new and fsync:
                sync_folder(path.parent)
            size = os.fstat(self._file).st_size
            if remember or notes.exists():
                self.identities = Identities(notes, fsync=fsync)
            self.length = self._recovered(size, whole)
            os.lseek(self._file, self.length, os.SEEK_SET)
        except BaseException:
            self.close()
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise SinkBroken(f"{self.path}: another application writes to it") from error

    def _recovered(self, size: int, whole: Callable[[int, int], int]) -> int:
        known = self.identities.known() if self.identities is not None else None
        if known is not None and known[0] == self.path.name:
            length = known[1]
            if size < length:
                assert self.identities is not None
                raise SinkBroken(
                    f"{self.path} has {size} bytes, and {length} were written: somebody changed "
                    f"it. Put it back, or remove {self.identities.path} to begin anew"
                )
        else:
            length = whole(self._file, size)
            if self.identities is not None:
                self.identities.commit((), self.path.name, length)
        if length < size:
            cut = os.pread(self._file, min(size - length, 200), length)
            logger.warning(
                "%s: %d bytes at its end were not acknowledged, and are cut off: %r",
                self.path,
                size - length,
                cut,
            )
            os.ftruncate(self._file, length)
        return length

    def fresh(self, ids: Sequence[int]) -> list[int]:
        """Give the places of records that are not in the file."""
        assert self.identities is not None
        return self.identities.fresh(ids)

    def forget(self, ends: Mapping[int, int]) -> None:
        """Keep no identities of records that will never come again."""
        if self.identities is not None:
            self.identities.forget(ends)

    def append(self, data: bytes, ids: Iterable[int]) -> None:
        """Append records, all of them or none.

        Raises:
            SinkBroken: that is not possible.
        """
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            if self._fsync:
                os.fsync(self._file)
            if self.identities is not None:
                self.identities.commit(ids, self.path.name, self.length + len(data))
        except (OSError, SinkBroken) as error:
            os.ftruncate(self._file, self.length)
            os.lseek(self._file, self.length, os.SEEK_SET)
            if isinstance(error, SinkBroken):
                raise
            raise SinkBroken(f"{self.path} cannot be written: {error.strerror}") from error
        self.length += len(data)

    def read(self) -> bytes:
        """Give all that is in the file."""
        return os.pread(self._file, self.length, 0)

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)  # and of the lock
            self._file = -1
        if self.identities is not None:
            self.identities.close()


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in a folder."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
