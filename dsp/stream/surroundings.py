"""What an outlet needs of the instance that it belongs to."""

from collections.abc import Sequence
from typing import Protocol

from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.parcels import Sent
from dsp.stream.steps import Failure
from dsp.stream.tokens import Token

__all__ = ["Relay", "Surroundings"]


class Surroundings(Protocol):
    """What an outlet needs of its instance."""

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        """The successors that records may be assigned to."""
        ...

    def assigned(self, to: NodeId, batches: int) -> None:
        """Batches will be sent."""
        ...

    def confirmed(self, by: NodeId, batches: int) -> None:
        """Batches are done, or will not arrive."""
        ...

    def transmit(self, sent: Sent) -> None:
        """Send a batch."""
        ...

    def is_local(self, name: NodeId) -> bool:
        """Whether an instance is in this process."""
        ...

    def blocked(self, waiting: bool) -> None:
        """Outputs begin or cease to wait for room."""
        ...

    def unfit(self, failures: Sequence[Failure], born: float, token: Token) -> None:
        """Records that the codec of an edge cannot hold are left out: they become dead letters.

        The token is released when they are on their way; until then ``burying`` counts them.
        """
        ...


class Relay(Protocol):
    """How an outlet has records processed at once, by a successor in this process."""

    def relay(self, to: NodeId, batch: Batch) -> Token | None:
        """Let a successor process records now.

        Returns:
            What is still to be done for them, perhaps nothing; None if they have to queue.
        """
        ...

    def adopt(self, sent: Sent, token: Token) -> None:
        """Have a successor tell when nothing is left to be done for what it processed."""
        ...
