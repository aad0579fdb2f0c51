"""What a session keeps about one peer."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dsp.core.session.durable import DurableMachine
from dsp.core.session.machine import SessionMachine
from dsp.core.session.segments import Ended, Phase, SessionLimits
from dsp.core.types import Lane, Peer
from dsp.transport.base import Frame
from dsp.transport.link import Link

if TYPE_CHECKING:
    import asyncio

    from dsp.config import TransportConfig

__all__ = ["Conversation", "Intake", "Parcel", "SessionLink", "limits_of"]


class Intake:
    """What the application took of a lane since the machine was told; the receipt of its frames.

    A new session makes new ones: what is taken of an old one makes room for nobody.
    """

    __slots__ = ("conversation", "items", "lane", "scheduled", "size")

    def __init__(self, conversation: "Conversation", lane: Lane) -> None:
        self.conversation = conversation
        self.lane = lane
        self.items = 0
        self.size = 0
        self.scheduled = False


class Parcel:
    """A segment out of a log, whose payloads the application gets: done when all of them are."""

    __slots__ = ("frame", "left")

    def __init__(self, frame: Frame, payloads: int) -> None:
        self.frame = frame
        self.left = payloads


class SessionLink(Link):
    """A lane to a peer: frames that wait for room in the window, and those not acknowledged."""

    def __init__(self, conversation: "Conversation", lane: Lane, config: "TransportConfig") -> None:
        super().__init__(conversation.peer, lane, config)
        self.conversation = conversation
        self._machine = conversation.machine

    def waiting(self) -> bool:
        return len(self.queue) > 0 or bool(self._machine.sending[self.lane].unacknowledged)

    def moved(self) -> int:
        # Numbers begin anew with each session, so the epoch has to be in it.
        stream = self._machine.sending[self.lane]
        return (self._machine.epoch << 64) + stream.sent - len(stream.unacknowledged)

    def unacknowledged(self) -> int:
        stream = self._machine.sending[self.lane]
        return sum(len(payloads) for _, payloads in stream.unacknowledged)


class Conversation:
    """Everything about one peer: the machine, its timer, and both lanes."""

    def __init__(self, peer: Peer, machine: SessionMachine | DurableMachine) -> None:
        self.peer = peer
        self.machine = machine
        self.links: dict[Lane, SessionLink] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.armed: float | None = None
        self.pump_scheduled = False
        # Highest number of each lane that was handed to the adapter: one that is not above it is
        # sent again.
        self.handed = dict.fromkeys(Lane, 0)
        self.intakes = self._new_intakes()
        # What the links said when last asked whether anything had moved.
        self.moved = 0
        # Why the peer could not be talked to, once that was told.
        self.refusal: str | None = None

    def _new_intakes(self) -> dict[Lane, Intake]:
        return {lane: Intake(self, lane) for lane in Lane}

    def begin_anew(self, ended: Ended) -> Iterator[tuple[Lane, list[bytes]]]:
        """The session is over, what follows is another one; give what was lost, oldest first."""
        self.handed = dict.fromkeys(Lane, 0)
        self.intakes = self._new_intakes()
        for lane, unacknowledged in zip(Lane, ended.unacknowledged, strict=True):
            link = self.links.get(lane)
            yield lane, [*unacknowledged, *(link.queue.drain() if link is not None else ())]

    def unacknowledged(self) -> Iterator[tuple[Lane, list[bytes]]]:
        """Give what was sent and not acknowledged, oldest first."""
        for lane, stream in self.machine.sending.items():
            yield lane, [each for _, payloads in stream.unacknowledged for each in payloads]

    @property
    def is_open(self) -> bool:
        """Whether segments may be sent."""
        return self.machine.phase is Phase.OPEN


def limits_of(config: "TransportConfig") -> SessionLimits:
    """Give the limits that a configuration asks for."""
    return SessionLimits(
        heartbeat_every=config.session.heartbeat_every,
        suspect_after=config.session.suspect_after,
        dead_after=config.session.dead_after,
        linger=5 * config.session.resend_after,
        resend_after=config.session.resend_after,
        resend_at_most=10 * config.session.resend_after,
        window_items=config.receive_queue_frames,
        window_bytes=config.receive_queue_bytes,
    )
