"""From wherever bad luck has led: once the link is good again, everything arrives."""

from collections import deque

from dsp.core.machine import Received, Send, Tick
from dsp.core.session.segments import Phase
from dsp.core.types import NodeId
from dsp.testing.explorer import Run, View
from dsp.testing.explorer.run import Feed, Violate
from tests.session.model import Ghost, SessionModel, may_offer
from tests.session.watched import Offer, Want, Watched

__all__ = ["RecoveringModel"]

MOST_FRAMES = 200
MOST_TIME = 100.0


class RecoveringModel(SessionModel):
    """Checks in every state that a good link brings everything to its end.

    From each state that can be reached one more run is made, in which frames arrive in order and
    time passes only when none is in flight. It must deliver all that is not lost with a session,
    and may not go on for ever without time passing.
    """

    def invariant(self, view: View[Watched]) -> None:
        super().invariant(view)
        if len(view.nodes) == 2:
            GoodLink(self, view).run()


class GoodLink:
    """One run over a good link, from a state of a model."""

    def __init__(self, model: SessionModel, view: View[Watched]) -> None:
        self.model = model
        self.now = 0.0
        self.ghost: Ghost = view.ghost  # type: ignore[assignment]
        self.ends: dict[NodeId, Watched] = {}
        for node in view.nodes:
            met = view.machine(node)
            end = self.ends[node] = type(met)(met.peer, met.epoch, met.limits)
            end.restore(met.state())
        self.posted = [
            (node, event)
            for node in view.nodes
            for event in view.channel(node, node, None)  # type: ignore[arg-type]
        ]
        self.frames: deque[tuple[NodeId, Send]] = deque()
        for sender, receiver, lane, messages in view.in_flight():
            self.frames.extend((sender, Send(receiver, message, lane)) for message in messages)
        self.wishes = {
            node: deque(
                Offer(lane, f"{node}{number}".encode())
                for number, lane in enumerate(wishes)
                if number >= view.steps_done(f"{node} sends")
            )
            for node, wishes in model.wishes.items()
            if wishes
        }

    def run(self) -> None:
        since = 0
        while not self.done():
            since += 1
            assert since < MOST_FRAMES, "a storm: messages and no time passes"
            if self.posted:
                self.feed(*self.posted.pop(0))
            elif self.frames:
                sender, frame = self.frames.popleft()
                self.feed(frame.to, Received(sender, frame.message, frame.lane))
            elif not self.offer():
                self.wait()
                since = 0

    def done(self) -> bool:
        whole = all(stream.is_settled(self.ends.values()) for stream in self.ghost)
        settled = all(end.settled() for end in self.ends.values())
        return whole and settled and not self.frames and not any(self.wishes.values())

    def offer(self) -> bool:
        """Let an application send, if one can."""
        for node, wishes in self.wishes.items():
            end = self.ends[node]
            if wishes and end.phase is Phase.IDLE:
                self.feed(node, Want())
                return True
            if wishes and may_offer(end, wishes[0].lane):
                self.feed(node, wishes.popleft())
                return True
        return False

    def wait(self) -> None:
        """Let time pass until something is due."""
        due = {
            node: deadline
            for node, end in self.ends.items()
            if (deadline := end.next_deadline()) is not None
        }
        assert due, f"nothing will ever happen again, with {self.ghost}"
        node = min(due, key=lambda node: due[node])
        self.now = max(self.now, due[node])
        waiting = {node: len(wishes) for node, wishes in self.wishes.items()}
        assert self.now < MOST_TIME, f"not at its end, {waiting} to send, {self.ghost}"
        self.feed(node, Tick())

    def feed(self, node: NodeId, event: object) -> None:
        for effect in self.ends[node].handle(event, self.now):
            if isinstance(effect, Send):
                self.frames.append((node, effect))
                continue
            run = Run(self.ghost)
            self.model.on_effect(run, node, effect)
            self.ghost = run.ghost  # type: ignore[assignment]
            for order in run.orders:
                assert not isinstance(order, Violate), order.message
                if isinstance(order, Feed):
                    self.feed(order.node, order.event)
        self.ends[node].check_invariants()
