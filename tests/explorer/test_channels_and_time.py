"""Loss, doubling, overtaking, full channels, time-outs."""

from collections.abc import Hashable, Mapping

import pytest

from dsp.core.types import Lane, NodeId
from dsp.errors import ConfigError
from dsp.testing.explorer import (
    ActionKind,
    Kind,
    LaneRules,
    Run,
    explore,
    find_starvation,
    rebase_floats,
)
from tests.explorer.links import RESEND, SOURCE, LinkModel, Sink, Source


def test_alternating_bit_survives_loss_and_doubling() -> None:
    result = explore(LinkModel(LaneRules(losses=2, duplicates=2), ticks=5, items=3))
    result.assert_holds()
    assert result.quiet > 0
    assert result.cut > 0


def test_naive_receiver_fails_when_a_frame_is_doubled() -> None:
    result = explore(LinkModel(LaneRules(duplicates=1), naive=True, ticks=0))
    assert result.violation is not None
    assert result.violation.message.startswith("handed up (0, 0)")
    kinds = [step.action.kind for step in result.violation.trace]
    assert kinds == [ActionKind.SCRIPT, ActionKind.DUPLICATE, ActionKind.DELIVER]


def test_naive_receiver_fails_after_a_resend() -> None:
    result = explore(LinkModel(LaneRules(), naive=True, ticks=1))
    assert result.violation is not None
    assert ActionKind.TICK in [step.action.kind for step in result.violation.trace]


def test_alternating_bit_fails_when_frames_overtake() -> None:
    for rules in (LaneRules(overtakings=1), LaneRules(duplicates=1, overtakings=1)):
        result = explore(LinkModel(rules, ticks=1, items=3))
        assert result.violation is not None
        assert "out of order" in str(result.violation)


def test_without_time_outs_a_loss_is_final() -> None:
    result = explore(LinkModel(LaneRules(losses=1), ticks=0))
    # The time-out beyond the budget keeps these states from being called quiet.
    result.assert_holds()
    assert result.cut > 0

    class Deaf(LinkModel):
        def machines(self) -> Mapping[NodeId, Source | Sink]:
            class Patient(Source):
                def next_deadline(self) -> float | None:
                    return None

            return {**super().machines(), SOURCE: Patient()}

    lost = explore(Deaf(LaneRules(losses=1), ticks=0))
    assert lost.violation is not None
    assert lost.violation.kind is Kind.QUIET
    assert lost.violation.message.startswith("in the end there is only ()")
    assert len(lost.violation.trace) == 3
    assert ActionKind.LOSE in [step.action.kind for step in lost.violation.trace]


def test_rebased_time_and_bounded_channels_make_endless_time_outs_finite() -> None:
    rules = LaneRules(losses=None, duplicates=None, capacity=2)
    result = explore(LinkModel(rules, items=3, rebased=True))
    result.assert_holds()
    assert result.cut == 0
    assert result.quiet > 0
    absolute = explore(LinkModel(rules, items=3), max_states=5_000)
    assert not absolute.complete


def test_loss_for_ever_starves_and_fairness_of_channels_forbids_it() -> None:
    rules = LaneRules(losses=None, capacity=1)
    waits = {"user": lambda view: view.machine(SOURCE).queue != ()}
    unlucky = find_starvation(LinkModel(rules, rebased=True, items=1), waits)
    # A frame that is lost each time leaves its channel empty, so its arrival is never overdue.
    assert unlucky.violation is not None
    assert unlucky.violation.kind is Kind.STARVATION
    assert ActionKind.LOSE in [step.action.kind for step in unlucky.violation.cycle]
    reliable = find_starvation(LinkModel(LaneRules(capacity=1), rebased=True, items=1), waits)
    reliable.assert_holds()


def test_full_channels_hold_steps_up() -> None:
    free = explore(LinkModel(LaneRules(), items=2, ticks=3))
    roomy = explore(LinkModel(LaneRules(capacity=4), items=2, ticks=3))
    assert (free.states, free.transitions) == (roomy.states, roomy.transitions)
    tight = explore(LinkModel(LaneRules(capacity=1), items=2, ticks=3))
    assert tight.violation is not None
    assert tight.violation.kind is Kind.DEADLOCK
    # A resend fills one direction while an acknowledgement fills the other.
    assert tight.violation.message == "every step waits for room in a full channel"
    assert len(tight.violation.trace) == 4


def test_time_out_comes_at_its_deadline() -> None:
    result = explore(LinkModel(LaneRules(losses=1), ticks=2, items=1))
    result.assert_holds()
    source = Source()
    source.restore((0, (1,), 2 * RESEND))
    assert rebase_floats(source.state(), RESEND) == (0, (1,), RESEND)
    assert rebase_floats((-50.0, 3, frozenset({1.0})), 60.0, oldest=-100.0) == (
        -100.0,
        3,
        frozenset({-59.0}),
    )


def test_lanes_are_independent() -> None:
    model = LinkModel(LaneRules(), ticks=0)
    model.lanes = {Lane.CONTROL: LaneRules(losses=5, duplicates=5, overtakings=5)}
    reliable = explore(model)
    assert reliable.states == explore(LinkModel(LaneRules(), ticks=0)).states


def test_states_without_a_content_are_refused() -> None:
    class Opaque(LinkModel):
        def ghost(self) -> Hashable:
            return ()

        def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
            run.ghost = object()

    with pytest.raises(ConfigError, match="cannot tell states apart"):
        explore(Opaque(LaneRules(), ticks=0))
