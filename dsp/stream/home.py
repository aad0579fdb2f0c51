"""What an instance needs of the process that it runs in."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dsp._pb.engine_pb2 import EngineBatch
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.scaling.events import ScaleMessage
from dsp.scaling.place import Place
from dsp.scaling.usable import CpuUse
from dsp.stream.batch import Batch
from dsp.stream.codecs import Payload
from dsp.stream.coordination import ScalingStep
from dsp.stream.inlet import Arrival
from dsp.stream.offsets import Ends
from dsp.stream.parcels import Progress, Sent
from dsp.stream.tokens import Token
from dsp.transport.base import Frame

if TYPE_CHECKING:
    from dsp.stream.instance import Instance

__all__ = ["Home"]


class Home(Protocol):
    """What an instance needs of its host."""

    def post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None:
        """Send a message to an instance, on the CONTROL lane."""
        ...

    def post_scale(self, source: NodeId, to: NodeId, message: ScaleMessage) -> None:
        """Send a message of the scale protocol."""
        ...

    def post_progress(self, source: NodeId, to: NodeId, progress: Progress) -> None:
        """Tell an instance how far another one is."""
        ...

    def hand_over(self, source: NodeId, sent: Sent, arrival: Arrival) -> None:
        """Give a batch to an instance of this process."""
        ...

    def relay(self, source: str, to: NodeId, batch: Batch) -> Token | None:
        """Let an instance of this process process a batch of an operator now, if it can."""
        ...

    def adopt(self, to: NodeId, arrival: Arrival, token: Token) -> None:
        """Leave a batch that was processed to the inlet of who processed it."""
        ...

    def send_batch(
        self, source: NodeId, to: NodeId, message: EngineBatch, payload: Payload
    ) -> None:
        """Send a batch to an instance of another process."""
        ...

    def is_local(self, name: NodeId) -> bool:
        """Whether an instance is in this process."""
        ...

    def address(self, name: NodeId) -> str:
        """Where an instance is; empty if unknown."""
        ...

    def introduce(self, name: NodeId, address: str) -> None:
        """Note where an instance is."""
        ...

    async def spawn(self, place: Place, count: int) -> list[NodeId]:
        """Create siblings, idle."""
        ...

    def finished(self, frame: Frame) -> None:
        """A frame is dealt with."""
        ...

    def settled(self, ends: Ends, sure: Callable[[], None]) -> None:
        """Records before these ends will never be read again, once ``sure`` was called."""
        ...

    def gone(self, instance: "Instance", reason: str, *, clean: bool) -> None:
        """An instance is over."""
        ...

    def stepped(self, step: ScalingStep) -> None:
        """A scaling step of an instance is over."""
        ...

    def cpu_use(self, busy: float) -> CpuUse:
        """How the core of an instance is used whose body works for such a share of the time."""
        ...

    def clock(self) -> float:
        """The time that batches are born by."""
        ...
