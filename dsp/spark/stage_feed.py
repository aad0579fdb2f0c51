"""How batches come to a plan that is built once: as a file in memory that is swapped under it.

The plan begins with a function that reads the file, a slice of it in each of its tasks.
"""

import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from dsp.spark.owned_folders import OwnedFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

__all__ = ["READER", "FileFeed"]

READER = "dsp_reads_the_batch"
"""Name of the function that reads, by which a plan is found to depend on the batch."""

# A task costs some milliseconds: a second one has to be worth it.
ROWS_PER_TASK = 2048


class FileFeed:
    """A place for one batch at a time, on a file system in memory where there is one.

    Args:
        tasks: how many read it side by side.
    """

    def __init__(self, tasks: int) -> None:
        memory = Path("/dev/shm")
        # Not left behind by a process that is killed: memory is dear.
        self._folder = OwnedFolder(memory if os.access(memory, os.W_OK) else tempfile.gettempdir())
        self._path = self._folder.path / "batch.arrow"
        self._tasks = tasks

    def put(self, batch: "pa.RecordBatch") -> None:
        """Make this the batch. Nobody may read the one before it any more."""
        import pyarrow as pa
        import pyarrow.ipc

        new = self._path.with_suffix(".new")
        with pa.OSFile(str(new), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            for start, end in slices(batch.num_rows, self._tasks):
                writer.write_batch(batch.slice(start, end - start))
        new.rename(self._path)  # whoever still maps the old file keeps it

    def reader(self) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
        """Give a function for ``mapInArrow``: of each row, a number, it makes that slice."""
        path = str(self._path)

        def dsp_reads_the_batch(numbers: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            from dsp.spark.stage_feed import read_slice

            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from read_slice(path, number)

        return dsp_reads_the_batch

    def close(self) -> None:
        """Take the place away. Safe to repeat."""
        self._folder.close()


def slices(rows: int, tasks: int) -> list[tuple[int, int]]:
    """Cut rows into a slice for each task, as few as make it worth a task."""
    used = max(1, min(tasks, rows // ROWS_PER_TASK))
    bounds = [rows * number // used for number in range(used + 1)]
    return list(pairwise(bounds))


def read_slice(path: str, number: int) -> "Iterator[pa.RecordBatch]":
    """Give a slice of the batch; nothing if there are fewer."""
    import pyarrow as pa
    import pyarrow.ipc

    with pa.memory_map(path) as file:
        reader = pa.ipc.open_file(file)
        if number < reader.num_record_batches:
            yield reader.get_batch(number)
