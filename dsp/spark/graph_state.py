"""Where a run keeps what a restart needs: Spark's checkpoint, the rows of sources, its name."""

import fcntl
import os
import tempfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import orjson

from dsp.errors import ConfigError
from dsp.spark.owned_folders import OwnedFolder

__all__ = ["RunState"]


class RunState:
    """The folder of a run. One process at a time has it.

    Args:
        directory: ``stream.state_directory``; None for a folder that is removed at the end.
        application: name of the pipeline.
        sources: names of its sources; a checkpoint is of these and no others.

    Attributes:
        stream: names the batches of this folder: another folder has other batches.

    Raises:
        ConfigError: the folder cannot be used, or is in use, or is of other sources.
    """

    def __init__(self, directory: str | None, application: str, sources: Sequence[str]) -> None:
        self._temporary: OwnedFolder | None = None
        if directory is None:
            self._temporary = OwnedFolder(tempfile.gettempdir())
            directory = str(self._temporary.path)
        self.folder = Path(directory).absolute() / f"{application}.spark"
        self._lock: IO[str] | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / "lock").open("w")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.stream = self._named(sources)
        except BlockingIOError as error:
            self.close()
            raise ConfigError(
                f"stream.state_directory: another run of {application!r} uses {self.folder}"
            ) from error
        except OSError as error:
            self.close()
            raise ConfigError(
                f"stream.state_directory: {self.folder} cannot be used: {error}"
            ) from error
        except ConfigError:
            self.close()
            raise

    def _named(self, sources: Sequence[str]) -> str:
        path = self.folder / "stream.json"
        if path.exists():
            told = orjson.loads(path.read_bytes())
            if told["sources"] != [*sources]:
                raise ConfigError(
                    f"stream.state_directory: {self.folder} is of a pipeline with the sources "
                    f"{', '.join(told['sources'])}, and this one has {', '.join(sources)}: choose "
                    "another directory, or remove that folder to begin anew"
                )
            return str(told["stream"])
        name = uuid.uuid4().hex
        new = path.with_suffix(".new")
        new.write_bytes(orjson.dumps({"stream": name, "sources": [*sources]}))
        os.replace(new, path)
        return name

    @property
    def checkpoint(self) -> str:
        """The folder for Spark's checkpoint."""
        return str(self.folder / "checkpoint")

    def of_source(self, name: str) -> Path:
        """Give the folder for the rows of a source."""
        return self.folder / "sources" / name

    def close(self) -> None:
        """Let go of the folder. Safe to repeat."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        if self._temporary is not None:
            self._temporary.close()
            self._temporary = None
