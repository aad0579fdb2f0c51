"""A batch of records: the unit of everything that moves and is processed.

A record is a value with an identity. The identity is decided by the source (which source, which
offset) and by the way through the graph, never by chance or time: a record that is processed again
has the same one, so whoever keeps identities can tell repeats.

Identities are integers. The low 64 bits are the *origin*: number of the source and offset in it.
What is above them is the *branch*: 0 until an operator makes several records of one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Batch",
    "chosen",
    "put_together",
    "origin",
    "child",
    "children",
    "composed",
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
    branch = ((parent >> 64) * SPREAD + salt + index + 1) & MASK
    return (parent & MASK) | (branch or 1) << 64


def composed(ids: Sequence[int]) -> int:
    """Tell batches that are put together of other records by a number, in any order of them."""
    return (sum(ids) * SPREAD + len(ids)) & MASK


def children(parent: int, salt: int, count: int) -> Sequence[int]:
    """Give the identities of the first records that an operator makes of one."""
    first = child(parent, salt, 0)
    # Numbers of branches go round at 2**64 and leave out 0; away from there they are a run.
    if 1 < first >> 64 <= MASK - count:
        return range(first, first + (count << 64), BRANCH)
    return [child(parent, salt, index) for index in range(count)]


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
    ids = [each for batch in batches for each in batch.ids]
    born = min(batch.born for batch in batches)
    if isinstance(batches[0].values, list):
        return Batch([value for batch in batches for value in batch.values], ids, born)
    import pyarrow as pa

    return Batch(pa.concat_batches([batch.values for batch in batches]), ids, born)
