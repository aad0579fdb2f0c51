"""Mutual exclusion by Ricart and Agrawala, right and wrong, for the explorer to judge."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from dsp.core.machine import Received, Send
from dsp.core.types import NodeId
from dsp.errors import InvariantError, LocalProtocolError
from dsp.testing.explorer import Model, Script, Stimulus, View, tell

__all__ = ["Ask", "Done", "Enter", "Exit", "Lock", "LockModel", "names"]


@dataclass(frozen=True, slots=True)
class Enter:
    """Local request to get in."""


@dataclass(frozen=True, slots=True)
class Exit:
    """Local request to get out."""


@dataclass(frozen=True, slots=True)
class Ask:
    """May I? I asked at time ``ts``."""

    ts: int


@dataclass(frozen=True, slots=True)
class Done:
    """You may, as far as I am concerned."""


class Lock:
    """One node. Without ``tie_break`` equal timestamps are both granted."""

    def __init__(self, me: NodeId, peers: Sequence[NodeId], *, tie_break: bool = True) -> None:
        self.me = me
        self.peers = tuple(peers)
        self.tie_break = tie_break
        self.clock = self.ts = 0
        self.status = "idle"
        self.waiting: frozenset[NodeId] = frozenset()
        self.deferred: frozenset[NodeId] = frozenset()

    @property
    def inside(self) -> bool:
        return self.status == "inside"

    def handle(self, event: Enter | Exit | Received, now: float) -> Sequence[Send]:
        match event:
            case Enter():
                if self.status != "idle":
                    raise LocalProtocolError(f"enter while {self.status}")
                self.clock += 1
                self.ts = self.clock
                self.status = "asking" if self.peers else "inside"
                self.waiting = frozenset(self.peers)
                return [Send(peer, Ask(self.ts)) for peer in self.peers]
            case Exit():
                if self.status != "inside":
                    raise LocalProtocolError(f"exit while {self.status}")
                self.status = "idle"
                answers = [Send(peer, Done()) for peer in sorted(self.deferred)]
                self.deferred = frozenset()
                return answers
            case Received(sender, Ask(ts)):
                self.clock = max(self.clock, ts)
                mine = (self.ts, self.me) if self.tie_break else (self.ts, "")
                theirs = (ts, sender) if self.tie_break else (ts, "")
                if self.inside or (self.status == "asking" and mine < theirs):
                    self.deferred |= {sender}
                    return []
                return [Send(sender, Done())]
            case Received(sender, _):
                self.waiting -= {sender}
                if self.status == "asking" and not self.waiting:
                    self.status = "inside"
                return []

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        if self.deferred and self.status == "idle":
            raise InvariantError("answers are owed by an idle node")

    def state(self) -> Hashable:
        return (self.clock, self.ts, self.status, self.waiting, self.deferred)

    def restore(self, state: Hashable) -> None:
        self.clock, self.ts, self.status, self.waiting, self.deferred = state  # type: ignore[misc]

    def describe(self) -> Mapping[str, object]:
        return {"status": self.status}


def names(count: int) -> tuple[NodeId, ...]:
    """The first so many names."""
    return tuple(NodeId(name) for name in "abcdefgh"[:count])


class LockModel(Model[Lock]):
    """Nodes that enter and leave so many times each; at most one may be inside."""

    def __init__(
        self, nodes: Sequence[NodeId], *, entries: int = 1, tie_break: bool = True
    ) -> None:
        self.nodes = tuple(nodes)
        self.entries = entries
        self.tie_break = tie_break

    def machines(self) -> Mapping[NodeId, Lock]:
        return {
            node: Lock(node, [n for n in self.nodes if n != node], tie_break=self.tie_break)
            for node in self.nodes
        }

    def scripts(self) -> Sequence[Script]:
        return [
            Script(node, (tell(node, Enter()), self.exit(node)) * self.entries)
            for node in self.nodes
        ]

    def exit(self, node: NodeId) -> Stimulus:
        return tell(node, Exit(), when=lambda view: view.machine(node).inside)

    def invariant(self, view: View[Lock]) -> None:
        inside = [node for node in view.nodes if view.machine(node).inside]
        if len(inside) > 1:
            raise InvariantError(f"{' and '.join(inside)} are inside")
