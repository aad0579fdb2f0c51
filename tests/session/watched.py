"""A session machine that tells a model what it does, with the session in which it does it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from dsp.core.machine import PeerLost, Received
from dsp.core.session.machine import SessionMachine
from dsp.core.session.segments import (
    Consumed,
    Deliver,
    Ended,
    LinkUp,
    Phase,
    Submit,
)
from dsp.core.session.state import PLAIN
from dsp.core.types import Lane

__all__ = [
    "Accepted",
    "Delivered",
    "Heard",
    "Offer",
    "Over",
    "Session",
    "Taken",
    "Want",
    "Watched",
    "set_back",
]

Session = tuple[int, int]
"""Epochs of the end that speaks of it, and of its peer."""

# Times that mean nothing in a phase, so that they do not tell states apart.
IDLE_TIMES = {
    Phase.OPEN: ("_repeat_at", "_part_by"),
    Phase.GREETING: ("_told_at", "_part_by"),
    Phase.PARTING: ("_heard_at", "_told_at"),
}
ALL_TIMES = ("_heard_at", "_told_at", "_repeat_at", "_part_by")
LONG_AGO = -64.0


@dataclass(frozen=True, slots=True)
class Want:
    """An application has something to send: the shell asks for a session if there is none."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An application sends a payload; it is left out if there can be no session any more."""

    lane: Lane
    payload: bytes


@dataclass(frozen=True, slots=True)
class Taken:
    """The application took what was delivered in a session; nothing if that one is over."""

    session: Session
    lane: Lane
    items: int
    size: int


@dataclass(frozen=True, slots=True)
class Accepted:
    session: Session
    lane: Lane
    payload: bytes


@dataclass(frozen=True, slots=True)
class Delivered:
    session: Session
    lane: Lane
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Over:
    session: Session
    reason: str
    unacknowledged: tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """A segment of an incarnation came in."""

    epoch: int


class Watched(SessionMachine):
    """The machine as it is, between events of a model and effects that name their session.

    Attributes:
        follows: answers go to whoever spoke last, as in the shell, where a peer's latest address is
            the one that is used; and what was heard is told.
    """

    follows = False

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401
        session = (self.epoch, self.peer_epoch)
        match event:
            case PeerLost():
                return []
            case Want():
                return super().handle(LinkUp(), now) if self.phase is Phase.IDLE else []
            case Offer(lane, payload):
                if not self.may_submit(lane, 1, len(payload)):
                    return []
                effects = super().handle(Submit(lane, (payload,)), now)
                return [Accepted(session, lane, payload), *effects]
            case Taken(of, lane, items, size):
                if of != session or self.phase is not Phase.OPEN:
                    return []
                return super().handle(Consumed(lane, items, size), now)
        heard: list[object] = []
        if self.follows and isinstance(event, Received):
            self.peer = event.sender
            heard.append(Heard(event.message.epoch))  # type: ignore[attr-defined]
        effects = super().handle(event, now)
        return [*(self._named(effect, session) for effect in effects), *heard]

    def _named(self, effect: object, before: Session) -> object:
        match effect:
            case Deliver(lane, payloads):
                return Delivered((self.epoch, self.peer_epoch), lane, payloads)
            case Ended(reason, unacknowledged):
                return Over(before, reason, unacknowledged)
        return effect

    def state(self) -> Hashable:
        whole: Any = super().state()
        plain, sending, receiving = whole
        idle = IDLE_TIMES.get(self.phase, ALL_TIMES)
        wait = self._wait if self.phase in IDLE_TIMES else self.limits.resend_after
        values = {"_wait": wait, **dict.fromkeys(idle, 0.0)}
        plain = tuple(values.get(name, value) for name, value in zip(PLAIN, plain, strict=True))
        return plain, sending, receiving, self.peer

    def restore(self, state: Any) -> None:  # noqa: ANN401
        *rest, self.peer = state
        super().restore(tuple(rest))


def set_back(state: Any, by: float) -> Hashable:  # noqa: ANN401
    """The same state with its clock set back."""
    plain, *rest = state
    idle = IDLE_TIMES.get(plain[0], ALL_TIMES)
    times = tuple(
        max(value - by, LONG_AGO)
        if isinstance(value, float) and name != "_wait" and name not in idle
        else value
        for name, value in zip(PLAIN, plain, strict=True)
    )
    return (times, *rest)
