"""How far a source is: what of it is dealt with, and where it goes on after a restart."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsp.stream.sources.base import Position

__all__ = ["OffsetTracker", "Ends", "ends_of", "LANE_BITS"]


Ends = Mapping[int, int]
"""Behind the last record: an identity for each lane of them, by the lane.

Sources number records so that later ones have larger numbers, within lanes of 2**36 numbers: those
of Kafka are a partition each, others have one.
"""

LANE_BITS = 36


def ends_of(ids: Sequence[int]) -> Ends:
    """Give the ends of records that were read together."""
    if isinstance(ids, range) and len(ids) and ids[0] >> LANE_BITS == ids[-1] >> LANE_BITS:
        return {ids[0] >> LANE_BITS: ids[-1] + 1}
    ends: dict[int, int] = {}
    for each in ids:
        lane = each >> LANE_BITS
        ends[lane] = max(ends.get(lane, 0), each + 1)
    return ends


@dataclass(slots=True, eq=False)
class Pending:
    """A chunk that was read."""

    records: int
    position: Position
    ends: Ends
    done: bool = False


class OffsetTracker:
    """Finds the longest beginning of a source of which everything is dealt with.

    Attributes:
        count: records in it.
        position: where the source goes on after it.
        ends: of what was dealt with in this run.
    """

    def __init__(self, position: Position, count: int) -> None:
        self.ends: dict[int, int] = {}
        self.position = position
        self.count = count
        self._pending: deque[Pending] = deque()

    @property
    def open(self) -> int:
        """Chunks that are not dealt with."""
        return len(self._pending)

    @property
    def unfinished(self) -> int:
        """Records that are not dealt with."""
        return sum(pending.records for pending in self._pending if not pending.done)

    def read(self, records: int, position: Position, ends: Ends) -> Pending:
        """A chunk was read."""
        pending = Pending(records, position, ends)
        self._pending.append(pending)
        return pending

    def done(self, pending: Pending) -> bool:
        """A chunk is dealt with. True if the beginning grew."""
        pending.done = True
        grew = False
        while self._pending and self._pending[0].done:
            first = self._pending.popleft()
            self.count += first.records
            self.position = first.position
            self.ends.update(first.ends)
            grew = True
        return grew
