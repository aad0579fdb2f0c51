"""What one end of a session keeps, and what can be asked about it."""

from collections.abc import Hashable, Mapping
from typing import Any

from dsp.core.session.segments import Phase, Segment, SessionLimits
from dsp.core.session.streams import ReceiveStream, SendStream
from dsp.core.types import Lane, NodeId
from dsp.errors import InvariantError

__all__ = ["LANES", "PLAIN", "SessionState"]

LANES = tuple(Lane)
PLAIN = (
    *("phase", "epoch", "peer_epoch", "suspected", "_parting"),
    *("_heard_at", "_told_at", "_repeat_at", "_part_by", "_wait", "_resend_at", "_status_at"),
)
"""Names of the attributes that are values by themselves."""


class SessionState:
    """The part of a session machine that is not the protocol.

    Args:
        peer: who is at the other end.
        epoch: larger than that of any earlier incarnation of this end; at least 1.
        limits: times and sizes.
    """

    def __init__(self, peer: NodeId, epoch: int, limits: SessionLimits) -> None:
        self.peer = peer
        self.limits = limits
        self.phase = Phase.IDLE
        self.epoch = epoch
        self.peer_epoch = 0
        self.suspected = False
        self._reset_streams()
        # When the peer was last heard, and when it was last told what we have.
        self._heard_at = 0.0
        self._told_at = 0.0
        # When the next HELLO or BYE is due, and until when a BYE is repeated.
        self._repeat_at = 0.0
        self._part_by = 0.0
        self._parting: Segment | None = None
        self._wait = limits.resend_after
        self._resend_at: float | None = None
        self._status_at: float | None = None

    def _reset_streams(self) -> None:
        self.sending = {lane: SendStream() for lane in LANES}
        self.receiving = {lane: ReceiveStream() for lane in LANES}

    def may_submit(self, lane: Lane, items: int, size: int) -> bool:
        """Tell whether ``Submit`` with this much is allowed now."""
        return self.phase is Phase.OPEN and self.sending[lane].has_room(items, size)

    def settled(self) -> bool:
        """Tell whether everything that was submitted is acknowledged."""
        return not any(stream.unacknowledged for stream in self.sending.values())

    def next_deadline(self) -> float | None:
        """When ``Tick`` is due next; see ``Machine``."""
        if self.phase is Phase.OPEN:
            patience = self.limits.dead_after if self.suspected else self.limits.suspect_after
            deadline = min(self._told_at + self.limits.heartbeat_every, self._heard_at + patience)
            if self._resend_at is not None:
                deadline = min(deadline, self._resend_at)
            if self._status_at is not None:
                deadline = min(deadline, self._status_at)
            return deadline
        if self.phase is Phase.GREETING:
            return min(self._repeat_at, self._heard_at + self.limits.dead_after)
        if self.phase is Phase.PARTING:
            return min(self._repeat_at, self._part_by)
        return None

    def check_invariants(self) -> None:
        """Raise ``InvariantError`` if the parts contradict each other."""
        if self.phase is Phase.OPEN and not self.peer_epoch:
            raise InvariantError("open to a peer whose epoch is unknown")
        if self.phase is not Phase.OPEN and not self.settled():
            raise InvariantError("unacknowledged segments without a session")
        if (self.phase is Phase.PARTING) != (self._parting is not None):
            raise InvariantError("a good-bye without parting, or parting without one")
        for stream in self.sending.values():
            stream.check()
        for inbound in self.receiving.values():
            inbound.check(self.limits)

    def state(self) -> Hashable:
        """The whole state as a value."""
        return (
            tuple(getattr(self, name) for name in PLAIN),
            tuple(stream.state() for stream in self.sending.values()),
            tuple(stream.state() for stream in self.receiving.values()),
        )

    def restore(self, state: Any) -> None:  # noqa: ANN401 - what state() gave
        """Return to a value of ``state``."""
        plain, sending, receiving = state
        for name, value in zip(PLAIN, plain, strict=True):
            setattr(self, name, value)
        for stream, value in zip(self.sending.values(), sending, strict=True):
            stream.restore(value)
        for inbound, value in zip(self.receiving.values(), receiving, strict=True):
            inbound.restore(value)

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs and bug reports."""
        return {
            "peer": self.peer,
            "phase": self.phase.name,
            "epochs": (self.epoch, self.peer_epoch),
            "suspected": self.suspected,
            "unacknowledged": {
                lane.value: len(stream.unacknowledged) for lane, stream in self.sending.items()
            },
        }
