"""One end of a session for unit tests."""

from collections.abc import Sequence
from typing import TypeVar

from dsp.core.machine import Received, Send, Tick
from dsp.core.session.machine import SessionEffect, SessionEvent, SessionMachine
from dsp.core.session.segments import Phase, Segment, SegmentKind, SessionLimits, Window
from dsp.core.types import Lane, NodeId

__all__ = ["BYE", "DATA", "HELLO", "LIMITS", "PEER", "ROOM", "STATUS", "C", "D", "End"]

HELLO, DATA, STATUS, BYE = SegmentKind
C, D = Lane.CONTROL, Lane.DATA
PEER = NodeId("b")
LIMITS = SessionLimits(
    resend_after=2.0,
    resend_at_most=4.0,
    acknowledge_after=1.0,
    acknowledge_every=3,
    heartbeat_every=8.0,
    suspect_after=20.0,
    dead_after=30.0,
    linger=5.0,
    window_items=8,
    window_bytes=1000,
    burst=2,
)
ROOM = (Window(0, 8, 1000), Window(0, 8, 1000))
EffectT = TypeVar("EffectT")


class End:
    """A machine with a clock, at the epoch 10; its peer is at 20."""

    def __init__(self, *, is_open: bool = True) -> None:
        self.machine = SessionMachine(PEER, 10, LIMITS)
        self.now = 0.0
        self.seen: list[SessionEffect] = []
        if is_open:
            self.hears(STATUS, windows=ROOM)
            assert self.machine.phase is Phase.OPEN

    def feed(self, event: SessionEvent) -> Sequence[SessionEffect]:
        self.seen = list(self.machine.handle(event, self.now))
        self.machine.check_invariants()
        return self.seen

    def hears(
        self,
        kind: SegmentKind,
        epoch: int = 20,
        peer_epoch: int = 10,
        *,
        sequence: int = 0,
        payloads: tuple[bytes, ...] = (),
        windows: tuple[Window, ...] = ROOM,
        lane: Lane = Lane.CONTROL,
    ) -> Sequence[SessionEffect]:
        if kind in (HELLO, DATA):
            windows = ()
        segment = Segment(kind, epoch, peer_epoch, sequence, payloads, windows)
        return self.feed(Received(PEER, segment, lane))

    def data(self, number: int, *payloads: bytes) -> Sequence[SessionEffect]:
        return self.hears(DATA, sequence=number, payloads=payloads or (b"x",), lane=D)

    def wait(self) -> Sequence[SessionEffect]:
        """Let time pass to the next deadline."""
        deadline = self.machine.next_deadline()
        assert deadline is not None
        assert deadline > self.now
        self.now = deadline
        return self.feed(Tick())

    def said(self) -> list[Segment]:
        return [effect.message for effect in self.only(Send)]  # type: ignore[misc]

    def kinds(self) -> list[SegmentKind]:
        return [segment.kind for segment in self.said()]

    def only(self, kind: type[EffectT]) -> list[EffectT]:
        return [effect for effect in self.seen if isinstance(effect, kind)]
