"""The sending side of a lane to one peer, and the counters of a lane."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dsp.core.types import Lane, Peer
from dsp.transport.base import LaneStatistics
from dsp.transport.passage import Inbox
from dsp.transport.queues import BoundedQueue

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["LaneCounters", "Link", "TURN_BYTES", "TURN_PER_FRAME"]

# A task that sends or receives DATA in a loop may never have to wait. After this many bytes it
# lets others have a turn, or what they do on CONTROL would wait for as long as a queue is deep.
TURN_BYTES: Final = 128 * 1024
TURN_PER_FRAME: Final = 1024


class Link:
    """The sending side of a lane to one peer: a bounded queue that the adapter empties."""

    def __init__(self, peer: Peer, lane: Lane, config: "TransportConfig") -> None:
        self.peer = peer
        self.lane = lane
        self.queue: BoundedQueue[bytes] = BoundedQueue(
            config.send_queue_frames, config.send_queue_bytes
        )

    def pending(self) -> list[bytes]:
        """Take what was accepted and not handed to the network, oldest first."""
        return self.queue.drain()

    def waiting(self) -> bool:
        """Tell whether closing now would lose something that was accepted."""
        return len(self.queue) > 0

    def moved(self) -> int:
        """A number that changes whenever a frame goes on its way."""
        return self.queue.taken

    def unacknowledged(self) -> int:
        """How many frames went on their way and are not acknowledged, where that is known."""
        return 0


class LaneCounters:
    """What happened on a lane, over all peers."""

    __slots__ = (
        "accepted",
        "accepted_bytes",
        "received",
        "received_bytes",
        "rejected",
        "undelivered",
    )

    def __init__(self) -> None:
        self.accepted = self.accepted_bytes = 0
        self.received = self.received_bytes = 0
        self.rejected = self.undelivered = 0

    def accept(self, size: int) -> None:
        """Count a frame that was accepted from the application."""
        self.accepted += 1
        self.accepted_bytes += size

    def receive(self, frames: int, size: int) -> None:
        """Count frames that came."""
        self.received += frames
        self.received_bytes += size

    def snapshot(self, queues: Iterable[BoundedQueue[bytes]], inbox: Inbox) -> LaneStatistics:
        """Give the counters with the depths of the queues."""
        waiting = list(queues)
        return LaneStatistics(
            accepted_frames=self.accepted,
            accepted_bytes=self.accepted_bytes,
            received_frames=self.received,
            received_bytes=self.received_bytes,
            undelivered_frames=self.undelivered,
            rejected_frames=self.rejected,
            send_queue_frames=sum(len(queue) for queue in waiting),
            send_queue_bytes=sum(queue.bytes for queue in waiting),
            receive_queue_frames=len(inbox),
            receive_queue_bytes=inbox.bytes,
        )
