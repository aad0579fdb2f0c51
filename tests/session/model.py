"""Two ends of a session for the explorer, and what must hold whatever happens to them."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from dsp.core.machine import Received, Reject, Send
from dsp.core.session.segments import (
    CloseRequested,
    LinkUp,
    Phase,
    SessionLimits,
    Superseded,
)
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer import (
    Absent,
    LaneRules,
    Model,
    Run,
    Script,
    Stimulus,
    View,
    join,
    leave,
    tell,
)
from tests.session.watched import Accepted, Delivered, Offer, Over, Taken, Want, Watched, set_back

__all__ = ["A", "B", "IMPATIENT", "PATIENT", "SessionModel", "Stream"]

A, B = NodeId("a"), NodeId("b")
FIRST = {A: 100, B: 200}
LATER = 1000
OVER = (Phase.PARTING, Phase.CLOSED, Phase.REFUSED)

PATIENT = SessionLimits(
    resend_after=2.0,
    resend_at_most=4.0,
    acknowledge_after=1.0,
    acknowledge_every=1,
    heartbeat_every=8.0,
    suspect_after=1e6,
    dead_after=1e6,
    linger=4.0,
    window_items=2,
    window_bytes=100,
    burst=2,
)
"""Nobody is ever given up."""

IMPATIENT = replace(PATIENT, heartbeat_every=2.0, suspect_after=3.0, dead_after=4.0, linger=3.0)
"""Two time-outs without a word are enough."""


@dataclass(frozen=True, slots=True, order=True)
class Stream:
    """What one end sent in one session on one lane; a part of the ghost."""

    session: tuple[int, int]
    lane: str
    sent: tuple[bytes, ...] = ()
    delivered: int = 0
    over: bool = False

    def is_settled(self, ends: Iterable[Watched]) -> bool:
        """Whether all of it arrived, or was named, or died with its sender."""
        # Epochs of one life are less than this apart, and those of others more.
        alive = any(end.epoch // 100 == self.session[0] // 100 for end in ends)
        return self.over or not alive or self.delivered == len(self.sent)


Ghost = tuple[Stream, ...]


class SessionModel(Model[Watched]):
    """Two ends that send to each other.

    Args:
        a: lanes on which ``a`` sends, one payload for each.
        b: the same for ``b``.
        rules: of both lanes.
        ticks: time-outs in a run.
        limits: of both ends.
        opened: begin with an open session.
        again: who restarts, at any moment.
        close: who closes, at any moment.
        cuts: how often the link of ``a`` comes up anew.
        slow: applications take what they get at any later moment.
        machine: what to explore; a wrong one must be found out.
    """

    absent = Absent.KEEP

    def __init__(
        self,
        a: Sequence[Lane] = (),
        b: Sequence[Lane] = (),
        *,
        rules: LaneRules | None = None,
        ticks: int | None = 2,
        limits: SessionLimits = PATIENT,
        opened: bool = False,
        again: Sequence[NodeId] = (),
        close: Sequence[NodeId] = (),
        cuts: int = 0,
        slow: bool = False,
        machine: type[Watched] = Watched,
    ) -> None:
        self.wishes = {A: tuple(a), B: tuple(b)}
        self.lanes = {} if rules is None else dict.fromkeys(Lane, rules)
        self.max_ticks = ticks
        self.limits = limits
        self.opened = opened
        self.again = tuple(again)
        self.close = tuple(close)
        self.cuts = cuts
        self.slow = slow
        self.kind = machine

    # -- who there is and what happens ----------------------------------------------------

    def machines(self) -> Mapping[NodeId, Watched]:
        ends = {A: self.kind(B, FIRST[A], self.limits), B: self.kind(A, FIRST[B], self.limits)}
        return self.shaken(ends)

    def shaken(self, ends: dict[NodeId, Watched]) -> dict[NodeId, Watched]:
        if self.opened:
            shake_hands(ends)
        return ends

    def scripts(self) -> Sequence[Script]:
        found: list[Script] = []
        for node, wishes in self.wishes.items():
            if wishes:
                found.append(Script(f"{node} sends", tuple(self._offers(node))))
                found.append(Script(f"{node} wants", (self._want(node),), endless=True))
        for node in self.again:
            fresh = join(node, partial(self.reborn, node), variant="again")
            found.append(Script(f"{node} restarts", (leave(node), fresh)))
        found += [Script(f"{node} closes", (tell(node, CloseRequested()),)) for node in self.close]
        if self.cuts:
            found.append(Script("link", tuple(tell(A, LinkUp()) for _ in range(self.cuts))))
        return found

    def reborn(self, node: NodeId) -> Watched:
        return self.kind(B if node == A else A, FIRST[node] + LATER, self.limits)

    def _offers(self, node: NodeId) -> Sequence[Stimulus]:
        return [
            tell(
                node,
                Offer(lane, f"{node}{number}".encode()),
                when=lambda view, lane=lane: may_offer(view.machine(node), lane),  # type: ignore[misc]
            )
            for number, lane in enumerate(self.wishes[node])
        ]

    def _want(self, node: NodeId) -> Stimulus:
        def wants(view: View[Watched]) -> bool:
            idle = view.machine(node).phase is Phase.IDLE
            return idle and view.steps_done(f"{node} sends") < len(self.wishes[node])

        return tell(node, Want(), when=wants)

    def rebase(self, node: NodeId, state: Hashable, by: float) -> Hashable:
        return set_back(state, by)

    # -- what must hold -------------------------------------------------------------------

    def ghost(self) -> Hashable:
        return ()

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        ghost: Ghost = run.ghost  # type: ignore[assignment]
        match effect:
            case Accepted(session, lane, payload):
                stream = find(ghost, session, lane)
                run.ghost = put(ghost, replace(stream, sent=(*stream.sent, payload)))
            case Delivered((own, other), lane, payloads):
                stream = find(ghost, (other, own), lane)
                for payload in payloads:
                    expected = stream.sent[stream.delivered : stream.delivered + 1]
                    if expected != (payload,):
                        run.violate(f"{node} got {payload!r} of {stream}")
                    stream = replace(stream, delivered=stream.delivered + 1)
                run.ghost = put(ghost, stream)
                size = sum(map(len, payloads))
                taken = Taken((own, other), lane, len(payloads), size)
                (run.post if self.slow else run.feed)(node, taken)
            case Over(session, _, unacknowledged):
                for lane, named in zip(Lane, unacknowledged, strict=True):
                    stream = find(ghost, session, lane)
                    kept = len(stream.sent) - len(named)
                    if stream.sent[kept:] != named:
                        run.violate(f"{node} names {named} of {stream}, which is not its end")
                    if kept > stream.delivered:
                        run.violate(f"{node} names only {named} of {stream}")
                    if stream.over and named:
                        run.violate(f"{node} names {named} twice")
                    if stream.sent:
                        ghost = put(ghost, replace(stream, over=True))
                run.ghost = ghost
            case Reject(_, reason):
                run.violate(f"{node} rejects a correct peer: {reason}")
            case Superseded():
                run.violate(f"{node} is refused though nobody is stale")

    def invariant(self, view: View[Watched]) -> None:
        """What is acknowledged was delivered."""
        for node in view.nodes:
            machine = view.machine(node)
            session = (machine.epoch, machine.peer_epoch)
            acknowledged = [
                (lane, stream.sent - len(stream.unacknowledged))
                for lane, stream in machine.sending.items()
                if stream.sent
            ]
            for lane, number in acknowledged:
                delivered = find(self.streams(view), session, lane).delivered
                assert number <= delivered, f"{node} has {number} acknowledged, {delivered} came"

    def quiet(self, view: View[Watched]) -> None:
        ends = [view.machine(node) for node in view.nodes]
        for stream in self.streams(view):
            assert stream.is_settled(ends), f"left at the end: {stream}"

    def waits(self, view: View[Watched]) -> bool:
        """Whether something was not sent or not delivered yet."""
        if any(
            view.steps_done(f"{node} sends") < len(wishes)
            for node, wishes in self.wishes.items()
            if wishes
        ):
            return True
        return any(stream.delivered < len(stream.sent) for stream in self.streams(view))

    def streams(self, view: View[Watched]) -> Ghost:
        """The ghost's record of what was sent and delivered."""
        return view.ghost  # type: ignore[return-value]


def may_offer(machine: Watched, lane: Lane) -> bool:
    return machine.may_submit(lane, 1, 2) or machine.phase in OVER


def find(ghost: Ghost, session: tuple[int, int], lane: Lane) -> Stream:
    """The stream of a session and lane, from the view of its sender."""
    for stream in ghost:
        if stream.session == session and stream.lane == lane.value:
            return stream
    return Stream(session, lane.value)


def put(ghost: Ghost, new: Stream) -> Ghost:
    """The ghost with a stream replaced or added."""
    others = (each for each in ghost if (each.session, each.lane) != (new.session, new.lane))
    return tuple(sorted((*others, new)))


def shake_hands(ends: Mapping[NodeId, Watched]) -> None:
    """Let two ends open a session over a good link."""
    waiting = [(A, effect) for effect in ends[A].handle(LinkUp(), 0.0)]
    while waiting:
        sender, effect = waiting.pop(0)
        if isinstance(effect, Send):
            event = Received(sender, effect.message, effect.lane)
            waiting += [(effect.to, more) for more in ends[effect.to].handle(event, 0.0)]
    assert all(end.phase is Phase.OPEN for end in ends.values())
