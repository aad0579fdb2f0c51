"""Partial key grouping: a key has two owners, and each record goes to the one that got less.

After "The Power of Both Choices" (Nasir et al., 2015). A frequent key is shared by two instances,
so a skewed stream spreads far better than by one owner, and whoever puts states of a key together
has two to ask at most. How much an owner got is counted by each sender alone, which balances the
sum as well.
"""

from collections.abc import Sequence
from typing import Any

from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.groupings.base import Ways
from dsp.stream.groupings.owners import MOST_REMEMBERED, Owners, divided, key_bytes, rows_of, weight
from dsp.stream.groupings.split import Owned

__all__ = ["PartialKey", "TwoOwners"]


class TwoOwners(Owners):
    """The two instances that may get the records of a key: the largest two by rendezvous hashing.

    When an instance comes or goes, only keys that it gets or had change one of their owners.
    """

    def __init__(self, instances: Sequence[NodeId]) -> None:
        super().__init__(instances)
        self._pairs: dict[Any, tuple[NodeId, NodeId]] = {}

    def pair(self, key: Any) -> tuple[NodeId, NodeId]:  # noqa: ANN401
        """Give both owners of a key; the same twice if there is one instance alone."""
        pair = self._pairs.get(key)
        if pair is None:
            data = key_bytes(key)
            ranked = sorted(self._names, key=lambda each: weight(data, each[1]), reverse=True)
            pair = ranked[0][0], ranked[min(1, len(ranked) - 1)][0]
            if len(self._pairs) >= MOST_REMEMBERED:
                self._pairs.clear()
            self._pairs[key] = pair
        return pair


class PartialKey(Owned):
    """A record goes to that owner of its key which got fewer records."""

    def __init__(self, ways: Ways) -> None:
        super().__init__(ways)
        self._given: dict[NodeId, int] = {}

    def _make_owners(self, routes: tuple[NodeId, ...]) -> Owners:
        # A newcomer begins where the least is: it must not get everything until it has caught up.
        least = min(self._given.values(), default=0)
        self._given = {name: self._given.get(name, least) - least for name in routes}
        return TwoOwners(routes)

    def prepares(self, records: int) -> bool:
        return False

    def _parts(self, batch: Batch, owners: Owners) -> dict[NodeId, Batch]:
        key, given = self._edge.key, self._given
        assert key is not None
        assert isinstance(owners, TwoOwners)
        targets = []
        for value in rows_of(batch):
            one, other = owners.pair(key(value))
            target = one if given[one] <= given[other] else other
            given[target] += 1
            targets.append(target)
        return divided(batch, targets)
