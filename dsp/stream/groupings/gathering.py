"""Records on their way to different successors: gathered until there are enough to send."""

from collections.abc import Callable

from dsp._pb.balance_pb2 import BalanceRequest
from dsp.core.types import NodeId
from dsp.stream.batch import Batch, put_together
from dsp.stream.groupings.base import Ways
from dsp.stream.tokens import Token, holding

__all__ = ["Gathering", "Waiting"]

# Records, the token that they hold, and the seconds of work that they are taken for.
Waiting = tuple[Batch, Token, float]


class Gathering:
    """What waits to be sent on one edge, by successor.

    Args:
        ways: to the successors.
        asked: called for each batch that leaves with the successor and the work that stays behind;
            gives what to send along.
    """

    def __init__(
        self, ways: Ways, asked: Callable[[NodeId, float], BalanceRequest | None] | None = None
    ) -> None:
        self._ways = ways
        self._asked = asked
        self._parts: dict[NodeId, list[Waiting]] = {}
        self._counts: dict[NodeId, int] = {}
        self.records = 0

    def waiting_for(self, name: NodeId) -> int:
        """How many records wait for a successor."""
        return self._counts.get(name, 0)

    def add(self, name: NodeId, batch: Batch, token: Token, work: float = 0.0) -> None:
        """Take records for a successor; hold the token."""
        self._parts.setdefault(name, []).append((batch, token.hold(), work))
        self._counts[name] = count = self._counts.get(name, 0) + len(batch)
        self.records += len(batch)
        if count >= self._ways.limits.enough:
            self.flush(name)

    def flush(self, name: NodeId) -> None:
        """Send what waits for a successor, as far as there is room."""
        parts = self._parts.get(name)
        if not parts or name not in self._ways.routes():
            return
        while parts and (room := self._ways.room(name)) > 0:
            taken = [parts.pop(0)]
            records = len(taken[0][0])
            while parts and records + len(parts[0][0]) <= room:
                taken.append(parts.pop(0))
                records += len(taken[-1][0])
            batch = put_together([part for part, _, _ in taken])
            tokens = [token for _, token, _ in taken]
            if records > room:
                share = 1.0 - room / records
                rest = batch.part(room, records)
                parts.insert(0, (rest, holding(tokens), share * sum(work for _, _, work in taken)))
                batch, records = batch.part(0, room), room
            self._counts[name] -= records
            self.records -= records
            request = None
            if self._asked is not None:
                request = self._asked(name, sum(work for _, _, work in parts))
            self._ways.assign(name, batch, tokens, request=request)

    def flush_all(self) -> None:
        """Send everything, as far as there is room."""
        for name in list(self._parts):
            self.flush(name)

    def take_back(self, name: NodeId) -> list[Waiting]:
        """Give up what waits for a successor."""
        self.records -= self._counts.pop(name, 0)
        return self._parts.pop(name, [])

    def names(self) -> list[NodeId]:
        """The successors that something waits for, or did."""
        return list(self._parts)
