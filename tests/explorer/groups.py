"""Nodes that come and go: a parent that spawns children and keeps track of who is there."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from dsp.core.machine import PeerLost, Received, Send
from dsp.core.types import NodeId
from dsp.testing.explorer import Model, Run, Script, View, tell

__all__ = ["CHILD", "PARENT", "Bye", "Grow", "GroupModel", "Hello", "Node", "Ping", "Quit", "Work"]

PARENT, CHILD = NodeId("parent"), NodeId("child")


@dataclass(frozen=True, slots=True)
class Grow:
    """Create the child."""


@dataclass(frozen=True, slots=True)
class Quit:
    """Go."""


@dataclass(frozen=True, slots=True)
class Work:
    """Ask the child to do something."""


@dataclass(frozen=True, slots=True)
class Spawn:
    node: NodeId


@dataclass(frozen=True, slots=True)
class Leave:
    """I am gone."""


@dataclass(frozen=True, slots=True)
class Hello:
    """I am there."""


@dataclass(frozen=True, slots=True)
class Ping:
    """Do something."""


@dataclass(frozen=True, slots=True)
class Bye:
    """I go."""


class Node:
    """Parent and child alike: knows who is there."""

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.known: tuple[NodeId, ...] = ()
        self.pings = 0

    def handle(
        self, event: Grow | Quit | Work | Received | PeerLost, now: float
    ) -> Sequence[Send | Spawn | Leave]:
        match event:
            case Grow():
                return [Spawn(CHILD), Send(CHILD, Hello())]
            case Work():
                return [Send(peer, Ping()) for peer in self.known]
            case Quit():
                return [*(Send(peer, Bye()) for peer in self.known), Leave()]
            case PeerLost(peer) | Received(peer, Bye()):
                self.known = tuple(other for other in self.known if other != peer)
            case Received(_, Ping()):
                self.pings += 1
            case Received(peer, _):
                answer = [] if peer in self.known or self.me == PARENT else [Send(peer, Hello())]
                self.known += (peer,)
                return answer
        return []

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        assert len(set(self.known)) == len(self.known), "known twice"

    def state(self) -> Hashable:
        return (self.known, self.pings)

    def restore(self, state: Hashable) -> None:
        self.known, self.pings = state  # type: ignore[misc]

    def describe(self) -> Mapping[str, object]:
        return {"known": self.known}


class GroupModel(Model[Node]):
    """A parent creates a child; then whatever ``more`` says. The ghost counts dropped frames."""

    def __init__(self, *more: Script) -> None:
        self.more = more

    def machines(self) -> Mapping[NodeId, Node]:
        return {PARENT: Node(PARENT)}

    def scripts(self) -> Sequence[Script]:
        return [Script("grow", (tell(PARENT, Grow()),)), *self.more]

    def ghost(self) -> Hashable:
        return 0

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        match effect:
            case Spawn(child):
                run.spawn(child, Node(child))
            case Leave():
                run.retire(node)

    def on_undeliverable(
        self, run: Run, sender: NodeId, to: NodeId, message: Hashable, lane: object
    ) -> None:
        assert isinstance(run.ghost, int)
        run.ghost += 1

    def quiet(self, view: View[Node]) -> None:
        for node in view.nodes:
            others = {other for other in view.nodes if other != node}
            known = set(view.machine(node).known)
            assert known == others, f"{node} knows {sorted(known)}, there is {sorted(others)}"
