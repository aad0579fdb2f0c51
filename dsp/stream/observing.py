"""What an instance knows about load: its own figures, and what its predecessors tell.

Instances do not know their siblings; whoever sends to them does, and says so several times a
second, with the records that it has for all of them, those included that it must hold back.
"""

from collections.abc import Callable

from dsp._pb.engine_pb2 import EngineDemand, EngineShare
from dsp._pb.scaling_pb2 import ScaleMember
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.scaling.deciders import Observation, Report
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.usable import CpuUse
from dsp.stream.foresight import Foresight
from dsp.stream.home import Home
from dsp.stream.metrics import Demand, Figures, MetricCollector
from dsp.stream.outlet import Outlet

__all__ = ["Observer"]

# An instance that waits for its successors half of the time gains nothing by siblings.
HELD_BACK = 0.5


class Observer:
    """Gathers what a decider sees, and tells successors what theirs will see.

    Args:
        name_keepers: whether successors have to know who the keeper of their operator is.
        by_key: whether records come here by their keys: then how much comes here may be more than
            a share, since keys are not spread evenly.
        foresight: the exchange of estimates.
        behind: tells how many records wait where they come from, if that is known.

    Attributes:
        figures: of the last period; None before the first.
    """

    def __init__(
        self,
        home: Home,
        machine: ScaleMachine,
        metrics: MetricCollector,
        outlet: Outlet,
        *,
        by_key: bool,
        name_keepers: bool = False,
        foresight: Foresight,
        behind: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.figures: Figures | None = None
        self._home = home
        self._machine = machine
        self._metrics = metrics
        self._outlet = outlet
        self._demands: dict[NodeId, EngineDemand] = {}
        self._sent_before: dict[str, int] = {}
        self._sending: dict[str, Demand] = {}
        self._by_key = by_key
        self._name_keepers = name_keepers
        self._foresight = foresight
        self._behind = behind
        self._behind_before: int | None = None
        self._worked_before = 0

    def told(self, sender: NodeId, demand: EngineDemand) -> None:
        """A predecessor tells what it knows."""
        self._demands[sender] = demand
        for member in demand.siblings:
            if member.address:
                self._home.introduce(NodeId(member.id), member.address)

    def heard(self, sender: NodeId, share: EngineShare) -> None:
        """A successor tells how fast it is."""
        self._foresight.heard(sender, share)

    def forget(self, sender: NodeId) -> None:
        """A neighbour is gone."""
        self._demands.pop(sender, None)
        self._foresight.forget(sender)

    @property
    def siblings(self) -> frozenset[NodeId]:
        """The instances of this operator, as predecessors told."""
        before = {
            member.id for member in self._machine.neighbours.side(self._machine.place.upstream)
        }
        return frozenset(
            NodeId(member.id)
            for sender, demand in self._demands.items()
            if sender in before
            for member in demand.siblings
        )

    def observe(self, now: float) -> Observation | None:
        """Give what a decider sees; None if nothing is known yet."""
        figures, machine = self.figures, self._machine
        if figures is None or figures.capacity is None:
            return None
        before = {member.id for member in machine.neighbours.side(machine.place.upstream)}
        report = _joined([each for name, each in self._demands.items() if name in before])
        # What comes to the operator over those that are there by now, newcomers included: it does
        # not depend on how many there are, so nobody acts again on a load that is dealt with.
        share = figures.load
        if report is not None and report.load is not None:
            share = report.load / len(report.siblings)
        return Observation(
            now=now,
            me=machine.me,
            load=max(figures.load, share) if self._by_key else share,
            capacity=figures.capacity,
            keeper=machine.keeper,
            predecessors=len(before),
            successors=len(machine.neighbours.side(machine.place.downstream)),
            held_back=figures.blocked > HELD_BACK,
            report=report,
            cpu=self._home.cpu_use(figures.busy) if self._foresight.wanted else CpuUse(),
        )

    def period(self, now: float, queue: int, span: float) -> None:
        """End a period: new figures here, and news for the neighbours."""
        figures = self.figures = self._metrics.period(now, queue)
        foresight, wanted = self._foresight, self._foresight.wanted
        seen = self.observe(now) if wanted else None
        if seen is not None:
            foresight.watch(seen)
            share = Envelope(engine_share=foresight.share(seen))
            for member in self._machine.neighbours.side(self._machine.place.upstream):
                self._home.post(self._machine.me, member.id, share)
        worked = self._metrics.total_worked
        behind, before = self._behind(), self._behind_before
        self._behind_before = behind
        for operator in self._machine.place.downstream:
            total = self._outlet.sent_records[operator]
            sent = total - self._sent_before.get(operator, 0)
            sending = self._sending.setdefault(operator, Demand())
            if behind is None or before is None:
                sending.add(sent, figures.blocked, span)
            else:  # what came is known, whatever could be sent of it
                sending.add(max(0, sent + behind - before), 0.0, span)
            self._sent_before[operator] = total
            members = self._machine.routes(operator)
            demand = EngineDemand(
                siblings=[ScaleMember(id=n, address=self._home.address(n)) for n in members],
                load=sending.rate,
                keeper=self._keeper_of(operator) if self._name_keepers or wanted else None,
            )
            if wanted:
                foresight.flowed(now, operator, worked - self._worked_before, sent, sending.rate)
                pending = self._outlet.waiting(operator) + (behind or 0)
                foresight.add_to(demand, operator, members, seen, pending)
            for name in members:
                self._home.post(self._machine.me, name, Envelope(engine_demand=demand))
        self._worked_before = worked

    def _keeper_of(self, operator: str) -> ScaleMember | None:
        keeper = self._machine.neighbours.eldest(operator)
        if keeper is None:
            return None
        address = self._home.address(keeper.id)
        return ScaleMember(id=keeper.id, address=address, generation=keeper.generation)


def _joined(demands: list[EngineDemand]) -> Report | None:
    """What predecessors tell, taken together; None if they know nobody."""
    siblings = {NodeId(member.id): None for each in demands for member in each.siblings}
    if not siblings:
        return None
    # Who does not estimate sends what it sends now.
    asked = any(each.HasField("expected") for each in demands)
    expected = [each.expected if each.HasField("expected") else each.load for each in demands]
    latencies = [each.latency for each in demands if each.HasField("latency")]
    usable = [each.usable for each in demands if each.HasField("usable")]
    keepers = [NodeId(each.keeper.id) for each in demands if each.HasField("keeper")]
    return Report(
        siblings=tuple(sorted(siblings)),
        load=sum(each.load for each in demands),
        pending=sum(each.pending for each in demands),
        expected=sum(expected) if asked else None,
        latency=sum(latencies) / len(latencies) if latencies else None,
        usable=min(usable, default=None),
        keeper=keepers[0] if keepers else None,
    )
