"""Models of pipelines that scale, for the explorer: data plane included.

Any instance may begin any operation at any moment, as long as the run's budget of operations lasts,
so one exploration covers every combination of operations. Records enter at the first operator.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import cast

from dsp.core.machine import Fail, PeerLost, Reject, Resolve
from dsp.core.types import Lane, NodeId
from dsp.scaling.events import (
    Deserted,
    LeaveRequested,
    Member,
    ScaleOutRequested,
    Spawned,
    Terminate,
)
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.progress import Operation
from dsp.scaling.status import Status
from dsp.testing.explorer import Absent, Model, Notice, Run, Script, View, call, tell
from tests.scaling.graphs import LINE, Graph
from tests.scaling.instances import Create, Enter, Forward, Instance, Out, Record, Stopped

__all__ = ["CrashingPipeline", "Ghost", "Pipeline", "ghost_of"]


@dataclass(frozen=True, slots=True)
class Ghost:
    """What no machine knows.

    Attributes:
        operations: how many may still begin.
        born: instances of each operator so far.
        records: how many may still enter.
        out: numbers of records that reached the end, sorted.
        dead: instances that crashed or stopped.
        left: instances that left in good order.
        took: whether a dead instance took a record with it.
        crashes: how many may still happen.
    """

    operations: int
    born: tuple[int, ...]
    records: int
    out: tuple[int, ...] = ()
    dead: tuple[NodeId, ...] = ()
    left: tuple[NodeId, ...] = ()
    took: bool = False
    crashes: int = 0


def ghost_of(source: View[Instance] | Run) -> Ghost:
    return cast("Ghost", source.ghost)


class Pipeline(Model[Instance]):
    """Instances of a graph that scale, without crashes.

    Args:
        sizes: first instances of each operator.
        operations: how many operations there may be in a run.
        records: how many records enter in a run.
        graph: the operators.
        copies: every successor operator gets each record.
    """

    absent = Absent.VIOLATION

    def __init__(
        self,
        *sizes: int,
        operations: int,
        records: int = 1,
        graph: Graph = LINE,
        copies: bool = False,
    ) -> None:
        self.sizes = sizes
        self.operations = operations
        self.records = records
        self.graph = graph
        self.copies = copies

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self.sizes))
        graph = "" if self.graph == LINE else f" over {len(self.graph.edges)} edges"
        copies = ", copies" * self.copies
        return f"{sizes}{graph}{copies} with {self.operations} operations, {self.records} records"

    def make(self, place: Place, neighbours: Sequence[Member] | None) -> Instance:
        return Instance(ScaleMachine(place, neighbours), copies=self.copies)

    def machines(self) -> Mapping[NodeId, Instance]:
        members = self.graph.members(self.sizes)
        around = self.graph.around
        return {m.id: self.make(self.graph.place(m), around(m, members)) for m in members}

    def ghost(self) -> Hashable:
        return Ghost(self.operations, self.sizes, self.records)

    # -- what happens -------------------------------------------------------------------------

    def names(self, operator: str) -> list[NodeId]:
        """Every instance of an operator that a run can have."""
        size = self.sizes[self.graph.operators.index(operator)]
        return [NodeId(f"{operator}{n}") for n in range(size + self.operations)]

    def scripts(self) -> Sequence[Script]:
        scripts = []
        for operator in self.graph.operators:
            for name in self.names(operator):
                scripts.append(self._operate("d", name, ScaleOutRequested(), self._can_scale))
                scripts.append(self._operate("x", name, LeaveRequested(), self._can_leave))
                if not self.graph.upstream(operator):
                    scripts.append(self._enter(name))
                scripts += [self._forward(name, way) for way in range(self._ways(operator))]
        return scripts

    def _ways(self, operator: str) -> int:
        """The most ways there can be, since all operators share the budget of operations."""
        sizes = dict(zip(self.graph.operators, self.sizes, strict=True))
        counts = [sizes[other] for other in self.graph.downstream(operator)]
        if not self.copies or not counts:
            return max(1, sum(counts) + self.operations * bool(counts))
        births = product(range(self.operations + 1), repeat=len(counts))
        grown = (
            prod(map(sum, zip(counts, extra, strict=True)))
            for extra in births
            if sum(extra) <= self.operations
        )
        return max(grown)

    def _can_scale(self, instance: Instance) -> bool:
        scaler = instance.scaler
        return isinstance(scaler, ScaleMachine) and scaler.may_scale

    def _can_leave(self, instance: Instance) -> bool:
        scaler = instance.scaler
        return isinstance(scaler, ScaleMachine) and scaler.may_scale and not scaler.keeper

    def _operate(
        self, kind: str, name: NodeId, event: Hashable, can: Callable[[Instance], bool]
    ) -> Script:
        def act(run: Run) -> None:
            ghost = ghost_of(run)
            run.ghost = replace(ghost, operations=ghost.operations - 1)
            run.feed(name, event)

        def when(view: View[Instance]) -> bool:
            return ghost_of(view).operations > 0 and can(view.machine(name))

        label = f"{name} {'duplicates' if kind == 'd' else 'leaves'}"
        return Script(f"{kind} {name}", (call(label, act, node=name, when=when),), endless=True)

    def _enter(self, name: NodeId) -> Script:
        def act(run: Run) -> None:
            ghost = ghost_of(run)
            run.ghost = replace(ghost, records=ghost.records - 1)
            run.feed(name, Enter(self.records - ghost.records))

        def when(view: View[Instance]) -> bool:
            if not ghost_of(view).records:
                return False
            scaler = view.machine(name).scaler
            return scaler.describe()["status"] == "ACTIVE"

        step = call(f"a record enters at {name}", act, node=name, when=when)
        return Script(f"enter {name}", (step,), endless=True)

    def _forward(self, name: NodeId, way: int) -> Script:
        def when(view: View[Instance]) -> bool:
            return view.machine(name).can_forward(way)

        step = tell(name, Forward(way), when=when)
        return Script(f"forward {name} {way}", (step,), endless=True)

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        ghost = ghost_of(run)
        match effect:
            case Create(parent, count):
                self._create(run, parent, count)
            case Terminate():
                run.retire(node)
            case Out(number):
                run.ghost = replace(ghost, out=tuple(sorted((*ghost.out, number))))
            case Resolve():
                pass
            case Reject(sender, reason):
                run.violate(f"{node} rejects a message of {sender}: {reason}")
            case Deserted(operator):
                run.violate(f"{node} sees no instance of {operator}")
            case Stopped() | Fail():
                run.violate(f"{node}: {effect}")
            case _:
                run.violate(f"nobody performs {effect}")

    def _create(self, run: Run, parent: Place, count: int) -> None:
        ghost = ghost_of(run)
        operator = parent.member.operator
        index = self.graph.operators.index(operator)
        born = ghost.born[index]
        names = tuple(NodeId(f"{operator}{born + n}") for n in range(count))
        changed = (*ghost.born[:index], born + count, *ghost.born[index + 1 :])
        run.ghost = replace(ghost, born=changed)
        for name in names:
            place = parent.newcomer(name)
            run.spawn(name, self.make(place, None), variant=place)
        run.feed(parent.member.id, Spawned(names))

    # -- what must hold -----------------------------------------------------------------------

    def invariant(self, view: View[Instance]) -> None:
        for operator in self.graph.operators:
            keeper = NodeId(f"{operator}0")
            assert view.machine(keeper).scaler.works, f"{keeper} does not work any more"

    def quiet(self, view: View[Instance]) -> None:
        self.check_views(view)
        copies = 2 if self.copies and len(self.graph.downstream("a")) == 2 else 1
        entered = self.records - ghost_of(view).records
        expected = tuple(sorted(list(range(entered)) * copies))
        assert ghost_of(view).out == expected, f"out: {ghost_of(view).out}, not {expected}"

    def check_views(self, view: View[Instance]) -> None:
        """Everybody is active, and knows exactly who is there."""
        for node in view.nodes:
            scaler = view.machine(node).scaler
            assert isinstance(scaler, ScaleMachine)
            assert scaler.status is Status.ACTIVE, f"{node} is {scaler.status.name} for ever"
            assert scaler.operation is Operation.NONE, f"{node}: {scaler.operation.name} for ever"
            near = (*scaler.place.upstream, *scaler.place.downstream)
            truth = sorted(other for other in view.nodes if other[0] in near)
            known = sorted(scaler.neighbours.members)
            assert known == truth, f"{node} knows {known}, there is {truth}"


class CrashingPipeline(Pipeline):
    """The same, and instances crash at any moment; the others learn of it at any later one.

    Frames of the dead may still arrive, before and after their loss is known. An instance that is
    created after a crash hears of it too, since it would not reach the dead either.

    Args:
        crashes: how many there may be in a run.
        everywhere: also where no sibling is active, so that a stage may be deserted.
    """

    absent = Absent.DROP
    notice = Notice.ANYTIME

    def __init__(
        self,
        *sizes: int,
        operations: int,
        crashes: int = 1,
        records: int = 1,
        everywhere: bool = False,
    ) -> None:
        super().__init__(*sizes, operations=operations, records=records)
        self.crashes = crashes
        self.everywhere = everywhere

    def __repr__(self) -> str:
        where = " anywhere" * self.everywhere
        return f"{super().__repr__()}, {self.crashes} crashes{where}"

    def ghost(self) -> Hashable:
        return Ghost(self.operations, self.sizes, self.records, crashes=self.crashes)

    def scripts(self) -> Sequence[Script]:
        names = [name for operator in self.graph.operators for name in self.names(operator)]
        crashes = [self._crash(name, holds) for name in names for holds in (False, True)]
        return [*super().scripts(), *crashes]

    def _crash(self, name: NodeId, holds: bool) -> Script:
        def act(run: Run) -> None:
            ghost = ghost_of(run)
            run.ghost = replace(ghost, crashes=ghost.crashes - 1)
            self._bury(run, name, took=holds)
            run.crash(name)

        def when(view: View[Instance]) -> bool:
            if ghost_of(view).crashes == 0 or bool(view.machine(name).queue) != holds:
                return False
            return self.everywhere or any(
                view.machine(other).scaler.describe()["status"] == "ACTIVE"
                for other in view.nodes
                if other[0] == name[0] and other != name
            )

        step = call(f"{name} crashes", act, node=name, when=when)
        return Script(f"crash {name} {holds}", (step,), endless=True)

    def _bury(self, run: Run, name: NodeId, *, took: bool) -> None:
        ghost = ghost_of(run)
        dead = tuple(sorted((*ghost.dead, name)))
        run.ghost = replace(ghost, dead=dead, took=ghost.took or took)

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        ghost = ghost_of(run)
        match effect:
            case Stopped(had_records):
                self._bury(run, node, took=had_records)
                run.crash(node)
            case Terminate():
                run.ghost = replace(ghost, left=tuple(sorted((*ghost.left, node))))
                run.retire(node)
            case Create(parent, count):
                self._create(run, parent, count)
                for name in self._newborn(ghost, parent, count):
                    for dead in ghost.dead:
                        run.post(name, PeerLost(dead))
            case Deserted() | Fail():
                pass
            case _:
                super().on_effect(run, node, effect)

    def _newborn(self, ghost: Ghost, parent: Place, count: int) -> list[NodeId]:
        operator = parent.member.operator
        born = ghost.born[self.graph.operators.index(operator)]
        return [NodeId(f"{operator}{born + n}") for n in range(count)]

    def on_undeliverable(
        self, run: Run, sender: NodeId, to: NodeId, message: Hashable, lane: Lane
    ) -> None:
        ghost = ghost_of(run)
        if isinstance(message, Record):
            run.ghost = replace(ghost, took=True)
        if to in ghost.left and sender not in (*ghost.left, *ghost.dead):
            run.post(sender, PeerLost(to))

    def invariant(self, view: View[Instance]) -> None:
        """Nothing: a keeper may die."""

    def quiet(self, view: View[Instance]) -> None:
        operators = self.graph.operators
        if {node[0] for node in view.nodes} != {*operators}:
            return  # a leaver that holds a record waits until somebody creates that stage anew
        self.check_views(view)
        for operator in operators:
            members = [node for node in view.nodes if node[0] == operator]
            keepers = [node for node in members if self._keeps(view, node)]
            assert len(keepers) == 1, f"{members} have the keepers {keepers}"
        ghost = ghost_of(view)
        entered = self.records - ghost.records
        assert ghost.took or ghost.out == tuple(range(entered)), f"out: {ghost.out} of {entered}"

    def _keeps(self, view: View[Instance], node: NodeId) -> bool:
        scaler = view.machine(node).scaler
        assert isinstance(scaler, ScaleMachine)
        return scaler.keeper
