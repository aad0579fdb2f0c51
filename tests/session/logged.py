"""Two ends that talk by way of a log, for the explorer, and what must hold whatever happens.

A channel of the explorer is what nobody has read of a log. What was read and not committed is with
the process that read it, and comes again to its next incarnation.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsp.core.machine import Received, Reject, Send
from dsp.core.session.durable import DurableMachine
from dsp.core.session.segments import (
    CloseRequested,
    Deliver,
    LinkUp,
    Phase,
    Segment,
    SessionLimits,
    Submit,
)
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer import Model, Run, Script, View, rebase_floats, tell

__all__ = ["A", "B", "LoggedModel", "Process"]

A, B = NodeId("a"), NodeId("b")
FIRST = {A: 100, B: 200}
LATER = 1000
QUICK = SessionLimits(heartbeat_every=2.0, suspect_after=3.0)

Entry = tuple[NodeId, Segment]


@dataclass(frozen=True, slots=True)
class Offer:
    """The application sends a payload; nothing comes of it once this end is closed."""

    lane: Lane
    payload: bytes


@dataclass(frozen=True, slots=True)
class Commit:
    """The oldest record of a lane that was read and is not committed is committed."""

    lane: Lane


@dataclass(frozen=True, slots=True)
class Reread:
    """A record that an earlier incarnation had read comes again."""

    lane: Lane


@dataclass(frozen=True, slots=True)
class Repeat:
    """The producer of a lane broke: the new one logs again what the old one had not heard of."""

    lane: Lane


@dataclass(frozen=True, slots=True)
class Restart:
    """The process dies and comes back."""


@dataclass(frozen=True, slots=True)
class Accepted:
    epoch: int
    lane: Lane
    payload: bytes


@dataclass(frozen=True, slots=True)
class Delivered:
    """Payloads of an incarnation of the sender were given to one of the receiver."""

    sender_epoch: int
    epoch: int
    lane: Lane
    payloads: tuple[bytes, ...]


class Process:
    """A session machine, and what the log knows about its reader. Restarts in place.

    Args:
        keeps: whether it restarts, so that what it has read must be remembered.
        repeats: whether its producer breaks, so that what it has logged must be remembered.

    Attributes:
        machine: of the present incarnation.
        read: per lane, what was read and not committed, oldest first.
        again: per lane, how many of the last of them this incarnation has yet to read.
        logged: per lane, what this incarnation sent.
    """

    def __init__(self, machine: DurableMachine, *, keeps: bool, repeats: bool) -> None:
        self.machine = machine
        self.keeps = keeps
        self.repeats = repeats
        self.read: dict[Lane, tuple[Entry, ...]] = dict.fromkeys(Lane, ())
        self.again = dict.fromkeys(Lane, 0)
        self.logged: dict[Lane, tuple[Segment, ...]] = dict.fromkeys(Lane, ())

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401
        match event:
            case Offer(lane, payload):
                return self._offer(lane, payload, now)
            case Commit(lane):
                self.read[lane] = self.read[lane][1:]
                return []
            case Repeat(lane):
                return [Send(self.machine.peer, segment, lane) for segment in self.logged[lane]]
            case Restart():
                old = self.machine
                self.machine = type(old)(old.peer, old.epoch + LATER, old.limits)
                self.again = {lane: len(entries) for lane, entries in self.read.items()}
                self.logged = dict.fromkeys(Lane, ())
                return []
            case Reread(lane):
                sender, segment = self.read[lane][-self.again[lane]]
                self.again[lane] -= 1
                return self._hear(Received(sender, segment, lane), now)
            case Received(sender, message, lane):
                assert isinstance(message, Segment)
                if self.keeps:
                    self.read[lane] += ((sender, message),)
                if self.again[lane] or self.machine.phase is Phase.CLOSED:
                    self.again[lane] += self.keeps  # for later, or for the next incarnation
                    return []
                return self._hear(event, now)
        return self.machine.handle(event, now)

    def _offer(self, lane: Lane, payload: bytes, now: float) -> Sequence[Any]:
        if self.machine.phase is Phase.CLOSED:
            return []
        effects = list(self.machine.handle(LinkUp(), now))  # as the shell does, if it is not open
        effects += self.machine.handle(Submit(lane, (payload,)), now)
        if self.repeats:
            segment = effects[-1].message  # type: ignore[union-attr]
            self.logged[lane] += (segment,)  # type: ignore[operator]
        return [Accepted(self.machine.epoch, lane, payload), *effects]

    def _hear(self, event: Received, now: float) -> Sequence[Any]:
        epoch = event.message.epoch  # type: ignore[attr-defined]
        return [
            Delivered(epoch, self.machine.epoch, *effect) if isinstance(effect, Deliver) else effect
            for effect in self.machine.handle(event, now)
        ]

    def committable(self, lane: Lane) -> bool:
        """Whether there is a record that this incarnation has read, and not committed."""
        return len(self.read[lane]) > self.again[lane]

    def rereads(self, lane: Lane) -> bool:
        """Whether a record of an earlier incarnation is to be read now."""
        return self.again[lane] > 0 and self.machine.phase is not Phase.CLOSED

    def next_deadline(self) -> float | None:
        return self.machine.next_deadline()

    def check_invariants(self) -> None:
        self.machine.check_invariants()

    def state(self) -> Hashable:
        log = (*self.read.values(), *self.again.values(), *self.logged.values())
        return (self.machine.epoch, self.machine.state(), log)

    def restore(self, state: Any) -> None:  # noqa: ANN401
        self.machine.epoch, inner, log = state
        self.machine.restore(inner)
        self.read = dict(zip(Lane, log[:2], strict=True))
        self.again = dict(zip(Lane, log[2:4], strict=True))
        self.logged = dict(zip(Lane, log[4:], strict=True))

    def describe(self) -> Mapping[str, object]:
        return self.machine.describe()


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """What one incarnation logged on one lane; a part of the ghost.

    Attributes:
        delivered: how many of it have ever been delivered, counted from the first.
        reader: the incarnation that got some of it last.
        next: what that one gets next.
    """

    epoch: int
    lane: str
    sent: tuple[bytes, ...] = ()
    delivered: int = 0
    reader: int = 0
    next: int = 0

    def is_of(self, node: NodeId) -> bool:
        """Whether an incarnation of this node logged it."""
        return self.epoch % LATER == FIRST[node]

    def is_after(self, other: "Stream") -> bool:
        """Whether a newer incarnation of the same node logged it, on the same lane."""
        same = self.epoch % LATER == other.epoch % LATER and self.lane == other.lane
        return same and self.epoch > other.epoch and self.next > 0


Ghost = tuple[Stream, ...]


class LoggedModel(Model[Process]):
    """Two processes that send to each other by way of a log.

    Args:
        a: lanes on which ``a`` sends, one payload for each.
        b: the same for ``b``.
        again: who restarts, at any moment, once for each time that it is named.
        close: who closes, at any moment.
        repeats: lanes of ``a`` whose producer breaks, at any moment.
        ticks: time-outs in a run.
        machine: what to explore; a wrong one must be found out.
    """

    def __init__(
        self,
        a: Sequence[Lane] = (),
        b: Sequence[Lane] = (),
        *,
        again: Sequence[NodeId] = (),
        close: Sequence[NodeId] = (),
        repeats: Sequence[Lane] = (),
        ticks: int | None = 1,
        machine: type[DurableMachine] = DurableMachine,
    ) -> None:
        self.wishes = {A: tuple(a), B: tuple(b)}
        self.again = tuple(again)
        self.close = tuple(close)
        self.repeats = tuple(repeats)
        self.max_ticks = ticks
        self.kind = machine

    # -- who there is and what happens ----------------------------------------------------

    def machines(self) -> Mapping[NodeId, Process]:
        return {
            node: Process(
                self.kind(peer, FIRST[node], QUICK),
                keeps=node in self.again,
                repeats=node == A and bool(self.repeats),
            )
            for node, peer in ((A, B), (B, A))
        }

    def scripts(self) -> Sequence[Script]:
        found: list[Script] = []
        for node, wishes in self.wishes.items():
            offers = (
                tell(node, Offer(lane, f"{node}{number}".encode()))
                for number, lane in enumerate(wishes)
            )
            if wishes:
                found.append(Script(f"{node} sends", tuple(offers)))
        for number, node in enumerate(self.again):
            found.append(Script(f"{node} restarts {number}", (tell(node, Restart()),)))
        found += [Script(f"{node} closes", (tell(node, CloseRequested()),)) for node in self.close]
        for number, lane in enumerate(self.repeats):
            found.append(Script(f"producer {number} breaks", (tell(A, Repeat(lane)),)))
        for node in dict.fromkeys(self.again):
            for lane in Lane:
                found += self._log(node, lane)
        return found

    def _log(self, node: NodeId, lane: Lane) -> Sequence[Script]:
        """What happens to the reader's end of a lane, as often as it can."""

        def can_commit(view: View[Process]) -> bool:
            return view.machine(node).committable(lane)

        def can_reread(view: View[Process]) -> bool:
            return view.machine(node).rereads(lane)

        name = f"{node} {lane.value}"
        commit = tell(node, Commit(lane), when=can_commit, fair=False)
        return (
            Script(f"{name} again", (tell(node, Reread(lane), when=can_reread),), endless=True),
            Script(f"{name} commits", (commit,), endless=True),
        )

    def rebase(self, node: NodeId, state: Hashable, by: float) -> Hashable:
        return rebase_floats(state, by)

    # -- what must hold -------------------------------------------------------------------

    def ghost(self) -> Hashable:
        return ()

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        ghost: Ghost = run.ghost  # type: ignore[assignment]
        match effect:
            case Accepted(epoch, lane, payload):
                stream = find(ghost, epoch, lane)
                run.ghost = put(ghost, replace(stream, sent=(*stream.sent, payload)))
            case Delivered(sender, reader, lane, payloads):
                stream = find(ghost, sender, lane)
                for payload in payloads:
                    if reader != stream.reader:
                        # It begins where the log says, but never behind what nobody has got.
                        first = stream.sent.index(payload) if payload in stream.sent else 0
                        if first > stream.delivered:
                            run.violate(f"{node} got {payload!r} of {stream}: a gap")
                        stream = replace(stream, reader=reader, next=first)
                    if stream.sent[stream.next : stream.next + 1] != (payload,):
                        run.violate(f"{node} got {payload!r} of {stream}")
                    after = stream.next + 1
                    stream = replace(stream, next=after, delivered=max(after, stream.delivered))
                newer = [s for s in ghost if s.is_after(stream) and s.reader == reader]
                if newer:
                    run.violate(f"{node} got {payloads} of {stream} after {newer}")
                run.ghost = put(ghost, stream)
            case Reject(_, reason):
                run.violate(f"{node} rejects a correct peer: {reason}")

    def invariant(self, view: View[Process]) -> None:
        """What was accepted is in the log, is with its reader, or was delivered."""
        streams: Ghost = view.ghost  # type: ignore[assignment]
        for stream in streams:
            lane = Lane(stream.lane)
            sender, to = (A, B) if stream.is_of(A) else (B, A)
            receiver = view.machine(to)
            if view.channel(sender, to, lane) or receiver.rereads(lane):
                continue  # there is more to come
            if receiver.machine.phase is not Phase.CLOSED:
                assert stream.delivered == len(stream.sent), f"lost: {stream}"
            elif receiver.keeps:
                kept = {
                    payload for _, segment in receiver.read[lane] for payload in segment.payloads
                }
                lost = set(stream.sent[stream.delivered :]) - kept
                assert not lost, f"lost: {lost} of {stream}"


def find(ghost: Ghost, epoch: int, lane: Lane) -> Stream:
    """The stream of an incarnation and lane."""
    for stream in ghost:
        if stream.epoch == epoch and stream.lane == lane.value:
            return stream
    return Stream(epoch, lane.value)


def put(ghost: Ghost, new: Stream) -> Ghost:
    """The ghost with a stream replaced or added."""
    others = (each for each in ghost if (each.epoch, each.lane) != (new.epoch, new.lane))
    return tuple(sorted((*others, new)))
