"""What a worker of Spark does with a section of a graph: the bodies, called as the mesh calls them.

Between operators of one section records stay what they are; only what leaves it is encoded. The
same ``Step`` calls the bodies as on the mesh, so retries, dead letters and identities are the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final

import orjson

from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.spark.graph_readers import Reader
from dsp.spark.graph_stages import fit_stage
from dsp.spark.parcels import Parcel, pack_ids, parcels_of, rows_of, unpack_ids
from dsp.spark.workers import worker_loop
from dsp.stream.batch import Batch, child
from dsp.stream.codecs import encode
from dsp.stream.fitting import fit
from dsp.stream.graph import DEAD_LETTERS, Edge, Kind, Operator
from dsp.stream.groupings.owners import Owners, split
from dsp.stream.letters import letter
from dsp.stream.steps import Failure, Step

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COUNTS", "Section", "Flow", "address", "section_function"]

COUNTS: Final = " counts"
"""Target of rows that tell what was counted; no operator has such a name."""


@dataclass(frozen=True)
class Section:
    """Operators that run in one function of Spark. Frozen: all that is sent to workers.

    Attributes:
        operators: by name, each after those that send to it; sources without their body.
        edges: from them.
        incoming: edges to them from earlier sections, by their ``address``.
        readers: of the sources among them.
        retries: how often a record is tried again on which a body raises.
        partitions: over which records are spread by key.
        taken: the columns that stages on Spark take, by their names.
    """

    operators: Mapping[str, Operator]
    edges: tuple[Edge, ...]
    incoming: Mapping[str, Edge]
    readers: Mapping[str, Reader]
    retries: int
    partitions: int
    taken: "Mapping[str, pa.Schema]" = field(default_factory=dict)


class Flow:
    """A section at work, in one task.

    Args:
        section: what to do.
    """

    def __init__(self, section: Section) -> None:
        self._section = section
        self._steps = {
            name: Step(operator, section.retries)
            for name, operator in section.operators.items()
            if operator.kind is not Kind.SOURCE
        }
        self._edges = {
            name: [edge for edge in section.edges if edge.source == name]
            for name in section.operators
        }
        self._owners = Owners([NodeId(str(place)) for place in range(section.partitions)])
        self._counts: dict[str, list[int]] = {
            name: [0, 0] for name in (*section.operators, *section.taken)
        }
        self._ready: list[Parcel] = []
        self._turn = 0

    def take(self, rows: "pa.RecordBatch") -> Iterator["pa.RecordBatch"]:
        """Process rows that came in; give rows that go out."""
        for target, parcels in groupby(parcels_of(rows), key=lambda parcel: parcel.target):
            yield from self._take(target, list(parcels))

    def _take(self, target: str, parcels: list[Parcel]) -> Iterator["pa.RecordBatch"]:
        edge = self._section.incoming.get(target)
        if (reader := self._section.readers.get(target)) is not None:
            for batch, failures in reader.read(parcels):
                self._counts[target][1] += len(batch)
                self._bury(target, failures)
                self._send(target, batch)
                yield from self._out()
            self._counts[target][0] += len(parcels)
        elif edge is not None:
            for parcel in parcels:
                ids = unpack_ids(parcel.ids, parcel.count)
                self._work(edge.target, Batch(edge.codec.decode(parcel.payload), ids))
                yield from self._out()
        else:
            # For another section, or the driver.
            self._ready += parcels
            yield from self._out()

    def give(self, name: str, batch: Batch) -> Iterator["pa.RecordBatch"]:
        """Send on what an operator made elsewhere."""
        self._counts[name][1] += len(batch)
        self._send(name, batch)
        yield from self._out()

    def finish(self) -> "pa.RecordBatch":
        """Give what was counted."""
        return rows_of([Parcel(COUNTS, 0, 0, b"", orjson.dumps(self._counts))])

    def _out(self) -> Iterator["pa.RecordBatch"]:
        if self._ready:
            ready, self._ready = self._ready, []
            yield rows_of(ready)

    # -- records --------------------------------------------------------------------------

    def _work(self, name: str, batch: Batch) -> None:
        if not len(batch):
            return
        step = self._steps[name]
        self._counts[name][0] += len(batch)
        if step.is_async:
            outcome = worker_loop().run_until_complete(step.run_async(batch))
        else:
            outcome = step.run(batch)
        self._bury(name, outcome.failures)
        for each in outcome.batches:
            self._send(name, each)

    def _send(self, name: str, batch: Batch) -> None:
        for edge in self._edges[name]:
            if edge.target == DEAD_LETTERS:
                continue
            if self._section.operators[name].kind is not Kind.SOURCE:
                self._counts[name][1] += len(batch)
            # The same record may come another way too.
            ids = [child(each, edge.tag, 0) for each in batch.ids] if edge.tag else batch.ids
            tagged = Batch(batch.values, ids)
            if edge.target in self._section.operators and edge.key is None:
                self._work(edge.target, tagged)
            else:
                self._leave(edge, tagged)

    def _leave(self, edge: Edge, batch: Batch) -> None:
        """Make rows of records that leave the section."""
        if (schema := self._section.taken.get(edge.target)) is not None:
            batch, failures = fit_stage(batch, schema, f"{edge.source} -> {edge.target}")
            self._bury(edge.source, failures)
            self._counts[edge.target][0] += len(batch)
        if not len(batch):
            return
        if edge.key is not None:
            parts = self._split(edge, batch)
        else:
            parts = {self._turn: batch}
            self._turn = (self._turn + 1) % self._section.partitions
        for place, part in parts.items():
            try:
                payload = encode(edge.codec, part.values)
            except CodecError:
                part, failures = fit(edge, part)
                self._bury(edge.source, failures)
                if not len(part):
                    continue
                try:
                    payload = encode(edge.codec, part.values)
                except CodecError:
                    # Each for itself becomes columns; together they have different ones.
                    for at in range(len(part)):
                        self._leave(edge, part.part(at, at + 1))
                    continue
            target = address(edge)
            self._ready.append(Parcel(target, place, len(part), pack_ids(part.ids), bytes(payload)))

    def _split(self, edge: Edge, batch: Batch) -> dict[int, Batch]:
        assert edge.key is not None
        try:
            parts = split(batch, edge.key, self._owners)
        except Exception as error:
            if len(batch) == 1:
                value = batch.values[0] if isinstance(batch.values, list) else batch.values
                what = f"{edge.source} -> {edge.target}: key_by: {type(error).__name__}: {error}"
                self._bury(edge.source, [Failure(batch.ids[0], value, what, "")])
                return {}
            for place in range(len(batch)):
                self._leave(edge, batch.part(place, place + 1))
            return {}
        return {int(owner): part for owner, part in parts.items()}

    def _bury(self, name: str, failures: Sequence[Failure]) -> None:
        if not failures:
            return
        letters = [letter(name, f"{name}.spark", failure) for failure in failures]
        ids = [failure.id for failure in failures]
        # A letter has only what JSON can hold: see ``letter``.
        payload = orjson.dumps(letters)
        self._ready.append(Parcel(DEAD_LETTERS, 0, len(ids), pack_ids(ids), payload))


def address(edge: Edge) -> str:
    """Give the target of rows on an edge: the codec of each edge may be another one."""
    return f"{edge.source} {edge.target}"


def section_function(
    section: Section,
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Give a section as a function for ``mapInArrow``."""

    def dsp_section(rows: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        flow = Flow(section)
        for batch in rows:
            yield from flow.take(batch)
        yield flow.finish()

    return dsp_section
