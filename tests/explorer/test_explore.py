"""Faults are found, at the end of a shortest trace, and nothing is found where nothing is wrong."""

import os
import subprocess
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from dsp.core.machine import Received, Send
from dsp.core.types import NodeId
from dsp.errors import ConfigError, InvariantError
from dsp.testing.explorer import (
    Kind,
    LaneRules,
    Model,
    Progress,
    Script,
    Stimulus,
    View,
    explore,
    explore_many,
    explore_orders,
    replay,
    tell,
)
from tests.explorer.links import LinkModel
from tests.explorer.locks import Enter, Exit, Lock, LockModel, names
from tests.explorer.naive import count

A, B = names(2)


def test_broken_lock_is_caught_by_a_shortest_trace() -> None:
    result = explore(LockModel(names(2), tie_break=False))
    assert result.violation is not None
    assert result.violation.kind is Kind.INVARIANT
    assert result.violation.message == "a and b are inside"
    # Each is told to enter, takes the other's request, takes the other's answer.
    assert len(result.violation.trace) == 6
    assert not result.complete
    with pytest.raises(InvariantError, match=r"6\. a receives Done\(\) from b on CONTROL"):
        result.assert_holds()


@pytest.mark.parametrize("count_", [2, 3])
def test_lock_holds_in_every_order_of_names(count_: int) -> None:
    results = explore_orders(LockModel, names(count_), workers=2)
    assert len(results) == {2: 2, 3: 6}[count_]
    for order, result in results.items():
        result.assert_holds()
        assert result.quiet > 0, order


@pytest.mark.parametrize(
    "model",
    [
        LockModel(names(2), entries=3),
        LockModel(names(3)),
        LinkModel(LaneRules(losses=2, duplicates=1), ticks=4),
        LinkModel(LaneRules(losses=1, duplicates=1), ticks=3, items=3, rebased=True),
        LinkModel(LaneRules(losses=1), ticks=2, items=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_same_counts_as_an_explorer_without_tricks(model: LockModel | LinkModel) -> None:
    result = explore(model)
    result.assert_holds()
    assert (result.states, result.transitions, result.quiet + result.cut) == count(model)


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LockModel(names(3), entries=1),
        LockModel(names(3), tie_break=False),
        LinkModel(LaneRules(losses=2, duplicates=1), ticks=3),
        LinkModel(LaneRules(duplicates=1), naive=True, ticks=0),
    ],
    ids=["lock", "broken lock", "link", "naive link"],
)
def test_same_result_for_any_number_of_workers(model: LockModel | LinkModel, workers: int) -> None:
    alone, together = explore(model), explore(model, workers=workers)
    for name in ("states", "transitions", "depth", "quiet", "cut", "complete"):
        assert getattr(alone, name) == getattr(together, name), name
    if alone.violation is None:
        assert together.violation is None
    else:
        assert together.violation is not None
        assert alone.violation.kind is together.violation.kind
        assert alone.violation.message == together.violation.message
        assert len(alone.violation.trace) == len(together.violation.trace)
        replay(model, together.violation.trace)


def test_explore_many_keeps_the_order() -> None:
    models = [LockModel(names(n), tie_break=t) for n in (1, 2) for t in (True, False)]
    alone = explore_many(models, workers=1)
    together = explore_many(models, workers=2)
    assert [r.states for r in alone] == [r.states for r in together]
    assert [r.holds for r in alone] == [True, True, True, False]


_SCRIPT = """
from tests.explorer.locks import LockModel, names
from tests.explorer.links import LinkModel
from dsp.testing.explorer import LaneRules, explore, random_walks
for result in (
    explore(LockModel(names(3), tie_break=False)),
    explore(LinkModel(LaneRules(losses=1, duplicates=1, overtakings=1), ticks=2, items=3)),
    random_walks(LockModel(names(4), tie_break=False), seed=1, walks=50),
):
    print(result.states, result.transitions, result.quiet, result.seed, result.violation)
"""


def test_same_trace_under_every_hash_seed() -> None:
    outputs = []
    for seed in ("0", "1", "4711"):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert "are inside" in outputs[0]
    assert outputs[0] == outputs[1] == outputs[2]


def test_machine_that_raises_is_a_violation() -> None:
    class Hasty(LockModel):
        def exit(self, node: NodeId) -> Stimulus:
            return tell(node, Exit())

    result = explore(Hasty(names(2)))
    assert result.violation is not None
    assert result.violation.kind is Kind.EXCEPTION
    assert "LocalProtocolError: exit while asking" in result.violation.message
    assert [step.what for step in result.violation.trace] == [
        "a is told Enter()",
        "a is told Exit()",
    ]
    assert len(replay(Hasty(names(2)), result.violation.trace)) == 3


def test_own_invariant_of_a_machine_is_checked() -> None:
    class Forgetful(Lock):
        def check_invariants(self) -> None:
            assert self.clock < 2, "late"

    class Late(LockModel):
        def machines(self) -> Mapping[NodeId, Lock]:
            return {node: Forgetful(node, []) for node in self.nodes}

    result = explore(Late(names(1), entries=2))
    assert result.violation is not None
    assert (result.violation.kind, result.violation.message) == (Kind.INVARIANT, "a: late")
    assert len(result.violation.trace) == 3


@dataclass(frozen=True, slots=True)
class Take:
    """Take one lock, then the other."""


@dataclass(frozen=True, slots=True)
class Want:
    """May I have yours?"""


class Greedy:
    """Holds its own lock while it waits for the other's: two of them deadlock."""

    def __init__(self, other: NodeId) -> None:
        self.other = other
        self.status = "free"

    def handle(self, event: Take | Received, now: float) -> Sequence[Send]:
        if isinstance(event, Take):
            self.status = "holding"
            return [Send(self.other, Want())]
        if isinstance(event.message, Want):
            return [Send(self.other, Take())] if self.status == "free" else []
        self.status = "free"
        return []

    def next_deadline(self) -> float | None:
        return None

    def check_invariants(self) -> None:
        pass

    def state(self) -> Hashable:
        return self.status

    def restore(self, state: Hashable) -> None:
        self.status = str(state)

    def describe(self) -> Mapping[str, object]:
        return {}


class GreedyModel(Model[Greedy]):
    def machines(self) -> Mapping[NodeId, Greedy]:
        return {A: Greedy(B), B: Greedy(A)}

    def scripts(self) -> Sequence[Script]:
        return [Script(node, (tell(node, Take()),)) for node in (A, B)]

    def finished(self, view: View[Greedy]) -> bool:
        return all(view.machine(node).status == "free" for node in view.nodes)


def test_deadlock_is_caught_by_what_is_not_finished() -> None:
    result = explore(GreedyModel())
    assert result.violation is not None
    assert result.violation.kind is Kind.DEADLOCK
    assert len(result.violation.trace) == 4
    assert "not finished" in str(result)


def test_deadlock_is_caught_by_a_script_that_cannot_go_on() -> None:
    class Stuck(LockModel):
        def exit(self, node: NodeId) -> Stimulus:
            return tell(node, Exit(), when=lambda view: False)

    result = explore(Stuck(names(1)))
    assert result.violation is not None
    assert result.violation.kind is Kind.DEADLOCK
    assert result.violation.message == "script 'a' can never take its step 2: a is told Exit()"


def test_bounds_stop_an_exploration() -> None:
    seen: list[Progress] = []
    bounded = explore(LockModel(names(3)), max_states=100, progress=seen.append)
    assert not bounded.complete
    assert 100 <= bounded.states < 2101
    assert [level.depth for level in seen] == list(range(1, bounded.depth + 1))
    assert seen[-1].states == bounded.states
    shallow = explore(LockModel(names(3)), max_depth=3)
    assert (shallow.depth, shallow.complete) == (3, False)
    with pytest.raises(InvariantError, match="not completed"):
        shallow.assert_holds()
    shallow.assert_holds(complete=False)
    with pytest.raises(ConfigError, match="workers"):
        explore(LockModel(names(2)), workers=0)


def test_without_traces_the_fault_is_still_found() -> None:
    result = explore(LockModel(names(2), tie_break=False), keep_traces=False)
    assert result.violation is not None
    assert result.violation.trace == ()
    assert "no trace was kept" in result.violation.message


def test_replay_gives_every_state_on_the_way() -> None:
    model = LockModel(names(2), tie_break=False)
    violation = explore(model).violation
    assert violation is not None
    states = replay(model, violation.trace)
    assert len(states) == 7
    assert states[0].channels == {}
    assert states[0].scripts == {"a": 0, "b": 0}
    assert all(state[2] == "inside" for state in states[-1].states.values())  # type: ignore[index]
    with pytest.raises(ConfigError, match="step 1 of the trace is not possible"):
        replay(model, violation.trace[3:])
    assert Enter() == violation.trace[0].reactions[0].event
