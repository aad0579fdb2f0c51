"""Which records were here before, by their identities."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from operator import itemgetter

from dsp.stream.batch import BRANCH, MASK, Picked

__all__ = ["Seen"]

ENOUGH = 1 << 17
# Batches that may overlap with a new one before their ends are no help any more.
MOST_NEAR = 4

Span = tuple[int, int, int, Sequence[int]]
"""Least and greatest identity of a batch, its number, and all of them."""

LEAST = itemgetter(0)


class Spans:
    """Remembers whole batches: mostly no other comes between, so their ends tell that one is new.

    Args:
        enough: identities to remember, at least.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._sorted: list[Span] = []
        self._widest = 0
        self._count = 0
        self._number = 0
        self.all: deque[Span] = deque()

    def near(self, ids: Sequence[int]) -> list[Span] | None:
        """Give the batches that overlap with another; None if some of its records have branches."""
        least, greatest = _ends(ids)
        if greatest >> 64:
            return None
        start = bisect_left(self._sorted, least - self._widest, key=LEAST)
        end = bisect_left(self._sorted, greatest + 1, key=LEAST)
        return [span for span in self._sorted[start:end] if span[1] >= least]

    def add(self, ids: Sequence[int]) -> bool:
        """Remember a batch, unless some of its records have branches; tell whether it is."""
        least, greatest = _ends(ids)
        if greatest >> 64:
            return False
        self._number += 1
        span = (least, greatest, self._number, ids)
        insort(self._sorted, span)
        self.all.append(span)
        self._widest = max(self._widest, greatest - least)
        self._count += len(ids)
        while self._count - len(self.all[0][3]) >= self._enough:
            oldest = self.all.popleft()
            self._count -= len(oldest[3])
            del self._sorted[bisect_left(self._sorted, oldest)]
        return True


class Runs:
    """Remembers what bodies by batch made: batches of one origin, with branches in turn.

    Args:
        enough: identities to remember, at least.
    """

    def __init__(self, enough: int) -> None:
        self._enough = enough
        self._of: dict[int, list[range]] = {}
        self._count = 0
        self.all: deque[range] = deque()

    def near(self, ids: range) -> list[range]:
        """Give the batches that overlap with another."""
        known = self._of.get(ids[0] & MASK, ())
        return [run for run in known if run[0] <= ids[-1] and ids[0] <= run[-1]]

    def add(self, ids: range) -> None:
        """Remember a batch."""
        self._of.setdefault(ids[0] & MASK, []).append(ids)
        self.all.append(ids)
        self._count += len(ids)
        while self._count - len(self.all[0]) >= self._enough:
            oldest = self.all.popleft()
            self._count -= len(oldest)
            of = self._of[oldest[0] & MASK]
            of.remove(oldest)
            if not of:
                del self._of[oldest[0] & MASK]


class Seen:
    """Remembers identities: the last ``enough`` of them at least, some times as many at most.

    By batches first, which costs next to nothing for each record; one by one from the moment on
    in which batches are found to be mixed, as they are after a grouping by key.
    """

    def __init__(self, enough: int = ENOUGH) -> None:
        self._enough = enough
        self._spans: Spans | None = Spans(enough)
        self._runs = Runs(enough)
        self._new: set[int] = set()
        self._old: set[int] = set()

    def fresh(self, ids: Sequence[int]) -> list[bool] | None:
        """Tell for each identity whether it is new; None if all are."""
        if not len(ids):
            return None
        if self._spans is not None:
            if (run := _as_run(ids)) is not None:
                met = self._runs.near(run)
                return [not any(each in old for old in met) for each in run] if met else None
            near = self._spans.near(ids)
            if near is not None and len(near) <= MOST_NEAR:
                old = {each for span in near for each in span[3]}
                return None if old.isdisjoint(ids) else [each not in old for each in ids]
            self._one_by_one(self._spans)
        if self._new.isdisjoint(ids) and self._old.isdisjoint(ids):
            return None
        return [each not in self._new and each not in self._old for each in ids]

    def add(self, ids: Sequence[int]) -> None:
        """Remember identities."""
        if not len(ids):
            return
        if self._spans is not None:
            if (run := _as_run(ids)) is not None:
                self._runs.add(run)
                return
            if self._spans.add(ids):
                return
            self._one_by_one(self._spans)
        self._new.update(ids)
        if len(self._new) >= self._enough:
            self._old, self._new = self._new, set()

    def _one_by_one(self, spans: Spans) -> None:
        self._spans = None
        for _, _, _, ids in spans.all:
            self.add(ids)
        for run in self._runs.all:
            self.add(run)
        self._runs = Runs(self._enough)


def _as_run(ids: Sequence[int]) -> range | None:
    """Give the identities as a run of branches, if that is what they are."""
    if not ids[0] >> 64:
        return None
    if len(ids) == 1:
        return range(ids[0], ids[0] + BRANCH, BRANCH)
    return ids if isinstance(ids, range) and ids.step == BRANCH else None


def _ends(ids: Sequence[int]) -> tuple[int, int]:
    if isinstance(ids, range) and ids.step > 0:
        return ids[0], ids[-1]
    if isinstance(ids, Picked):
        return ids.ends
    return min(ids), max(ids)
