"""A batch of records: the unit of everything that moves and is processed.

A record is a value with an identity. The identity is decided by the source (which source, which
offset) and by the way through the graph, never by chance or time: a record that is processed again
has the same one, so whoever keeps identities can tell repeats.

Identities are integers. The low 64 bits are the *origin*: number of the source and offset in it.
What is above them is the *branch*: 0 until an operator makes several records of one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, islice, pairwise
from operator import eq, lt
from typing import TYPE_CHECKING, Any, Final, overload

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Batch",
    "Picked",
    "chosen",
    "put_together",
    "origin",
    "child",
    "children",
    "composed",
    "descendants",
    "MAX_SOURCES",
    "MAX_OFFSET",
]

OFFSET_BITS: Final = 48
MAX_SOURCES: Final = 1 << (64 - OFFSET_BITS)
MAX_OFFSET: Final = 1 << OFFSET_BITS
MASK: Final = (1 << 64) - 1
BRANCH: Final = 1 << 64
# Odd, and far from every small number: 2**64 over the golden ratio.
SPREAD: Final = 0x9E37_79B9_7F4A_7C15


def origin(source: int, offset: int) -> int:
    """Give the identity of a source's record."""
    return source << OFFSET_BITS | offset


def child(parent: int, salt: int, index: int) -> int:
    """Give the identity of one of several records that an operator makes of one.

    Args:
        parent: identity of the record it was made of.
        salt: of the operator.
        index: which of the records it is.
    """
    branch = ((parent >> 64) * SPREAD + salt + index) % MASK + 1  # 1 to 2**64 - 1, each once
    return (parent & MASK) | branch << 64


def composed(ids: Sequence[int]) -> int:
    """Tell batches that are put together of other records by a number, in any order of them."""
    if isinstance(ids, range):
        total = (ids[0] + ids[-1]) * len(ids) // 2 if ids else 0
    else:
        total = sum(ids)
    return (total * SPREAD + len(ids)) & MASK


def children(parent: int, salt: int, count: int) -> Sequence[int]:
    """Give the identities of the first records that an operator makes of one."""
    first = child(parent, salt, 0)
    # Numbers of branches go round at 2**64 and leave out 0; away from there they are a run.
    if 1 < first >> 64 <= MASK - count:
        return range(first, first + (count << 64), BRANCH)
    return [child(parent, salt, index) for index in range(count)]


def descendants(ids: Sequence[int], parents: Sequence[int], salt: int) -> Sequence[int]:
    """Give the identities of records of which it is known what each was made of.

    The first that is made of a record has its identity, as if there were no other.

    Args:
        ids: of the records that they were made of.
        parents: for each the place of its record among those.
        salt: of the operator.
    """
    if len(parents) == len(ids) and all(map(eq, parents, range(len(ids)))):
        return ids
    if all(map(lt, parents, islice(parents, 1, None))):  # one of each at most, in their order
        kept = bytearray(len(ids))
        for place in parents:
            kept[place] = True
        return Picked(ids, kept, len(parents))
    made: list[int] = []
    count: dict[int, int] = {}
    for place in parents:
        before = count.get(place, 0)
        count[place] = before + 1
        parent = ids[place]
        made.append(child(parent, salt, before - 1) if before else parent)
    return made


class Picked(Sequence[int]):
    """Some of the identities of a batch, listed when somebody wants to see them.

    Mostly nobody does: a filter that listed them would make an object for each record.

    Args:
        ids: all of them.
        kept: for each whether it is one of these.
        count: how many are.
    """

    __slots__ = ("_count", "_ids", "_kept", "_listed")

    def __init__(self, ids: Sequence[int], kept: Sequence[object], count: int) -> None:
        self._ids = ids
        self._kept = kept
        self._count = count
        self._listed: list[int] | None = None

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest."""
        ids = self._ids
        if isinstance(ids, range) and ids.step > 0:
            last = next(compress(reversed(ids), reversed(self._kept)))
            return next(compress(ids, self._kept)), last
        return min(self), max(self)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return compress(self._ids, self._kept) if self._listed is None else iter(self._listed)

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...

    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if place == 0 and self._count:  # asked of every batch: what kind its identities are
            return next(iter(self))
        if self._listed is None:
            self._listed = list(self)
        return self._listed[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(slots=True)
class Batch:
    """Records that travel together.

    Attributes:
        values: a list of values, or columns.
        ids: as many identities; a ``range`` where they follow each other.
        born: when the oldest of them entered the pipeline, in seconds.
    """

    values: "list[Any] | pa.RecordBatch"
    ids: Sequence[int]
    born: float = field(default=0.0, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    def part(self, start: int, end: int) -> "Batch":
        """Give the records at some places."""
        if start == 0 and end >= len(self.ids):
            return self
        values = self.values
        if isinstance(values, list):
            return Batch(values[start:end], self.ids[start:end], self.born)
        return Batch(values.slice(start, end - start), self.ids[start:end], self.born)


def chosen(values: "list[Any] | pa.RecordBatch", places: list[int]) -> Any:  # noqa: ANN401
    """Give the values at some places, perhaps none."""
    if isinstance(values, list):
        return [values[place] for place in places]
    import pyarrow as pa

    return values.take(pa.array(places, pa.int64()))


def put_together(batches: list[Batch]) -> Batch:
    """Make one batch of several."""
    if len(batches) == 1:
        return batches[0]
    ids = _joined([batch.ids for batch in batches])
    born = min(batch.born for batch in batches)
    if isinstance(batches[0].values, list):
        return Batch([value for batch in batches for value in batch.values], ids, born)
    import pyarrow as pa

    return Batch(pa.concat_batches([batch.values for batch in batches]), ids, born)


def _joined(several: list[Sequence[int]]) -> Sequence[int]:
    """Put identities one after the other, as a range if that is what they are."""
    first, last = several[0], several[-1]
    if isinstance(first, range) and isinstance(last, range):
        whole = range(first.start, last.stop, first.step)
        if all(_follows(each, other) for each, other in pairwise(several)):
            return whole
    return [each for ids in several for each in ids]


def _follows(ids: Sequence[int], others: Sequence[int]) -> bool:
    return (
        isinstance(ids, range)
        and isinstance(others, range)
        and ids.step == others.step
        and ids.stop == others.start
    )
