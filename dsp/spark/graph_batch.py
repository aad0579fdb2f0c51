"""What the driver does with one micro-batch: sections one after the other, then the sinks."""

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from dsp.spark.graph_flow import COUNTS, section_function
from dsp.spark.graph_plan import Plan, is_topic
from dsp.spark.graph_sinks import SinkWriter, batch_identity
from dsp.spark.graph_stages import stage_frame
from dsp.spark.graph_topics import write_letters, write_topic
from dsp.spark.parcels import DDL, Parcel, parcels_of, unpack_ids
from dsp.stream.batch import Batch
from dsp.stream.graph import DEAD_LETTERS
from dsp.stream.letters import letter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Counts", "BatchRunner"]

logger = logging.getLogger(__name__)

# Dead letters that are logged where no sink takes them; the rest is counted.
LOGGED_FAILURES = 20


@dataclass
class Counts:
    """What was counted in batches that are done.

    Attributes:
        taken: records that each operator got; of sources, rows.
        given: records that each operator gave.
        letters: records on which each operator failed.
        batches: how many were done.
    """

    taken: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    given: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    letters: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    batches: int = 0


class BatchRunner:
    """Runs micro-batches, one at a time.

    Args:
        plan: what to do with them.
        stream: names the batches; see ``RunState``.
        retries: how often a record is tried again that a sink fails on.
        counts: where to count.
    """

    def __init__(self, plan: Plan, stream: str, retries: int, counts: Counts) -> None:
        self._plan = plan
        self._stream = stream
        self._loop = asyncio.new_event_loop()
        self._functions = [section_function(section) for section in plan.sections]
        sinks = plan.graph.sinks()
        self._topics = {sink.name: sink for sink in sinks if is_topic(sink.body)}
        self._writers = {
            sink.name: SinkWriter(sink, retries, self._loop)
            for sink in sinks
            if sink.name not in self._topics
        }
        self._logged = 0
        self.counts = counts

    def open(self) -> None:
        """Open the sinks.

        Raises:
            DspError: one of them cannot begin.
        """
        for writer in self._writers.values():
            writer.open()

    def close(self) -> None:
        """Close the sinks. No batch may be under way."""
        try:
            for writer in self._writers.values():
                writer.close()
        finally:
            self._loop.close()

    def run(self, rows: "DataFrame", number: int) -> None:
        """Run a batch: when this returns, sinks have all that came of it.

        Raises:
            SinkBroken: a sink cannot go on.
            Exception: whatever Spark raises when a job fails.
        """
        kept: list[DataFrame] = []
        found: list[Parcel] = []
        try:
            for level, function in enumerate(self._functions):
                rows = self._run_section(rows, level, function, f"{number}", kept, found)
            letters, ids = self._write(found, number)
            if DEAD_LETTERS in self._topics and letters:
                write_letters(self._topics[DEAD_LETTERS], rows.sparkSession, letters, ids)
            self._write_topics(kept)
        finally:
            for frame in kept:
                frame.unpersist()
        self.counts.batches += 1

    def _run_section(
        self,
        rows: "DataFrame",
        level: int,
        function: Any,  # noqa: ANN401 - from rows to rows
        number: str,
        kept: "list[DataFrame]",
        found: list[Parcel],
    ) -> "DataFrame":
        """Run a section; give the rows for the sections after it."""
        from pyspark import StorageLevel

        stages = self._plan.stages[level]
        staged = [at for part in stages for at in part.incoming]
        plain = rows.filter(~rows.target.isin(staged)) if staged else rows
        made: DataFrame = plain.mapInArrow(function, DDL)
        for part in stages:
            made = made.union(stage_frame(part, rows, f"{self._stream} {number}"))
        after = self._plan.sections[level + 1 :], self._plan.stages[level + 1 :]
        later = {at for section in after[0] for at in section.incoming}
        later |= {at for parts in after[1] for part in parts for at in part.incoming}
        elsewhere = [*later, *self._topic_addresses()]
        if elsewhere:
            # Read more than once, and bodies must run once.
            made = made.persist(StorageLevel.MEMORY_AND_DISK)
            kept.append(made)
            found += parcels_of(made.filter(~made.target.isin(elsewhere)).toArrow())
        else:
            found += parcels_of(made.toArrow())
        onward = made.filter(made.target.isin([*later]))
        partitions = self._plan.sections[level].partitions
        if hasattr(onward, "repartitionById"):  # from Spark 4.1 on
            return onward.repartitionById(partitions, onward.place.cast("int"))
        return onward.repartition(partitions, onward.place)

    def _topic_addresses(self) -> list[str]:
        return [at for at, edge in self._plan.arriving.items() if edge.target in self._topics]

    # -- sinks ----------------------------------------------------------------------------

    def _write(self, found: list[Parcel], number: int) -> tuple[list[dict[str, Any]], list[int]]:
        arrived: dict[str, list[Batch]] = {name: [] for name in self._writers}
        letters: list[dict[str, Any]] = []
        letter_ids: list[int] = []
        counted: list[dict[str, list[int]]] = []
        for parcel in found:
            if parcel.target == COUNTS:
                counted.append(orjson.loads(parcel.payload))
                continue
            ids = unpack_ids(parcel.ids, parcel.count)
            if parcel.target == DEAD_LETTERS:
                letters += orjson.loads(parcel.payload)
                letter_ids += ids
                continue
            edge = self._plan.arriving[parcel.target]
            arrived[edge.target].append(Batch(edge.codec.decode(parcel.payload), ids))
        for name, batches in arrived.items():
            if name == DEAD_LETTERS or not batches:
                continue
            identity = batch_identity(self._stream, name, number)
            for failure in self._writers[name].write(batches, identity):
                letters.append(letter(name, f"{name}.spark", failure))
                letter_ids.append(failure.id)
        self._bury(letters, letter_ids, number)
        self._count(counted, letters)
        return letters, letter_ids

    def _bury(self, letters: list[dict[str, Any]], ids: list[int], number: int) -> None:
        writer = self._writers.get(DEAD_LETTERS)
        if writer is not None and letters:
            identity = batch_identity(self._stream, DEAD_LETTERS, number)
            for failure in writer.write([Batch(letters, ids)], identity):
                logger.error(
                    "a dead letter cannot be written: %s\n%s", failure.error, failure.value
                )
        if writer is None and DEAD_LETTERS not in self._topics:
            for told in letters[: max(0, LOGGED_FAILURES - self._logged)]:
                logger.error(
                    "%s: record %s is a dead letter: %s\n%s",
                    told["operator"],
                    told["id"],
                    told["error"],
                    told["traceback"] or repr(told["value"]),
                )
            self._logged += len(letters)

    def _count(self, counted: list[dict[str, list[int]]], letters: list[dict[str, Any]]) -> None:
        counts = self.counts
        for each in counted:
            for name, (taken, given) in each.items():
                counts.taken[name] += taken
                counts.given[name] += given
        for told in letters:
            counts.letters[told["operator"]] += 1
        for name, writer in self._writers.items():
            counts.taken[name] = writer.records_in
            counts.given[name] = writer.records_out

    @property
    def repeats(self) -> dict[str, int]:
        """Records that sinks left out because they had them, by sink."""
        return {name: writer.repeats for name, writer in self._writers.items()}

    def _write_topics(self, kept: "list[DataFrame]") -> None:
        for name, sink in self._topics.items():
            edges = {at: e for at, e in self._plan.arriving.items() if e.target == name}
            for made in kept:
                count = write_topic(sink, edges, made)
                self.counts.taken[name] += count
                self.counts.given[name] += count
