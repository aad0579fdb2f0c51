"""What an endpoint says when it is asked how it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from dsp.core.types import Lane, NodeId, Peer

__all__ = ["HealthState", "LinkHealth", "TransportHealth"]


class HealthState(Enum):
    """How an endpoint is, as a whole."""

    NEW = "new"
    """Not started."""
    OK = "ok"
    """What was accepted moves, or there is nothing to move."""
    DEGRADED = "degraded"
    """Something is wrong that may pass: ``problems`` says what."""
    STALLED = "stalled"
    """A peer is connected, frames wait for it, and none has moved for ``stall_after``."""
    CLOSED = "closed"
    """Closed by us."""
    FAILED = "failed"
    """It broke: ``problems`` says why."""


@dataclass(frozen=True, slots=True)
class LinkHealth:
    """One lane to one peer.

    Attributes:
        connected: whether the peer was announced by ``PeerUp`` and not taken back.
        waiting_frames: accepted and not yet handed to the network.
        unacknowledged_frames: handed to the network and not acknowledged; 0 where the transport has
            no acknowledgements.
        stalled: seconds for which frames have waited and none has moved, once that is longer than
            ``stall_after``; 0 otherwise.
    """

    peer: Peer
    lane: Lane
    connected: bool
    waiting_frames: int
    unacknowledged_frames: int
    stalled: float


@dataclass(frozen=True, slots=True)
class TransportHealth:
    """An endpoint at one moment.

    Attributes:
        state: the short answer.
        problems: what is wrong, for people; empty if nothing is.
        last_progress: seconds since a frame was last handed over, acknowledged or received; None if
            none ever was.
        send_queue_frames: accepted and not yet handed to the network, over all peers and lanes.
        receive_queue_frames: received and not yet taken by ``receive``.
        unacknowledged_frames: handed to the network and not acknowledged.
        reconnects: how often a connection was made again after it was lost, per peer.
        links: each lane to each peer that something was sent to.
    """

    state: HealthState
    problems: tuple[str, ...]
    last_progress: float | None
    send_queue_frames: int
    receive_queue_frames: int
    unacknowledged_frames: int
    reconnects: Mapping[NodeId, int]
    links: tuple[LinkHealth, ...]
