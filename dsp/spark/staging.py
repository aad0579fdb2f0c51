"""Rows of a source on disk, where Spark's file source finds them, and how far the source was read.

A file and the position after it appear together, whatever moment a crash picks: the file is written
as a draft, the position that names it is renamed into place, and then the draft is. Who comes after
a crash renames a draft that the position names, and throws others away.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from dsp.errors import ConfigError
from dsp.spark.parcels import Parcel, rows_of
from dsp.stream.sinks.appended import sync_folder
from dsp.stream.sources.base import Position

__all__ = ["Staging"]


class Staging:
    """The folder of one source.

    Args:
        folder: for this source alone; it is made.

    Attributes:
        rows: the folder that Spark reads.
        position: where the source goes on.
        count: records that were read before that.

    Raises:
        ConfigError: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.rows = folder / "rows"
        self._state = folder / "position.json"
        self._draft = folder / "draft.parquet"
        self.position: Position = None
        self.count = 0
        self._number = 0
        try:
            self.rows.mkdir(parents=True, exist_ok=True)
            if self._state.exists():
                told = orjson.loads(self._state.read_bytes())
                self._number, self.position = told["number"], told["position"]
                self.count = told["count"]
                if told["draft"] and self._draft.exists():
                    self._publish()
            self._draft.unlink(missing_ok=True)
        except (OSError, orjson.JSONDecodeError, KeyError) as error:
            raise ConfigError(
                f"stream.state_directory: {folder} cannot be used: {error}"
            ) from error

    def put(self, parcels: Sequence[Parcel], position: Position, count: int) -> None:
        """Add rows, and remember where the source goes on after them.

        Raises:
            OSError: the disk is full, or gone.
        """
        if parcels:
            self._number += 1
            self._write(parcels)
        state: dict[str, Any] = {
            "number": self._number,
            "position": position,
            "count": count,
            "draft": bool(parcels),
        }
        new = self._state.with_suffix(".new")
        with new.open("wb") as file:
            file.write(orjson.dumps(state))
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._state)
        sync_folder(self._state.parent)
        self.position, self.count = position, count
        if parcels:
            self._publish()

    def _write(self, parcels: Sequence[Parcel]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_batches([rows_of(parcels)])
        with self._draft.open("wb") as file:
            pq.write_table(table, file, compression="none", use_dictionary=False)
            file.flush()
            os.fsync(file.fileno())

    def _publish(self) -> None:
        self._draft.rename(self.rows / f"{self._number:012}.parquet")
        sync_folder(self.rows)
