"""What an outlet keeps: batches on their way, and how much is under way to each successor."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from dsp._pb.balance_pb2 import BalanceRequest
from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.codecs import Payload, decode
from dsp.stream.graph import Edge
from dsp.stream.groupings.owners import Owners
from dsp.stream.tokens import Token

__all__ = ["VALUE_BYTES", "Limits", "Sent", "Made", "Account", "Progress"]

# What a value is taken to weigh where it is handed over in this process, and not in bytes.
VALUE_BYTES = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be under way.

    Attributes:
        window: records to one successor, until it says otherwise.
        batch: records in one batch, until it says otherwise.
        size: bytes to one successor.
        enough: records that are put together where they are grouped by key.
        linger: seconds for which they are.
    """

    window: int
    batch: int
    size: int
    enough: int
    linger: float


@dataclass(slots=True, eq=False)
class Sent:
    """A batch that was assigned and is not done."""

    sequence: int
    edge: Edge
    to: NodeId
    batch: Batch | None
    payload: Payload | None
    ids: Sequence[int]
    born: float
    size: int
    tokens: list[Token] = field(default_factory=list)
    request: BalanceRequest | None = None

    def release(self) -> None:
        """Let go of the inputs that it came of."""
        tokens, self.tokens = self.tokens, []
        for token in tokens:
            token.release()

    def whole(self) -> Batch:
        """Give the records, decoded if only their bytes are kept."""
        if self.batch is not None:
            return self.batch
        assert self.payload is not None
        return Batch(decode(self.edge.codec, self.payload), self.ids, self.born)


@dataclass(slots=True)
class Made:
    """Records for one edge that a body made, perhaps with bytes, owners' parts, or keys."""

    edge: Edge
    batch: Batch
    payload: Payload | None = None
    owners: Owners | None = None
    parts: dict[NodeId, Batch] | None = None
    keys: list[bytes] | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a successor is, as it tells who sent; ``EngineProgress`` where that is elsewhere.

    Attributes:
        done: numbers of batches that are done.
        delivered: batches that have arrived, where that is all that is asked for.
        records: that it has taken since it told last.
        bytes: likewise.
        window: records that may be under way to it from now on.
        batch: records that one batch may hold.
        worked: records that went through the body, where the sender wants to know that.
    """

    done: Sequence[int]
    delivered: int
    records: int
    bytes: int
    window: int
    batch: int
    worked: int = 0


@dataclass(slots=True)
class Account:
    """What is under way to one successor, and how much may be.

    Attributes:
        window: records that may be.
        batch: records that one batch may hold.
        records: that it has not taken.
        size: bytes of them.
        unexecuted: records that did not go through its body, as far as it tells that.
    """

    window: int
    batch: int
    records: int = 0
    size: int = 0
    unexecuted: int = 0
