"""A streaming query that never ends, fed by files or by a data source in Python."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from bench.stage_parts.work import BATCH, Offer, Way, work

COLUMNS = "id long, zone long, fare double, tip double"
PATIENCE = 120.0


class Query(Way):
    """Batches are written into a folder in memory; what comes out is taken in ``foreachBatch``."""

    def __init__(self, session: Any, fed_by: str) -> None:  # noqa: ANN401
        super().__init__(session)
        self.name = f"streaming query fed by {fed_by}, foreachBatch"
        self._fed_by = fed_by

    def run(self, batches: list[pa.RecordBatch], offered: Offer) -> int:
        base = tempfile.mkdtemp(prefix="dsp-bench-", dir="/dev/shm")
        folder = Path(base, "in")
        folder.mkdir()
        expected, seen, primed, rows = len(batches), Event(), Event(), [0]
        self._write(folder, 0, [batches[0]])
        past: set[int] = set()

        def take(frame: Any, _: int) -> None:  # noqa: ANN401
            made = frame.toArrow()
            if not primed.is_set():
                primed.set()
                return
            rows[0] += made.num_rows
            offered.seen(made.column("id"))
            past.update(each // BATCH for each in made.column("id").to_pylist())
            if len(past) == expected:
                seen.set()

        reader = self.session.readStream
        if self._fed_by == "files":
            frame = reader.schema(COLUMNS).parquet(str(folder))
        else:
            self.session.dataSource.register(FolderSource)
            frame = reader.format("dsp-bench").option("folder", str(folder)).load()
        query = (
            work(frame).writeStream.option("checkpointLocation", f"{base}/state").foreachBatch(take)
        ).start()
        if not primed.wait(PATIENCE):
            raise TimeoutError(f"{self.name} does not begin: {query.exception()}")
        feeder = Thread(target=self._feed, args=(folder, batches, offered))
        feeder.start()
        if not seen.wait(PATIENCE):
            raise TimeoutError(
                f"{self.name}: {len(past)} of {expected} batches; {query.exception()}"
            )
        feeder.join()
        query.stop()
        shutil.rmtree(base)
        return rows[0]

    def _feed(self, folder: Path, batches: list[pa.RecordBatch], offered: Offer) -> None:
        offered.began = time.perf_counter()  # what a query needs to begin is not counted
        while numbers := offered.take(100):
            self._write(folder, numbers[0] + 1, [batches[number] for number in numbers])

    def _write(self, folder: Path, number: int, batches: list[pa.RecordBatch]) -> None:
        table, path = pa.Table.from_batches(batches), folder / f"{number:08}"
        # Spark leaves out what begins with a dot, and takes everything else.
        new = folder / f".{number:08}"
        if self._fed_by == "files":
            pq.write_table(table, new)
            os.rename(new, path.with_suffix(".parquet"))
            return
        with pa.OSFile(str(new), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        os.rename(new, path.with_suffix(".arrow"))


class FolderSource(DataSource):
    """Arrow files of a folder as a stream."""

    @classmethod
    def name(cls) -> str:
        """Give the name of the format."""
        return "dsp-bench"

    def schema(self) -> str:
        """Give the columns."""
        return COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ANN401
        """Give what reads."""
        return FolderReader(self.options["folder"])


class FolderReader(DataSourceStreamReader):
    """Reads files by their place in the order of their names."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def _files(self) -> list[str]:
        return sorted(name for name in os.listdir(self._folder) if name.endswith(".arrow"))

    def initialOffset(self) -> dict[str, int]:
        """Begin with the first file."""
        return {"files": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]
        """Give how many files there are."""
        return {"files": len(self._files())}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Give a task for each of two halves."""
        files = self._files()[start["files"] : end["files"]]
        return [InputPartition(half) for half in (files[::2], files[1::2]) if half]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of a task."""
        for name in partition.value:
            with pa.memory_map(os.path.join(self._folder, name)) as file:
                reader = pa.ipc.open_file(file)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is thrown away: the folder goes as a whole."""
