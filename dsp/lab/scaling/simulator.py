"""The discrete-time simulator of paper 000, 3.4.1, around the real machines and deciders.

In each time step the messages of the step before are processed, then the instances whose turn it
is decide. The first message of an operation arrives in the step in which it is sent, as the paper
says; all others in the next one. Records are not simulated one by one: the load of an operator is
shared equally by its active instances, and a leaver's queue is empty when it is asked.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from dsp.core.machine import Received, Send
from dsp.core.randomness import derive_random
from dsp.core.types import NodeId
from dsp.errors import SimulationError
from dsp.lab.scaling.setting import Setting
from dsp.scaling.deciders.base import Decider, Duplicate, Leave, Observation, Report, Retire
from dsp.scaling.events import (
    Drain,
    LeaveRequested,
    Member,
    QueueEmptied,
    ScaleEvent,
    ScaleOutRequested,
    Spawn,
    Spawned,
    Terminate,
)
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.status import Status

__all__ = ["Rule", "OperatorTrace", "Simulation"]

Rule = Callable[[Random, Setting], Decider]
"""Makes the decider of one instance."""


@dataclass(slots=True)
class OperatorTrace:
    """What happened to one operator, time step by time step.

    Attributes:
        load: records.
        running: instances that are started and not gone, leavers included to their end.
        working: those of them that process records; a leaver does until its predecessors are
            silent, which is when an instance of the published protocol is gone.
        messages: sent by its instances.
        created: siblings that were ordered.
        left: instances that began to leave.
    """

    load: list[float] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    working: list[int] = field(default_factory=list)
    messages: list[int] = field(default_factory=list)
    created: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)


class _Instance:
    __slots__ = ("decider", "machine", "operator", "phase")

    def __init__(self, machine: ScaleMachine, operator: int, decider: Decider, phase: int) -> None:
        self.machine = machine
        self.operator = operator
        self.decider = decider
        self.phase = phase


class Simulation:
    """One run.

    Args:
        setting: the parameters.
        rule: makes the deciders.
        loads: of each operator at each time step.
        seed: of phases and deciders.
    """

    def __init__(self, setting: Setting, rule: Rule, loads: list[list[float]], seed: int) -> None:
        self.setting = setting
        self.traces = [OperatorTrace() for _ in range(setting.operators)]
        self._rule = rule
        self._loads = loads
        self._seed = seed
        self._born = 0
        self._instances: dict[NodeId, _Instance] = {}
        self._active = [0] * setting.operators
        self._reports: list[Report | None] = []
        self._outbox: list[tuple[NodeId, Send]] = []
        self._asked: list[NodeId] = []
        names = [f"o{number}" for number in range(setting.operators)]
        members = [
            [Member(name, 0, self._name(number)) for _ in range(setting.instances)]
            for number, name in enumerate(names)
        ]
        for number in range(len(names)):
            upstream = tuple(names[max(0, number - 1) : number])
            downstream = tuple(names[number + 1 : number + 2])
            around = [
                m for n in (number - 1, number + 1) if 0 <= n < len(names) for m in members[n]
            ]
            for rank, member in enumerate(members[number]):
                place = Place(member, upstream, downstream, keeper=rank == 0)
                self._add(ScaleMachine(place, around), number)
        self._names = names

    def run(self) -> list[OperatorTrace]:
        """Simulate every time step."""
        for step in range(self.setting.steps):
            self.step(step)
        return self.traces

    def step(self, step: int) -> None:
        """Simulate one time step."""
        for trace in self.traces:
            trace.messages.append(0)
            trace.created.append(0)
            trace.left.append(0)
        self._deliver()
        self._count()
        for name in [n for n, one in self._instances.items() if self._has_turn(one, step)]:
            if name in self._instances:
                self._decide(name, step)
        for number, trace in enumerate(self.traces):
            trace.load.append(self._loads[number][step])
            trace.running.append(0)
            trace.working.append(0)
        for one in self._instances.values():
            trace = self.traces[one.operator]
            trace.running[-1] += one.machine.status is not Status.IDLE
            trace.working[-1] += one.machine.works

    # -- messages -------------------------------------------------------------------------

    def _deliver(self) -> None:
        asked, self._asked = self._asked, []
        frames, self._outbox = self._outbox, []
        for sender, frame in frames:
            self._handle(frame.to, Received(sender, frame.message), self._outbox)
        for name in asked:
            one = self._instances.get(name)
            if one is not None and one.machine.may_scale and not one.machine.keeper:
                self._begin(name, LeaveRequested())

    def _begin(self, name: NodeId, event: ScaleEvent) -> None:
        """Have an instance begin an operation; what it sends arrives at once."""
        first: list[tuple[NodeId, Send]] = []
        one = self._instances[name]
        trace = self.traces[one.operator]
        if isinstance(event, ScaleOutRequested):
            trace.created[-1] += event.count
        else:
            trace.left[-1] += 1
        self._handle(name, event, first)
        for sender, frame in first:
            self._handle(frame.to, Received(sender, frame.message), self._outbox)

    def _handle(self, name: NodeId, event: ScaleEvent, out: list[tuple[NodeId, Send]]) -> None:
        one = self._instances.get(name)
        if one is None:
            raise SimulationError(f"{event} for {name}, which does not exist")
        machine = one.machine
        trace = self.traces[one.operator]
        events: deque[ScaleEvent] = deque([event])
        while events:
            for effect in machine.handle(events.popleft(), 0.0):
                if isinstance(effect, Send):
                    out.append((name, effect))
                    trace.messages[-1] += 1
                elif isinstance(effect, Spawn):
                    events.append(Spawned(self._spawn(one, effect.count)))
                elif isinstance(effect, Drain):
                    events.append(QueueEmptied())
                elif isinstance(effect, Terminate):
                    del self._instances[name]

    def _spawn(self, parent: _Instance, count: int) -> tuple[NodeId, ...]:
        names = tuple(self._name(parent.operator) for _ in range(count))
        for name in names:
            self._add(ScaleMachine(parent.machine.place.newcomer(name)), parent.operator)
        return names

    def _name(self, operator: int) -> NodeId:
        self._born += 1
        return NodeId(f"o{operator}-{self._born:05}")

    def _add(self, machine: ScaleMachine, operator: int) -> None:
        name = machine.me
        random = derive_random(self._seed, "instance", name)
        phase = 0 if self.setting.aligned else random.randrange(self.setting.period)
        decider = self._rule(random, self.setting)
        self._instances[name] = _Instance(machine, operator, decider, phase)

    # -- decisions ------------------------------------------------------------------------

    def _count(self) -> None:
        """Take what deciders see. Those that decide in one step do not see each other act."""
        self._active = [0] * self.setting.operators
        for one in self._instances.values():
            self._active[one.operator] += one.machine.status is Status.ACTIVE
        self._reports = [self._report(number) for number in range(self.setting.operators)]

    def _has_turn(self, one: _Instance, step: int) -> bool:
        # Nobody decides in the first period, which has nothing to look back on.
        period = self.setting.period
        return step >= period and (step - one.phase) % period == 0 and one.machine.may_scale

    def _decide(self, name: NodeId, step: int) -> None:
        one = self._instances[name]
        machine, number = one.machine, one.operator
        if not machine.may_scale:
            return
        observation = Observation(
            now=float(step),
            me=name,
            load=self._loads[number][step] / self._active[number],
            capacity=self.setting.capacity,
            keeper=machine.keeper,
            report=self._reports[number],
        )
        match one.decider.decide(observation):
            case Duplicate(count):
                self._begin(name, ScaleOutRequested(count))
            case Leave():
                self._begin(name, LeaveRequested())
            case Retire(siblings):
                self._asked += siblings
                self.traces[number].messages[-1] += len(siblings)

    def _report(self, number: int) -> Report | None:
        """What a neighbour of an operator knows of it: a predecessor if there is one."""
        for other in (number - 1, number + 1):
            for one in self._instances.values():
                if one.operator == other and one.machine.works:
                    return Report(one.machine.neighbours.of(self._names[number]))
        return None
