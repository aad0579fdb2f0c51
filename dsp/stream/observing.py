"""What an instance knows about load: its own figures, and what its predecessors tell.

Instances do not know their siblings; whoever sends to them does, and says so several times a
second, with the records that it has for all of them, those included that it must hold back.
"""

from typing import TYPE_CHECKING

from dsp._pb.engine_pb2 import EngineDemand
from dsp._pb.scaling_pb2 import ScaleMember
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.scaling.deciders import Observation, Report
from dsp.scaling.machine import ScaleMachine
from dsp.stream.home import Home
from dsp.stream.metrics import Demand, Figures, MetricCollector
from dsp.stream.outlet import Outlet

if TYPE_CHECKING:
    from dsp.config.stream import StreamConfig

__all__ = ["Observer"]

# An instance that waits for its successors half of the time gains nothing by siblings.
HELD_BACK = 0.5


class Observer:
    """Gathers what a decider sees, and tells successors what theirs will see.

    Args:
        by_key: whether records come here by their keys: then how much comes here may be more than
            a share, since keys are not spread evenly.

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

    def told(self, sender: NodeId, demand: EngineDemand) -> None:
        """A predecessor tells what it knows."""
        self._demands[sender] = demand
        for member in demand.siblings:
            if member.address:
                self._home.introduce(NodeId(member.id), member.address)

    def forget(self, sender: NodeId) -> None:
        """A predecessor is gone."""
        self._demands.pop(sender, None)

    def observe(self, now: float) -> Observation | None:
        """Give what a decider sees; None if nothing is known yet."""
        figures, machine = self.figures, self._machine
        if figures is None or figures.capacity is None:
            return None
        siblings: dict[NodeId, None] = {}
        load = 0.0
        before = {member.id for member in machine.neighbours.side(machine.place.upstream)}
        for sender, demand in self._demands.items():
            if sender in before:
                siblings.update((NodeId(member.id), None) for member in demand.siblings)
                load += demand.load
        report = Report(tuple(sorted(siblings)), load) if siblings else None
        # What comes to the operator over those that are there by now, newcomers included: it does
        # not depend on how many there are, so nobody acts again on a load that is dealt with.
        share = load / len(siblings) if siblings else figures.load
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
        )

    def period(self, now: float, queue: int, span: float) -> None:
        """End a period: new figures here, and news for the successors."""
        figures = self.figures = self._metrics.period(now, queue)
        for operator in self._machine.place.downstream:
            sent = self._outlet.sent_records[operator]
            sending = self._sending.setdefault(operator, Demand())
            sending.add(sent - self._sent_before.get(operator, 0), figures.blocked, span)
            self._sent_before[operator] = sent
            members = self._machine.routes(operator)
            demand = EngineDemand(
                siblings=[ScaleMember(id=n, address=self._home.address(n)) for n in members],
                load=sending.rate,
            )
            for name in members:
                self._home.post(self._machine.me, name, Envelope(engine_demand=demand))


def room_for(
    config: "StreamConfig",
    capacity: float | None,
    senders: int,
    unknown: tuple[int, int],
    most: int = 0,
) -> tuple[int, int]:
    """Records that each sender may have under way to an instance, and in one batch.

    Args:
        config: bounds.
        capacity: records per second of the instance; None if it is not known.
        senders: how many share the room.
        unknown: the answer then.
        most: records of a call, for a body that takes many; room is kept for the next call too.
    """
    if capacity is None:
        return unknown
    batch = max(1, min(config.batch_records, int(capacity * config.batch_time)))
    bound = max(config.window_records, 2 * most // senders)
    window = min(bound, int(capacity * config.window_time) // senders)
    return max(batch + 1, window), batch
