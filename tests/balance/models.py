"""OSG for the explorer: schedulers and instances, records on the DATA lane, all else on CONTROL."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from dsp.balance.events import Assign, Departing, Executed, Offered, Request
from dsp.balance.machine_osg import OsgScheduler, SchedulerState
from dsp.balance.machine_osg_meter import OsgMeter
from dsp.balance.settings import BalanceSettings
from dsp.core.machine import Received, Reject, Send
from dsp.core.types import Lane, NodeId
from dsp.testing.explorer import Absent, Model, Run, Script, Stimulus, View, tell

__all__ = ["A", "B", "C", "Choosing", "Doing", "OSG", "S", "SETTINGS", "T"]

S, T = NodeId("s"), NodeId("t")
A, B, C = map(NodeId, "abc")
# As small as can be: a look after every record, and any ratio is as stable as another.
SETTINGS = BalanceSettings(rows=1, columns=1, window=1, tolerance=100.0)
# What the one key there is costs: estimates are exact as soon as there are any. Newcomers are
# estimated by the others, which is exact where it costs everywhere the same.
DIFFERENT = {A: 1.0, B: 2.0, C: 4.0}
EQUAL = dict.fromkeys(DIFFERENT, 2.0)


@dataclass(frozen=True, slots=True)
class Record:
    """A record on its way, and what comes along."""

    request: Request | None


class Choosing:
    """A scheduler and its data plane: every record departs at once."""

    def __init__(self, scheduler: OsgScheduler) -> None:
        self.scheduler = scheduler

    def handle(self, event: object, now: float) -> Sequence[object]:
        if event != "record":
            return self.scheduler.handle(event, now)  # type: ignore[arg-type]
        (given,) = cast("Sequence[Assign]", self.scheduler.handle(Offered((b"k",)), now))
        if not given.targets:
            return []
        (target,) = given.targets
        along = self.scheduler.handle(Departing(target), now)
        request = along[0].request if along else None  # type: ignore[union-attr]
        return [Send(target, Record(request), Lane.DATA)]

    def next_deadline(self) -> float | None:
        return self.scheduler.next_deadline()

    def check_invariants(self) -> None:
        self.scheduler.check_invariants()

    def state(self) -> Hashable:
        return self.scheduler.state()

    def restore(self, state: Hashable) -> None:
        self.scheduler.restore(state)

    def describe(self) -> Mapping[str, object]:
        return self.scheduler.describe()


class Doing:
    """An instance: executes what comes, and lets its meter tell."""

    def __init__(self, cost: float) -> None:
        self._cost = cost
        self.meter = OsgMeter(SETTINGS)
        self.taken: dict[NodeId, float] = {}

    def handle(self, event: object, now: float) -> Sequence[object]:
        if isinstance(event, Received) and isinstance(event.message, Record):
            cost, sender = self._cost, event.sender
            self.taken[sender] = self.taken.get(sender, 0.0) + cost
            executed = Executed(sender, (b"k",), (cost,), event.message.request)
            return self.meter.handle(executed, now)
        return self.meter.handle(event, now)  # type: ignore[arg-type]

    def next_deadline(self) -> float | None:
        return self.meter.next_deadline()

    def check_invariants(self) -> None:
        self.meter.check_invariants()

    def state(self) -> Hashable:
        return self.meter.state(), tuple(self.taken.items())

    def restore(self, state: Hashable) -> None:
        meter, taken = cast("tuple[Hashable, tuple[tuple[NodeId, float], ...]]", state)
        self.meter.restore(meter)
        self.taken = dict(taken)

    def describe(self) -> Mapping[str, object]:
        return self.meter.describe()


class OSG(Model["Choosing | Doing"]):
    """Schedulers that send records, and instances that come and go.

    Args:
        records: how many each scheduler sends.
        schedulers: who they are.
        instances: those that all schedulers know from the start.
        comings: what else happens to schedulers, each at any moment.
        make: makes a scheduler.
        equal: whether records cost everywhere the same.
    """

    absent = Absent.VIOLATION

    def __init__(
        self,
        records: int,
        *,
        schedulers: tuple[NodeId, ...] = (S,),
        instances: tuple[NodeId, ...] = (A, B),
        comings: Sequence[Stimulus] = (),
        make: type[OsgScheduler] = OsgScheduler,
        equal: bool = False,
    ) -> None:
        self._records = records
        self._schedulers = schedulers
        self._instances = instances
        self._comings = comings
        self._make = make
        self._costs = EQUAL if equal else DIFFERENT

    def machines(self) -> Mapping[NodeId, "Choosing | Doing"]:
        made: dict[NodeId, Choosing | Doing] = {
            name: Choosing(self._make(SETTINGS, self._instances)) for name in self._schedulers
        }
        return made | {name: Doing(cost) for name, cost in self._costs.items()}

    def scripts(self) -> Sequence[Script]:
        sending = [
            Script(f"records of {name}", (tell(name, "record"),) * self._records)
            for name in self._schedulers
        ]
        return [*sending, *(Script(each.label, (each,)) for each in self._comings)]

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        if isinstance(effect, Reject):
            run.violate(f"{node} rejects what {effect.sender} says: {effect.reason}")

    def quiet(self, view: View["Choosing | Doing"]) -> None:
        """All is executed and heard: nobody waits, and whoever estimates is right."""
        for name in self._schedulers:
            scheduler = cast("Choosing", view.machine(name)).scheduler
            assert scheduler.status is not SchedulerState.WAIT_ALL, "a reply will never come"
            if scheduler.status is not SchedulerState.RUN:
                continue
            for instance, way in scheduler._ways.items():
                taken = cast("Doing", view.machine(instance)).taken.get(name, 0.0)
                given = way.load - way.base
                assert given == taken, f"{name} takes {taken} s at {instance} for {given} s"
