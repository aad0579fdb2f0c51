"""What two session machines say to each other, and the events and effects around them.

Named tuples, not dataclasses: a segment is made and taken apart for every frame, and a frozen
dataclass costs four times as much to make.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from dsp.core.types import Lane

__all__ = [
    "Phase",
    "SegmentKind",
    "Segment",
    "Window",
    "SessionLimits",
    "Submit",
    "Consumed",
    "LinkUp",
    "LinkRefused",
    "CloseRequested",
    "Deliver",
    "Established",
    "Suspected",
    "Ended",
    "Superseded",
]


class Phase(Enum):
    """Where a session is."""

    IDLE = auto()
    GREETING = auto()
    OPEN = auto()
    PARTING = auto()
    CLOSED = auto()
    REFUSED = auto()


class SegmentKind(IntEnum):
    """What a segment is for."""

    HELLO = 1
    DATA = 2
    STATUS = 3
    BYE = 4


class Window(NamedTuple):
    """What a receiver has of a lane, and what it has room for; all counted from the start.

    Attributes:
        received: every segment up to this number arrived.
        items: how many payloads the sender may have sent in all.
        size: how many bytes of payloads the sender may have sent in all.
    """

    received: int
    items: int
    size: int


class Segment(NamedTuple):
    """One message between two sessions.

    Attributes:
        epoch: the sender's, which grows with every incarnation and every new session.
        peer_epoch: the receiver's, as far as the sender knows; 0 if it does not.
        sequence: number of a DATA segment in its lane, from 1.
        payloads: of a DATA segment, one or more.
        windows: of a STATUS or BYE segment, for CONTROL and DATA.
    """

    kind: SegmentKind
    epoch: int
    peer_epoch: int
    sequence: int = 0
    payloads: tuple[bytes, ...] = ()
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Times in seconds, and sizes.

    Attributes:
        resend_after: silence about a segment after which it is sent again; doubles each time.
        resend_at_most: most of that doubling.
        acknowledge_after: how long an acknowledgement may wait for company.
        acknowledge_every: how many segments may be unacknowledged before that.
        heartbeat_every: a word at least this often.
        suspect_after: silence after which a peer is suspected; it may come back.
        dead_after: silence after which a session is given up and its frames are named.
        linger: how long a good-bye is repeated if it is not answered.
        window_items: payloads that a receiver holds for a lane at most.
        window_bytes: bytes that a receiver holds for a lane at most.
        burst: segments that are sent again at once at most.
    """

    resend_after: float = 0.2
    resend_at_most: float = 2.0
    acknowledge_after: float = 0.02
    acknowledge_every: int = 32
    heartbeat_every: float = 1.0
    suspect_after: float = 5.0
    dead_after: float = 30.0
    linger: float = 1.0
    window_items: int = 1024
    window_bytes: int = 16 * 1024 * 1024
    burst: int = 16


# -- events, beside Received and Tick -----------------------------------------------------------


class Submit(NamedTuple):
    """Send payloads as one segment. Only when ``SessionMachine.may_submit`` says so."""

    lane: Lane
    payloads: tuple[bytes, ...]


class Consumed(NamedTuple):
    """The application has taken payloads: there is room for others."""

    lane: Lane
    items: int
    size: int


class LinkUp(NamedTuple):
    """The transport below has a fresh connection: what was on its way may be lost."""


class LinkRefused(NamedTuple):
    """The transport below says that the peer, or we, do not want to talk: asking is in vain."""

    reason: str


class CloseRequested(NamedTuple):
    """Say good-bye."""


# -- effects, beside Send and Reject ------------------------------------------------------------


class Deliver(NamedTuple):
    """Give these payloads to the application, in this order."""

    lane: Lane
    payloads: tuple[bytes, ...]


class Established(NamedTuple):
    """The peer is there: for the first time, again, or heard of after a suspicion."""


class Suspected(NamedTuple):
    """The peer was silent for too long. Nothing is lost yet."""

    reason: str


class Ended(NamedTuple):
    """This session is over; these payloads, oldest first, were never acknowledged.

    Attributes:
        unacknowledged: a tuple of payloads for each lane, in the order of ``Lane``.
        refused: one end does not want to talk to the other: asking again is in vain.
    """

    reason: str
    unacknowledged: tuple[tuple[bytes, ...], ...]
    refused: bool = False


class Superseded(NamedTuple):
    """The peer knows a newer incarnation of us: we are the stale one and must not go on."""
