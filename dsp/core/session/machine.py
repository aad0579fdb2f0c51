"""The session machine: one end of a reliable, ordered conversation with one peer.

Theory of operation. A session is a pair of epochs, one chosen by each end. An end's epoch grows
with each incarnation of its process and with each session that it gives up, so of two epochs the
larger is the newer, and a segment that names an older one is stale whatever it says.

* HELLO is repeated until a segment names our present epoch: then the peer knows us, and nothing
  that it says can be an echo of an earlier session. Only then is data sent.
* DATA segments of a lane are numbered from 1. The receiver delivers them in order, once, and keeps
  those that came ahead. STATUS tells, for both lanes, up to which number all arrived and how much
  more there is room for; it goes after a few segments, after a short while, and as a heartbeat.
* What is not acknowledged in time is sent again, a few at a time; progress brings the next few.
* Silence for ``suspect_after`` makes a peer suspected: a hint. Silence for ``dead_after``, a
  good-bye, a newer epoch of the peer, or a transport that is refused ends the session: what was not
  acknowledged is named, and whatever comes next is a new session.
* BYE carries the last acknowledgement, so it is repeated until the peer shows by a newer epoch, or
  by a BYE of its own, that its end is over too; but not for longer than ``linger``.

========== ============================================== =======================================
phase      meaning                                        left by
========== ============================================== =======================================
IDLE       no session, nothing asked for                  Submit wish, LinkUp, a peer's segment
GREETING   HELLO is repeated                              a segment that names our epoch, refusal
OPEN       data flows                                     silence, BYE, newer epoch, refusal, end
PARTING    closed here, BYE is repeated                   the peer's answer, ``linger``
CLOSED     closed here: nothing is said or heard          never
REFUSED    a newer incarnation of us is known: we stop    never
========== ============================================== =======================================
"""

from collections.abc import Sequence

from dsp.core.machine import Received, Reject, Send, Tick
from dsp.core.session.segments import (
    CloseRequested,
    Consumed,
    Deliver,
    Ended,
    Established,
    LinkRefused,
    LinkUp,
    Phase,
    Segment,
    SegmentKind,
    Submit,
    Superseded,
    Suspected,
)
from dsp.core.session.state import LANES, SessionState
from dsp.core.types import Lane
from dsp.errors import LocalProtocolError

__all__ = ["Phase", "SessionEvent", "SessionEffect", "SessionMachine"]

SessionEvent = Submit | Consumed | LinkUp | LinkRefused | CloseRequested | Received | Tick
SessionEffect = Send | Reject | Deliver | Established | Suspected | Ended | Superseded

DEAF = (Phase.PARTING, Phase.CLOSED, Phase.REFUSED)


class SessionMachine(SessionState):
    """One end of a session; see ``SessionState`` for what it is made from."""

    def handle(self, event: SessionEvent, now: float) -> Sequence[SessionEffect]:
        effects: list[SessionEffect] = []
        # Ordered by how often they come; a match statement tries its cases in order too.
        if isinstance(event, Received):
            assert isinstance(event.message, Segment)
            self._on_segment(event.message, event.lane, now, effects)
        elif isinstance(event, Submit):
            self._on_submit(event, now, effects)
        elif isinstance(event, Consumed):
            self._on_consumed(event, now, effects)
        elif isinstance(event, Tick):
            self._on_tick(now, effects)
        elif isinstance(event, LinkUp):
            self._on_link_up(now, effects)
        elif isinstance(event, LinkRefused):
            if self.phase is Phase.GREETING or self.phase is Phase.OPEN:
                self._end(event.reason, effects, refused=True)
        elif isinstance(event, CloseRequested):
            self._on_close(now, effects)
        return effects

    # -- local events ---------------------------------------------------------------------

    def _on_submit(self, event: Submit, now: float, effects: list[SessionEffect]) -> None:
        lane, payloads = event
        size = sum(map(len, payloads))
        stream = self.sending[lane]
        if self.phase is not Phase.OPEN or not stream.has_room(len(payloads), size):
            raise LocalProtocolError(f"no room for a segment to {self.peer}; ask may_submit first")
        number = stream.push(payloads, size)
        effects.append(
            Send(
                self.peer,
                Segment(SegmentKind.DATA, self.epoch, self.peer_epoch, number, payloads),
                lane,
            )
        )
        if self._resend_at is None:
            self._resend_at = now + self._wait

    def _on_consumed(self, event: Consumed, now: float, effects: list[SessionEffect]) -> None:
        stream = self.receiving[event.lane]
        if stream.consumed_items + event.items > stream.received_items:
            raise LocalProtocolError(f"{event.items} more consumed than {self.peer} ever sent")
        stream.consumed_items += event.items
        stream.consumed_size += event.size
        self._note_progress(event.lane, now, effects)

    def _on_link_up(self, now: float, effects: list[SessionEffect]) -> None:
        if self.phase is Phase.IDLE:
            self._greet(now, effects)
        elif self.phase is Phase.GREETING:
            self._say(SegmentKind.HELLO, now, effects)
        elif self.phase is Phase.OPEN:
            self._say(SegmentKind.STATUS, now, effects)
            self._resend(now, effects)
        elif self.phase is Phase.PARTING:
            self._part(effects)

    def _on_close(self, now: float, effects: list[SessionEffect]) -> None:
        if self.phase is Phase.OPEN:
            suspected = self.suspected
            self._say(SegmentKind.BYE, now, effects)
            self._forget(effects, "closed here")
            if not suspected:
                self.phase = Phase.PARTING
                self._wait = self.limits.resend_after
                self._repeat_at = now + self._wait
                self._part_by = now + self.limits.linger
                return
            self._parting = None
        if self.phase in (Phase.IDLE, Phase.GREETING, Phase.OPEN):
            self.phase = Phase.CLOSED

    def _on_tick(self, now: float, effects: list[SessionEffect]) -> None:
        # Compared as next_deadline adds them: by a difference, rounding could make it never due.
        is_dead = now >= self._heard_at + self.limits.dead_after
        if self.phase is Phase.GREETING:
            if is_dead:
                self._end(f"no answer for {self.limits.dead_after:g} s", effects)
            elif now >= self._repeat_at:
                self._wait = min(2 * self._wait, self.limits.resend_at_most)
                self._say(SegmentKind.HELLO, now, effects)
                self._repeat_at = now + self._wait
            return
        if self.phase is Phase.PARTING:
            if now >= self._part_by:
                self._close()
            elif now >= self._repeat_at:
                self._part(effects)
                self._wait *= 2
                self._repeat_at = now + self._wait
            return
        if self.phase is not Phase.OPEN:
            return
        if is_dead:
            self._end(f"silent for {self.limits.dead_after:g} s", effects)
            return
        if not self.suspected and now >= self._heard_at + self.limits.suspect_after:
            self.suspected = True
            effects.append(Suspected(f"silent for {self.limits.suspect_after:g} s"))
        if self._resend_at is not None and now >= self._resend_at:
            self._wait = min(2 * self._wait, self.limits.resend_at_most)
            self._resend(now, effects)
        if (self._status_at is not None and now >= self._status_at) or (
            now >= self._told_at + self.limits.heartbeat_every
        ):
            self._say(SegmentKind.STATUS, now, effects)

    # -- segments of the peer -------------------------------------------------------------

    def _on_segment(
        self, segment: Segment, lane: Lane, now: float, effects: list[SessionEffect]
    ) -> None:
        if self.phase is not Phase.OPEN and self.phase in DEAF:
            if self.phase is Phase.PARTING:
                self._while_parting(segment, effects)
            return
        if segment.epoch < self.peer_epoch:
            # Of an incarnation or session that is over. Whoever said it may not know.
            if segment.kind is not SegmentKind.BYE:
                self._say(SegmentKind.HELLO, now, effects)
            return
        if segment.peer_epoch > self.epoch:
            self.phase = Phase.REFUSED
            self._forget(effects, "a newer incarnation of this end is known there")
            effects.append(Superseded())
            return
        if segment.epoch > self.peer_epoch:
            if self.phase is Phase.OPEN:
                self._end("the peer began anew", effects)
            self.peer_epoch = segment.epoch
        self._heard_at = now
        if segment.peer_epoch != self.epoch:
            # It does not know our present epoch: tell it, and believe nothing else it says.
            self._introduce(segment.kind, now, effects)
            return
        if segment.kind is SegmentKind.BYE:
            if self.phase is Phase.OPEN:
                self._on_status(segment, now, effects)
                self._end("closed by the peer", effects)
                # Names our next epoch, which shows that this one is over here too.
                self._say(SegmentKind.HELLO, now, effects)
            return
        opened = self.phase is not Phase.OPEN
        if opened:
            self._open(effects)
        elif self.suspected:
            self.suspected = False
            effects.append(Established())
        elif segment.kind is SegmentKind.HELLO:
            self._say(SegmentKind.STATUS, now, effects)
        if segment.kind is SegmentKind.DATA:
            self._on_data(segment, lane, now, effects)
        elif segment.kind is SegmentKind.STATUS:
            self._on_status(segment, now, effects)
        if opened and not isinstance(effects[-1], Send):
            # Names the peer's epoch, which opens its end, and tells how much room there is. It
            # comes after what is delivered, as all that is said does: should it be answered while
            # these effects are carried out, nothing is delivered out of order.
            self._say(SegmentKind.STATUS, now, effects)

    def _while_parting(self, segment: Segment, effects: list[SessionEffect]) -> None:
        """Listen for nothing but a sign that the peer's end of the session is over."""
        if segment.epoch > self.peer_epoch:
            self._close()
        elif segment.epoch == self.peer_epoch and segment.kind is SegmentKind.BYE:
            # Both close. If ours was lost, this one saves the other end its waiting.
            self._part(effects)
            self._close()

    def _on_data(
        self, segment: Segment, lane: Lane, now: float, effects: list[SessionEffect]
    ) -> None:
        stream = self.receiving[lane]
        deliverable = stream.accept(segment.sequence, segment.payloads, self.limits)
        if deliverable is None:
            effects.append(
                Reject(self.peer, f"segment {segment.sequence} of {lane.value} is over its window")
            )
            return
        effects.extend(Deliver(lane, payloads) for payloads in deliverable)
        if deliverable:
            self._note_progress(lane, now, effects)
        elif segment.sequence <= stream.received:
            # It came again, so the acknowledgement was lost or late.
            self._say_soon(now)

    def _on_status(self, segment: Segment, now: float, effects: list[SessionEffect]) -> None:
        news = False
        for lane, window in zip(LANES, segment.windows, strict=True):
            stream = self.sending[lane]
            if window.received > stream.sent:
                effects.append(Reject(self.peer, f"acknowledges {window.received} of {lane.value}"))
                return
            if stream.acknowledge(window):
                news = True
                self._send_again(stream.again(self.limits.burst, restart=False), lane, effects)
        if news:
            self._wait = self.limits.resend_after
            self._resend_at = None if self.settled() else now + self._wait

    # -- inside ---------------------------------------------------------------------------

    def _greet(self, now: float, effects: list[SessionEffect]) -> None:
        self.phase = Phase.GREETING
        self._heard_at = now
        self._wait = self.limits.resend_after
        self._say(SegmentKind.HELLO, now, effects)
        self._repeat_at = now + self._wait

    def _introduce(self, answered: SegmentKind, now: float, effects: list[SessionEffect]) -> None:
        if self.phase is Phase.IDLE and answered is not SegmentKind.BYE:
            self._greet(now, effects)
        else:
            self._say(SegmentKind.HELLO, now, effects)

    def _open(self, effects: list[SessionEffect]) -> None:
        self.phase = Phase.OPEN
        self.suspected = False
        self._wait = self.limits.resend_after
        self._resend_at = None
        effects.append(Established())

    def _end(self, reason: str, effects: list[SessionEffect], *, refused: bool = False) -> None:
        """Give this session up; the next one has an epoch of its own.

        The peer's epoch is kept: an incarnation of it that is older still is stale.
        """
        self._forget(effects, reason, refused)
        self.epoch += 1
        self.phase = Phase.IDLE

    def _forget(self, effects: list[SessionEffect], reason: str, refused: bool = False) -> None:
        lost = tuple(
            tuple(payload for _, payloads in stream.unacknowledged for payload in payloads)
            for stream in self.sending.values()
        )
        effects.append(Ended(reason, lost, refused))
        self._reset_streams()
        self.suspected = False
        self._resend_at = None
        self._status_at = None

    def _note_progress(self, lane: Lane, now: float, effects: list[SessionEffect]) -> None:
        if self.phase is not Phase.OPEN:
            return
        if self.receiving[lane].owes(self.limits):
            self._say(SegmentKind.STATUS, now, effects)
        else:
            self._say_soon(now)

    def _say_soon(self, now: float) -> None:
        if self._status_at is None:
            self._status_at = now + self.limits.acknowledge_after

    def _say(self, kind: SegmentKind, now: float, effects: list[SessionEffect]) -> None:
        segment = Segment(kind, self.epoch, self.peer_epoch)
        if kind is SegmentKind.STATUS or kind is SegmentKind.BYE:
            windows = []
            for stream in self.receiving.values():
                stream.told = stream.window(self.limits)
                windows.append(stream.told)
            segment = segment._replace(windows=tuple(windows))
            self._status_at = None
            # Only this counts as a word: the peer may wait for nothing but more room.
            self._told_at = now
        if kind is SegmentKind.BYE:
            self._parting = segment
        effects.append(Send(self.peer, segment, Lane.CONTROL))

    def _part(self, effects: list[SessionEffect]) -> None:
        assert self._parting is not None
        effects.append(Send(self.peer, self._parting, Lane.CONTROL))

    def _close(self) -> None:
        self._parting = None
        self.phase = Phase.CLOSED

    def _resend(self, now: float, effects: list[SessionEffect]) -> None:
        for lane, stream in self.sending.items():
            self._send_again(stream.again(self.limits.burst, restart=True), lane, effects)
        self._resend_at = None if self.settled() else now + self._wait

    def _send_again(
        self,
        segments: list[tuple[int, tuple[bytes, ...]]],
        lane: Lane,
        effects: list[SessionEffect],
    ) -> None:
        for number, payloads in segments:
            segment = Segment(SegmentKind.DATA, self.epoch, self.peer_epoch, number, payloads)
            effects.append(Send(self.peer, segment, lane))
