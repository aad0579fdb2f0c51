"""The seam between an outlet and the groupings of its edges."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

from dsp._pb.balance_pb2 import BalanceFrame, BalanceRequest
from dsp._pb.engine_pb2 import EngineProgress
from dsp.core.types import NodeId
from dsp.errors import InvariantError
from dsp.stream.batch import Batch
from dsp.stream.codecs import Payload, encode
from dsp.stream.graph import Edge
from dsp.stream.parcels import Account, Limits, Made, Progress, Sent
from dsp.stream.tokens import Token

__all__ = ["Ways", "Distribution"]


class Ways(Protocol):
    """What a grouping needs of the outlet: the ways to the successors of one edge."""

    edge: Edge
    limits: Limits

    def routes(self) -> tuple[NodeId, ...]:
        """The successors that records may be assigned to."""
        ...

    def account(self, name: NodeId) -> Account:
        """What is under way to a successor, and how much may be."""
        ...

    def room(self, name: NodeId) -> int:
        """Records that a successor takes now, as one batch."""
        ...

    def space(self, name: NodeId) -> int:
        """Records that a successor takes now, in any number of batches."""
        ...

    def is_local(self, name: NodeId) -> bool:
        """Whether a successor is in this process."""
        ...

    def assign(
        self,
        name: NodeId,
        batch: Batch,
        tokens: list[Token],
        payload: Payload | None = None,
        request: BalanceRequest | None = None,
    ) -> None:
        """Send a batch, with the tokens that it holds."""
        ...

    def assign_again(self, sent: Sent, name: NodeId) -> None:
        """Send a batch that came back, under the same number."""
        ...

    def sent_again(self) -> None:
        """A batch that came back is shared out anew, under other numbers."""
        ...

    def linger(self) -> None:
        """See to it that what is gathered leaves in a while, if not before."""
        ...

    def now(self) -> float:
        """The present time."""
        ...

    async def wait(self) -> None:
        """Wait until there may be more room, or other successors."""
        ...


class Distribution(ABC):
    """Shares out the records of one edge.

    Args:
        ways: to the successors.
    """

    def __init__(self, ways: Ways) -> None:
        self._ways = ways
        self._edge = ways.edge
        # Successors, and those of them that are in other processes.
        self._far_of: tuple[tuple[NodeId, ...], tuple[NodeId, ...]] | None = None

    @property
    def records(self) -> int:
        """Records that wait here for others with the same destination."""
        return 0

    def prepare(self, batch: Batch) -> Made:
        """Do what can be done where the batch was made, which is a worker thread.

        It may read what the loop changes, and ``emit`` checks again.
        """
        if self.wants_bytes(len(batch)):
            return Made(self._edge, batch, encode(self._edge.codec, batch.values))
        return Made(self._edge, batch)

    def prepares(self, records: int) -> bool:
        """Whether ``prepare`` takes time for a batch of so many records."""
        return self.wants_bytes(records)

    def wants_bytes(self, records: int) -> bool:
        """Whether a batch leaves whole, for another process."""
        return any(records <= self._ways.account(name).batch for name in self._far())

    def _far(self) -> tuple[NodeId, ...]:
        """Give the successors in other processes."""
        routes, far = self._ways.routes(), self._far_of
        if far is None or far[0] is not routes:
            is_local = self._ways.is_local
            far = self._far_of = (routes, tuple(name for name in routes if not is_local(name)))
        return far[1]

    @abstractmethod
    async def emit(self, made: Made, token: Token) -> None:
        """Share out records; wait while there is no room.

        Args:
            made: the records.
            token: of the input; held for every batch that is sent.
        """

    @property
    def takes_more(self) -> bool:
        """Whether there is room for another batch, which ``emit_anyway`` then takes."""
        return False

    def emit_at_once(self, made: Made, token: Token) -> bool:
        """Send records if that can be done without waiting; False if ``emit`` is to be awaited."""
        return False

    def emit_anyway(self, made: Made, token: Token) -> None:
        """Send records for which ``takes_more`` was seen, though they may be more than there is
        room for.
        """
        raise InvariantError(f"{self._edge.target}: there was never room for more")

    @abstractmethod
    def emit_again(self, sent: Sent) -> bool:
        """Find somebody for a batch that came back; False if nobody can take it now."""

    def flush(self) -> None:
        """Send what waits here, as far as there is room."""
        return

    def progress(self, sender: NodeId, progress: Progress | EngineProgress) -> None:
        """A successor tells how far it is."""
        return

    def hear(self, sender: NodeId, frame: BalanceFrame) -> Sequence[str]:
        """A successor tells of its load; give what is wrong with that."""
        return [f"a {frame.WhichOneof('body')} of {sender} makes no sense here"]

    def view_changed(self) -> None:
        """Successors came or went."""
        return
