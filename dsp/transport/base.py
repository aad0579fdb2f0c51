"""The transport interface: what the rest of dsp knows about a network.

A transport moves frames of bytes between *peers* (one endpoint per process) on two *lanes*. It is
message-oriented and addressed by peer, because ZeroMQ hides connections and Kafka has none. It
knows no protocol: a new kind of message never changes this file.

Rules for every transport (``dsp.testing.contract`` checks them):

* Bytes cross the seam, in the simulator too.
* ``send`` returns when the frame is in a bounded queue for (peer, lane), not when it is delivered.
  A full queue waits: that is the backpressure. A full DATA lane never delays CONTROL.
* A cancelled ``send`` was accepted whole or not at all. A cancelled ``receive`` loses nothing.
  After either, the transport is as usable as before.
* Any number of tasks may send; one task at a time may receive on a lane.
* What is promised beyond that is declared in ``Guarantees``, and only that is relied on.
* ``PeerUp``, ``PeerDown`` and ``Undelivered`` arrive in the CONTROL inbox, so that their order to
  control frames is defined. The first two are hints; who is dead is for a machine to decide.
* Nothing is dropped in silence: what was accepted and cannot arrive is reported as
  ``Undelivered``, what came in and makes no sense is counted as rejected.
* No ``timeout=`` arguments: callers use ``asyncio.timeout``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from dsp.core.types import Lane, NodeId, Peer
from dsp.transport.health import HealthState, LinkHealth, TransportHealth

if TYPE_CHECKING:
    from types import TracebackType

    from dsp.config import TransportConfig

__all__ = [
    "Lane",
    "NodeId",
    "Peer",
    "Guarantees",
    "Frame",
    "PeerUp",
    "PeerDown",
    "Undelivered",
    "Inbound",
    "LaneStatistics",
    "TransportStatistics",
    "HealthState",
    "LinkHealth",
    "TransportHealth",
    "Transport",
]


@dataclass(frozen=True, slots=True)
class Guarantees:
    """What a transport promises while both ends live and the link between them is not cut.

    Attributes:
        ordered: frames of one (sender, receiver, lane) arrive in the order of their sends.
        reliable: an accepted frame arrives.
        durable: an accepted frame outlives the sender and waits for a receiver that is away, until
            the receiver says ``done``.
        duplicates: a frame may arrive more than once.
        max_frame_bytes: the largest payload that ``send`` takes.
    """

    ordered: bool
    reliable: bool
    durable: bool
    duplicates: bool
    max_frame_bytes: int


# Not frozen, though nobody changes one: it is made for every frame, and freezing costs thrice.
@dataclass(slots=True, unsafe_hash=True)
class Frame:
    """A frame that arrived.

    Attributes:
        receipt: what the transport needs to know the frame again in ``done``; opaque to others.
    """

    sender: Peer
    lane: Lane
    payload: bytes
    receipt: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PeerUp:
    """A peer was heard of for the first time, or again after a ``PeerDown``."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class PeerDown:
    """The link to a peer is gone. It may come back.

    Attributes:
        reason: for people.
        refused: one of the two does not want to talk to the other (a wrong key, another version):
            trying again helps only after somebody has changed that.
    """

    peer: Peer
    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Undelivered:
    """Frames that ``send`` accepted and that, as far as the transport knows, did not arrive.

    Attributes:
        reason: why the peer would not take them however often they were sent, for people; empty
            where sending them again may help.
    """

    peer: Peer
    lane: Lane
    payloads: tuple[bytes, ...]
    reason: str = field(default="", compare=False)


Inbound = Frame | PeerUp | PeerDown | Undelivered


@dataclass(frozen=True, slots=True)
class LaneStatistics:
    """Counters and queue depths of one lane, over all peers.

    Attributes:
        accepted_frames: taken by ``send`` and ``send_nowait``.
        accepted_bytes: payload bytes of those.
        received_frames: put into the inbox for ``receive``.
        received_bytes: payload bytes of those.
        undelivered_frames: reported as ``Undelivered``.
        rejected_frames: came in and could not be understood.
        send_queue_frames: accepted and not yet handed to the network.
        send_queue_bytes: payload bytes of those.
        receive_queue_frames: received and not yet taken by ``receive``.
        receive_queue_bytes: payload bytes of those.
    """

    accepted_frames: int = 0
    accepted_bytes: int = 0
    received_frames: int = 0
    received_bytes: int = 0
    undelivered_frames: int = 0
    rejected_frames: int = 0
    send_queue_frames: int = 0
    send_queue_bytes: int = 0
    receive_queue_frames: int = 0
    receive_queue_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TransportStatistics:
    """A snapshot of a transport's counters.

    Attributes:
        lanes: one entry per lane.
        peers_up: peers that were announced by ``PeerUp`` and not taken back.
        faults: what went wrong with peers and strangers, by cause, and how often.
    """

    lanes: Mapping[Lane, LaneStatistics]
    peers_up: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)


class Transport(ABC):
    """An endpoint of a network.

    Use it as an async context manager: entering starts it, leaving closes it. All methods belong
    to the event loop that started it.
    """

    scheme: ClassVar[str]
    """The URL scheme that selects this class."""

    guarantees: Guarantees
    """What this endpoint promises. Fixed once it is started."""

    @classmethod
    @abstractmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        """Make an endpoint that is not started. Synchronous, does no input or output.

        Raises:
            ConfigError: the URL or a setting of this transport is wrong.
        """

    @abstractmethod
    async def start(self) -> None:
        """Open the endpoint. When it returns, ``contact`` is valid and peers can reach it.

        Raises:
            ConnectError: the address is in use, cannot be resolved, or is not ours to bind.
            ClosedError: the endpoint was started before.
        """

    @property
    @abstractmethod
    def contact(self) -> Peer:
        """Who we are and where others reach us: never a wildcard address or port 0.

        Raises:
            ClosedError: before ``start``.
        """

    @property
    @abstractmethod
    def epoch(self) -> int:
        """A number above 0 that is larger for each later start under the same id.

        Sessions tell incarnations apart by it. Valid after ``start``.
        """

    @abstractmethod
    async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        """Queue a frame for a peer; wait while the queue for (peer, lane) is full.

        Cancelled, the frame was accepted whole or not at all. Safe from any number of tasks.

        Raises:
            FrameTooLarge: over ``guarantees.max_frame_bytes``.
            PeerUnreachable: the peer's address is not one that this transport can reach.
            ClosedError: the endpoint is not open, or was closed while we waited.
        """

    @abstractmethod
    def send_nowait(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        """Queue a frame for a peer, or raise ``WouldBlock`` where ``send`` would wait."""

    @abstractmethod
    async def receive(self, lane: Lane) -> Inbound:
        """Wait for what comes next on a lane.

        Cancelled, nothing is lost: the next call gets it. One receiver per lane at a time.

        Raises:
            EndOfStream: the endpoint was closed and everything before that was received.
            ClosedError: the endpoint was never started, or was aborted.
            BusyError: another task is receiving on this lane.
        """

    @abstractmethod
    def done(self, frame: Frame) -> None:
        """Say that a received frame and all that follows from it is dealt with.

        A durable transport forgets the frame then; a volatile one has nothing to do. Frames may be
        done in any order, each at most once.
        """

    @abstractmethod
    def statistics(self) -> TransportStatistics:
        """Counters and queue depths, now. Valid in every state."""

    @abstractmethod
    def health(self) -> TransportHealth:
        """How the endpoint is, now. Valid in every state; costs a look at every link."""

    @abstractmethod
    async def aclose(self) -> None:
        """Hand over what was accepted, within ``drain_timeout``, then let go of everything.

        From the call on, ``send`` raises ``ClosedError``. What could not be handed over comes as
        ``Undelivered`` before ``EndOfStream``. Idempotent; a second caller waits for the first.
        Everything is released even if it raises or is cancelled.
        """

    @abstractmethod
    def abort(self) -> None:
        """Let go of everything at once, handing over nothing. Synchronous, for ``finally``."""

    async def retire(self) -> None:
        """Close, and leave nothing behind: this id will not come back.

        A durable transport deletes what it keeps for the id, received or not; a volatile one keeps
        nothing, so that for it this is ``aclose``. May be called in every state, and again.

        Raises:
            ConnectError: what is kept elsewhere cannot be deleted now. The endpoint is closed.
        """
        await self.aclose()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        await self.aclose()
