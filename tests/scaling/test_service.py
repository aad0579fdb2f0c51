"""The trigger: when it asks, what becomes of decisions. In virtual time."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from dsp.config import ScalingConfig
from dsp.core.machine import Received
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.scaling.deciders import (
    STAY,
    Decision,
    Duplicate,
    Leave,
    Observation,
    Retire,
    configured_decider,
)
from dsp.scaling.events import (
    DuplicationAck,
    LeaveRequested,
    Member,
    ScaleOutRequested,
    Spawned,
)
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.service import ScaleRequest, ScaleTrigger
from dsp.testing import World

ME = NodeId("b1")
NEAR = [Member("a", 0, NodeId("a0")), Member("c", 0, NodeId("c0"))]


class Scripted:
    """Says what it was told to say, then stays."""

    def __init__(self, *decisions: Decision) -> None:
        self.decisions = list(decisions)
        self.times: list[float] = []

    def decide(self, observation: Observation) -> Decision:
        self.times.append(observation.now)
        return self.decisions.pop(0) if self.decisions else STAY


class Bench:
    """A real machine with a trigger, and what they ask for."""

    def __init__(
        self, decisions: Sequence[Decision] = (), *, keeper: bool = False, seed: int = 1
    ) -> None:
        place = Place(Member("b", 0, ME), ("a",), ("c",), keeper)
        self.machine = ScaleMachine(place, NEAR)
        self.decider = Scripted(*decisions)
        self.requests: list[ScaleRequest] = []
        self.retired: list[NodeId] = []
        self.ready = True
        self.trigger = ScaleTrigger(
            self.machine,
            self.decider,
            period=5.0,
            random=Random(seed),
            observe=self.observe,
            begin=self.begin,
            retire=self.retired.append,
        )

    def observe(self, now: float) -> Observation | None:
        return Observation(now, ME, 700.0, 1000.0) if self.ready else None

    def begin(self, request: ScaleRequest) -> None:
        self.requests.append(request)
        self.machine.handle(request, 0.0)

    def live(self, seconds: float) -> None:
        async def life() -> None:
            task = asyncio.create_task(self.trigger.run())
            await asyncio.sleep(seconds)
            task.cancel()

        with World(1) as world:
            world.run(life())


def test_it_asks_once_in_every_period_at_a_phase_of_its_own() -> None:
    first, second = Bench(seed=1), Bench(seed=2)
    first.live(52.0)
    second.live(52.0)
    for bench in (first, second):
        times = bench.decider.times
        assert len(times) == bench.trigger.counts.asked == len(range(round(times[0]), 52, 5))
        assert 0 <= times[0] < 5
        gaps = [later - sooner for sooner, later in pairwise(times)]
        assert gaps == pytest.approx([5.0] * len(gaps))
    assert first.decider.times[0] != second.decider.times[0]
    again = Bench(seed=1)
    again.live(52.0)
    assert again.decider.times == first.decider.times


def test_decisions_become_requests() -> None:
    siblings = (NodeId("b2"), NodeId("b3"))
    bench = Bench([Retire(siblings), Duplicate(2)])
    bench.live(11.0)
    assert bench.retired == [*siblings]
    assert bench.requests == [ScaleOutRequested(2)]
    counts = bench.trigger.counts
    assert (counts.retired, counts.created, counts.left) == (2, 2, 0)
    leaver = Bench([Leave()])
    leaver.live(6.0)
    assert leaver.requests == [LeaveRequested()]
    assert leaver.trigger.counts.left == 1


def test_nothing_is_asked_while_an_operation_is_under_way() -> None:
    bench = Bench([Duplicate(1), Duplicate(1)])
    bench.live(52.0)
    assert bench.requests == [ScaleOutRequested(1)]
    assert bench.trigger.counts.asked == 1
    assert bench.trigger.counts.skipped >= 9
    bench.machine.handle(Spawned((NodeId("b2"),)), 0.0)
    for one in NEAR:
        bench.machine.handle(Received(one.id, DuplicationAck(True)), 0.0)
    bench.live(6.0)
    assert bench.requests == [ScaleOutRequested(1)] * 2


def test_nothing_is_asked_without_figures() -> None:
    bench = Bench([Leave()])
    bench.ready = False
    bench.live(12.0)
    assert bench.requests == []
    assert (bench.trigger.counts.asked, bench.trigger.counts.skipped >= 2) == (0, True)


def test_turns_that_were_missed_are_not_caught_up() -> None:
    class Slow(Scripted):
        def decide(self, observation: Observation) -> Decision:
            if not self.times:
                # A loop that was blocked for three periods and a half: its clock moved on.
                loop = asyncio.get_running_loop()
                before = loop.time
                loop.time = lambda: before() + 17.5  # type: ignore[method-assign]
            return super().decide(observation)

    bench = Bench()
    bench.trigger._decider = bench.decider = Slow()
    bench.live(30.0)
    first, *rest = bench.decider.times
    assert [time - first for time in rest][:2] == pytest.approx([20.0, 25.0])


def test_who_is_asked_to_leave_does_if_it_may() -> None:
    bench = Bench()
    assert bench.trigger.leave_when_asked()
    assert not bench.trigger.leave_when_asked()
    assert bench.requests == [LeaveRequested()]
    keeper = Bench(keeper=True)
    assert not keeper.trigger.leave_when_asked()
    assert keeper.requests == []
    assert (bench.trigger.counts.left, bench.trigger.counts.refused) == (1, 1)
    assert keeper.trigger.counts.refused == 1


def test_a_fault_of_the_decider_ends_the_trigger() -> None:
    class Broken(Scripted):
        def decide(self, observation: Observation) -> Decision:
            raise ZeroDivisionError

    bench = Bench()
    bench.trigger._decider = Broken()
    with World(1) as world, pytest.raises(ZeroDivisionError):
        world.run(bench.trigger.run())


def test_a_period_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="period is 0"):
        ScaleTrigger(
            Bench().machine,
            Scripted(),
            period=0.0,
            random=Random(1),
            observe=lambda now: None,
            begin=lambda request: None,
            retire=lambda sibling: None,
        )


def test_a_configured_decider_acts_through_it() -> None:
    rules = ScalingConfig(decider="probabilistic", maximum=4).of("b")
    bench = Bench()
    bench.trigger._decider = configured_decider(rules, Random(1))
    bench.trigger._observe = lambda now: Observation(now, ME, 2100.0, 1000.0)
    bench.trigger.turn(0.0)
    assert bench.requests == [ScaleOutRequested(2)]
