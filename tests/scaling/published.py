"""An exhibit: the scale protocol as the papers print it, which fails. Not for use.

Algorithms 4 to 10 of paper 000, line by line: sides by membership in a set, one counter for all
acknowledgements, leaving told to both sides at once. One FIFO channel for data and control, as the
papers assume. ``LOOK_FOR`` says which faults a model reports, so that each can be found by itself.
"""

from collections.abc import Hashable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from dsp.core.machine import Received, Send
from dsp.core.types import Lane, NodeId
from dsp.scaling.events import (
    Deletion,
    DeletionAck,
    Drain,
    Duplication,
    DuplicationAck,
    LeaveRequested,
    Member,
    QueueEmptied,
    ScaleOutRequested,
    Spawn,
    Spawned,
    Start,
    Terminate,
)
from dsp.scaling.place import Place
from dsp.testing.explorer import Absent, Run, Script, View, tell
from tests.scaling.graphs import LINE, Graph
from tests.scaling.instances import Instance, Record
from tests.scaling.models import Pipeline, ghost_of

__all__ = ["Fault", "Published", "PublishedPipeline"]


class Published:
    """One instance of the papers."""

    def __init__(self, place: Place, neighbours: Sequence[Member] | None) -> None:
        self.place = place
        self.active = neighbours is not None
        known = neighbours or ()
        self.succs = frozenset(m.id for m in known if m.operator in place.downstream)
        self.preds = frozenset(m.id for m in known if m.operator in place.upstream)
        empty: frozenset[NodeId] = frozenset()
        self.succs_to_add = self.preds_to_add = empty
        self.succs_to_delete = self.preds_to_delete = empty
        self.new_addrs: tuple[NodeId, ...] = ()
        self.acks = self.expected = 0
        self.draining = False

    @property
    def works(self) -> bool:
        return self.active

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        return tuple(sorted(name for name in self.succs if name[0] == operator))

    def handle(self, event: object, now: float) -> Sequence[object]:
        match event:
            case ScaleOutRequested(count):
                return [Spawn(count)]
            case Spawned(newcomers):
                self.new_addrs = newcomers
                return self._multicast(Duplication("", 0, newcomers))
            case LeaveRequested():
                return self._multicast(Deletion(""))
            case Received(sender, Duplication(_, _, newcomers)):
                self._duplicated(sender, frozenset(newcomers))
                return [Send(sender, DuplicationAck(True))]
            case Received(sender, Deletion()):
                self._deleted(sender)
                return [Send(sender, DeletionAck())]
            case Received(_, DuplicationAck()):
                self.acks += 1
                if self.acks == self.expected:
                    start = Start(tuple(Member("", 0, n) for n in sorted(self.succs | self.preds)))
                    return [Send(name, start) for name in self.new_addrs]
            case Received(_, DeletionAck()):
                self.acks += 1
                if self.acks == self.expected:
                    self.draining = True
                    return [Drain()]
            case Received(_, Start(neighbours)):
                names = frozenset(member.id for member in neighbours)
                succs = {name for name in names if name[0] in self.place.downstream}
                preds = {name for name in names if name[0] in self.place.upstream}
                self.succs = frozenset(succs | self.succs_to_add) - self.succs_to_delete
                self.preds = frozenset(preds | self.preds_to_add) - self.preds_to_delete
                self.active = True
            case QueueEmptied():
                return [Terminate()]
        return []

    def _multicast(self, message: Hashable) -> list[object]:
        self.acks, self.expected = 0, len(self.succs) + len(self.preds)
        return [Send(name, message) for name in sorted(self.succs | self.preds)]

    def _duplicated(self, sender: NodeId, names: frozenset[NodeId]) -> None:
        if sender in self.succs:
            if self.active:
                self.succs |= names
            else:
                self.succs_to_add |= names
        elif sender in self.preds:
            if self.active:
                self.preds |= names
            else:
                self.preds_to_add |= names

    def _deleted(self, sender: NodeId) -> None:
        if sender in self.succs:
            if self.active:
                self.succs -= {sender}
            else:
                self.succs_to_delete |= {sender}
        elif sender in self.preds:
            if self.active:
                self.preds -= {sender}
            else:
                self.preds_to_delete |= {sender}

    def check_invariants(self) -> None:
        pass

    def state(self) -> Hashable:
        return tuple(vars(self)[name] for name in sorted(vars(self)) if name != "place")

    def restore(self, state: Hashable) -> None:
        values: Any = state
        names = [name for name in sorted(vars(self)) if name != "place"]
        for name, value in zip(names, values, strict=True):
            setattr(self, name, value)

    def describe(self) -> Mapping[str, object]:
        status = "DRAINING" if self.draining else "ACTIVE" if self.active else "IDLE"
        return {"status": status, "succs": sorted(self.succs), "preds": sorted(self.preds)}


class Fault(Enum):
    """What a model of the exhibit reports."""

    EARLY = auto()
    LOST = auto()
    VIEWS = auto()
    NEVER_STARTED = auto()
    STUCK = auto()


class PublishedPipeline(Pipeline):
    """The exhibit with fixed operations.

    Args:
        operations: such as "d b0" and "x b1"; each happens once, at any moment.
        look_for: the fault that is reported.
    """

    absent = Absent.DROP

    def __init__(
        self, *sizes: int, steps: str, look_for: Fault, graph: Graph = LINE, records: int = 1
    ) -> None:
        super().__init__(*sizes, operations=len(steps.split()) // 2, graph=graph, records=records)
        words = steps.split()
        self.plan = list(zip(words[::2], words[1::2], strict=True))
        self.look_for = look_for

    def make(self, place: Place, neighbours: Sequence[Member] | None) -> Instance:
        early = self.look_for is Fault.EARLY
        return Instance(Published(place, neighbours), lane=Lane.CONTROL, refuse_early=early)

    def scripts(self) -> Sequence[Script]:
        others = [s for s in super().scripts() if s.name[:2] not in ("d ", "x ")]
        planned = []
        for number, (kind, name) in enumerate(self.plan):
            event = ScaleOutRequested() if kind == "d" else LeaveRequested()
            step = tell(NodeId(name), event, when=self._active(NodeId(name)))
            planned.append(Script(f"{kind} {name} {number}", (step,), endless=False))
        return [*planned, *others]

    @staticmethod
    def _active(name: NodeId) -> Any:  # noqa: ANN401
        def when(view: View[Instance]) -> bool:
            return view.machine(name).scaler.works

        return when

    def on_undeliverable(
        self, run: Run, sender: NodeId, to: NodeId, message: Hashable, lane: Lane
    ) -> None:
        if isinstance(message, Record) and self.look_for is Fault.LOST:
            run.violate(f"the record is lost on its way from {sender} to {to}, which is gone")

    def invariant(self, view: View[Instance]) -> None:
        """Nothing: faults are looked for one by one."""

    def quiet(self, view: View[Instance]) -> None:
        for node in view.nodes:
            scaler = view.machine(node).scaler
            assert isinstance(scaler, Published)
            if self.look_for is Fault.NEVER_STARTED:
                assert scaler.active, f"{node} is never started"
            if self.look_for is Fault.STUCK:
                leaver = any(("x", node) == (kind, name) for kind, name in self.plan)
                assert not leaver, f"{node} never ends its leaving"
            if self.look_for is Fault.VIEWS and scaler.active:
                near = (*scaler.place.upstream, *scaler.place.downstream)
                truth = sorted(other for other in view.nodes if other[0] in near)
                known = sorted(scaler.succs | scaler.preds)
                assert known == truth, f"{node} knows {known}, there is {truth}"
        if self.look_for is Fault.LOST:
            out = len(ghost_of(view).out)
            assert out == self.records, f"{out} of {self.records} records came out"
