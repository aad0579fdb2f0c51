"""Groupings that look at each record, and gather what goes to the same successor."""

from abc import abstractmethod

from dsp._pb.balance_pb2 import BalanceRequest
from dsp._pb.engine_pb2 import EngineProgress
from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.groupings.base import Distribution, Ways
from dsp.stream.groupings.gathering import Gathering
from dsp.stream.groupings.owners import Owners, split
from dsp.stream.parcels import Made, Progress, Sent
from dsp.stream.tokens import Token

__all__ = ["Split", "Owned", "ByKey"]


class Split(Distribution):
    """Splits batches; what is common to all groupings that do."""

    def __init__(self, ways: Ways) -> None:
        super().__init__(ways)
        self._gathering = Gathering(ways, self._asked)

    @property
    def records(self) -> int:
        return self._gathering.records

    def prepares(self, records: int) -> bool:
        return True

    def flush(self) -> None:
        self._gathering.flush_all()

    def progress(self, sender: NodeId, progress: Progress | EngineProgress) -> None:
        self._gathering.flush(sender)

    async def emit(self, made: Made, token: Token) -> None:
        ways = self._ways
        while not ways.routes():
            await ways.wait()
        self._add(made, token)
        ways.linger()
        limits = ways.limits
        while self._gathering.records > max(limits.window, limits.enough):
            await ways.wait()

    def emit_again(self, sent: Sent) -> bool:
        if not self._ways.routes():
            return False
        self._ways.sent_again()
        token = Token(sent.release)
        self._add(Made(self._edge, sent.whole()), token)
        token.release()
        self.flush()
        return True

    @abstractmethod
    def _add(self, made: Made, token: Token) -> None:
        """Gather records for successors, of whom there is one at least."""

    def _asked(self, name: NodeId, behind: float) -> BalanceRequest | None:
        """A batch leaves: give what to send along."""
        return None


class Owned(Split):
    """The successors that there are decide, with its key, where a record goes."""

    _owners: Owners | None = None

    @abstractmethod
    def _make_owners(self, routes: tuple[NodeId, ...]) -> Owners:
        """Make what tells owners."""

    @property
    def owners(self) -> Owners:
        """Who owns which key now; the same object while nobody comes or goes."""
        routes = self._ways.routes()
        if self._owners is None or self._owners.instances != routes:
            self._owners = self._make_owners(routes)
        return self._owners

    def _parts(self, batch: Batch, owners: Owners) -> dict[NodeId, Batch]:
        assert self._edge.key is not None
        return split(batch, self._edge.key, owners)

    def _add(self, made: Made, token: Token) -> None:
        owners = self.owners
        parts = made.parts if made.owners is owners else None
        if parts is None:
            parts = self._parts(made.batch, owners)
        for name, part in parts.items():
            self._gathering.add(name, part, token)

    def view_changed(self) -> None:
        """Split anew what waits: it may have other owners."""
        routes = self._ways.routes()
        # Without anybody left, what waits belongs to nobody until somebody comes.
        if self._owners is None or not routes or self._owners.instances == routes:
            return
        gathering = self._gathering
        waiting = [each for name in gathering.names() for each in gathering.take_back(name)]
        for batch, token, _ in waiting:
            self._add(Made(self._edge, batch), token)
            token.release()


class ByKey(Owned):
    """All records of a key go to its owner."""

    def _make_owners(self, routes: tuple[NodeId, ...]) -> Owners:
        return Owners(routes)

    def prepare(self, batch: Batch) -> Made:
        owners = self.owners
        return Made(self._edge, batch, owners=owners, parts=self._parts(batch, owners))
