"""The session machine over a transport that keeps what it accepts: a log between two ends.

Theory of operation. The log neither loses nor reorders, takes what is sent whether the receiver is
there or not, and hands out again what a receiver had not dealt with when it died. So there is
nothing to acknowledge, to repeat or to agree on; what is left to do is:

* DATA segments of a lane are numbered from 1 for each incarnation of the sender. A number that was
  delivered is not delivered again: a log may hold a segment twice.
* Each lane is a log of its own. What an incarnation logged on a lane counts until a newer one has
  spoken on that lane; whatever the older one says there after that is stale.
* A receiver that returns begins with whatever number comes first: the log knows what was done.
* Both ends say a word now and then. Silence is a suspicion, and the words stop until the peer is
  heard: its inbox must not fill with them while it is away.

========== ============================================== =======================================
phase      meaning                                        left by
========== ============================================== =======================================
IDLE       nothing was said, or the log refuses the peer  LinkUp, a peer's segment
OPEN       segments flow                                  CloseRequested, LinkRefused
CLOSED     closed here: nothing is said or heard          never
========== ============================================== =======================================
"""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from dsp.core.machine import Received, Reject, Send, Tick
from dsp.core.session.machine import SessionEffect, SessionEvent
from dsp.core.session.segments import (
    CloseRequested,
    Deliver,
    Ended,
    Established,
    LinkRefused,
    LinkUp,
    Phase,
    Segment,
    SegmentKind,
    SessionLimits,
    Submit,
    Suspected,
    Window,
)
from dsp.core.types import Lane, NodeId
from dsp.errors import InvariantError, LocalProtocolError

__all__ = ["DurableMachine", "LoggedStream"]

LANES: Final = tuple(Lane)
NOTHING: Final = ((), ())
WINDOWS: Final = (Window(0, 0, 0), Window(0, 0, 0))
PLAIN: Final = ("phase", "suspected", "_heard_at", "_told_at")


class LoggedStream:
    """The sending half of a lane: a number. The log's own queue bounds what waits."""

    __slots__ = ("sent", "unacknowledged")

    def __init__(self) -> None:
        self.sent = 0
        self.unacknowledged: deque[tuple[int, tuple[bytes, ...]]] = deque(maxlen=0)

    def room(self) -> tuple[int, int]:
        """As much as one likes."""
        return 1 << 62, 1 << 62


class DurableMachine:
    """One end of a conversation by way of a log.

    Args:
        peer: who is at the other end.
        epoch: larger than that of any earlier incarnation of this end; at least 1.
        limits: times; windows play no part.
    """

    def __init__(self, peer: NodeId, epoch: int, limits: SessionLimits) -> None:
        self.peer = peer
        self.epoch = epoch
        self.limits = limits
        self.phase = Phase.IDLE
        self.suspected = True
        self.sending = {lane: LoggedStream() for lane in LANES}
        # Per lane: the incarnation that was heard last, and its last number.
        self.heard = dict.fromkeys(LANES, (0, 0))
        self._heard_at = 0.0
        self._told_at = 0.0

    def handle(self, event: SessionEvent, now: float) -> Sequence[SessionEffect]:
        """Take one event; see ``Machine``."""
        effects: list[SessionEffect] = []
        if self.phase is Phase.CLOSED:
            return effects
        if isinstance(event, Received):
            assert isinstance(event.message, Segment)
            self._on_segment(event.message, event.lane, now, effects)
        elif isinstance(event, Submit):
            self._on_submit(event, now, effects)
        elif isinstance(event, Tick):
            self._on_tick(now, effects)
        elif isinstance(event, LinkUp):
            if self.phase is not Phase.OPEN:
                self.phase = Phase.OPEN
                self._say(SegmentKind.HELLO, now, effects)
        elif isinstance(event, LinkRefused):
            self.phase = Phase.IDLE
            self.suspected = True
            effects.append(Ended(event.reason, NOTHING, refused=True))
        elif isinstance(event, CloseRequested):
            if self.phase is Phase.OPEN and not self.suspected:
                self._say(SegmentKind.BYE, now, effects)
            self.phase = Phase.CLOSED
        return effects

    def next_deadline(self) -> float | None:
        """When ``Tick`` is due; see ``Machine``."""
        if self.phase is not Phase.OPEN or self.suspected:
            return None
        return min(
            self._told_at + self.limits.heartbeat_every, self._heard_at + self.limits.suspect_after
        )

    def _on_submit(self, event: Submit, now: float, effects: list[SessionEffect]) -> None:
        if self.phase is not Phase.OPEN:
            raise LocalProtocolError(f"no conversation with {self.peer}: LinkUp comes first")
        lane, payloads = event
        stream = self.sending[lane]
        stream.sent += 1
        segment = Segment(SegmentKind.DATA, self.epoch, self.heard[lane][0], stream.sent, payloads)
        effects.append(Send(self.peer, segment, lane))
        self._told_at = now

    def _on_segment(
        self, segment: Segment, lane: Lane, now: float, effects: list[SessionEffect]
    ) -> None:
        epoch, received = self.heard[lane]
        if segment.epoch < epoch:
            effects.append(Reject(self.peer, "an incarnation speaks that has a successor"))
            return
        if segment.epoch > epoch:
            epoch, received = segment.epoch, 0
        sequence = segment.sequence
        self.heard[lane] = (epoch, max(received, sequence))
        self._hear(segment.kind, now, effects)
        if segment.kind is SegmentKind.DATA and sequence > received:
            if received and sequence > received + 1:
                effects.append(
                    Reject(
                        self.peer,
                        f"segments {received + 1} to {sequence - 1} of {lane.value} are not in the "
                        f"log: it kept them for too short a time, or its sender was told",
                    )
                )
            effects.append(Deliver(lane, segment.payloads))

    def _hear(self, kind: SegmentKind, now: float, effects: list[SessionEffect]) -> None:
        self._heard_at = now
        self.phase = Phase.OPEN
        if kind is SegmentKind.BYE:
            self.suspected = True
            effects.append(Suspected("closed by the peer"))
        elif self.suspected:
            self.suspected = False
            effects.append(Established())
            # It may not have heard of us, or not since it suspects us.
            self._say(SegmentKind.STATUS, now, effects)

    def _on_tick(self, now: float, effects: list[SessionEffect]) -> None:
        if self.phase is not Phase.OPEN or self.suspected:
            return
        if now >= self._heard_at + self.limits.suspect_after:
            self.suspected = True
            effects.append(Suspected(f"silent for {self.limits.suspect_after:g} s"))
        elif now >= self._told_at + self.limits.heartbeat_every:
            self._say(SegmentKind.STATUS, now, effects)

    def _say(self, kind: SegmentKind, now: float, effects: list[SessionEffect]) -> None:
        windows = () if kind is SegmentKind.HELLO else WINDOWS
        segment = Segment(kind, self.epoch, self.heard[Lane.CONTROL][0], windows=windows)
        effects.append(Send(self.peer, segment, Lane.CONTROL))
        self._told_at = now

    # -- the rest of the contract ---------------------------------------------------------

    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the parts contradict each other."""
        if any(number and not epoch for epoch, number in self.heard.values()):
            raise InvariantError("numbers of an incarnation that was never heard")
        if not self.suspected and self.phase is not Phase.OPEN and self.phase is not Phase.CLOSED:
            raise InvariantError("a peer counts as present in no conversation")

    def state(self) -> Hashable:
        """The whole state as a value."""
        return (
            tuple(getattr(self, name) for name in PLAIN),
            tuple(stream.sent for stream in self.sending.values()),
            tuple(self.heard.values()),
        )

    def restore(self, state: Any) -> None:  # noqa: ANN401 - what state() gave
        """Return to a value of ``state``."""
        plain, sent, heard = state
        for name, value in zip(PLAIN, plain, strict=True):
            setattr(self, name, value)
        for stream, number in zip(self.sending.values(), sent, strict=True):
            stream.sent = number
        self.heard = dict(zip(LANES, heard, strict=True))

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
        return {
            "peer": self.peer,
            "phase": self.phase.name,
            "epoch": self.epoch,
            "heard": {lane.value: numbers for lane, numbers in self.heard.items()},
            "suspected": self.suspected,
        }
