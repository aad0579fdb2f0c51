"""Every interleaving of two ends of a session over a log, for short scripts."""

from typing import Any

import pytest

from dsp.core.machine import Received
from dsp.core.session.durable import DurableMachine
from dsp.core.session.segments import Segment, SegmentKind
from dsp.core.types import Lane
from dsp.testing.explorer import (
    Action,
    ActionKind,
    LaneRules,
    Result,
    View,
    explore,
    find_starvation,
)
from tests.session.logged import A, B, LoggedModel, Process

C, D = Lane.CONTROL, Lane.DATA


def holds(result: Result) -> None:
    print(result)
    result.assert_holds()
    assert result.states > 100, "too small to mean anything"


@pytest.mark.parametrize(
    "options",
    [
        {"a": [D, D], "b": [C], "ticks": 2},
        {"a": [D, D], "again": [B], "ticks": 0},
        {"a": [D, D], "again": [A], "ticks": 1},
        {"a": [D, C], "again": [A], "ticks": 1},
        {"a": [D], "again": [A, B], "ticks": 0},
        {"a": [D, D], "repeats": [D, D], "ticks": 0},
        {"a": [D, D], "repeats": [D], "again": [B], "ticks": 0},
        {"a": [D, D], "repeats": [D], "again": [A], "ticks": 0},
        {"a": [D, D], "close": [B], "again": [B], "ticks": 0},
        {"a": [D, C], "close": [A], "again": [A], "ticks": 1},
        {"a": [D], "b": [D], "close": [A, B], "ticks": 2},
    ],
    ids=[
        "both-send",
        "receiver-restarts",
        "sender-restarts",
        "sender-restarts-two-lanes",
        "both-restart",
        "producer-breaks-twice",
        "producer-breaks-and-receiver-restarts",
        "producer-breaks-and-sender-restarts",
        "receiver-closes-and-restarts",
        "sender-closes-and-restarts",
        "both-close",
    ],
)
def test_what_is_logged_arrives_in_order_and_once_for_each_incarnation(
    options: dict[str, Any],
) -> None:
    holds(explore(LoggedModel(**options)))


class Timeless(LoggedModel):
    """Time may stand still for ever, so that a run which needs none of it is seen."""

    def fairness(self, action: Action) -> Any:  # noqa: ANN401
        return None if action.kind is ActionKind.TICK else super().fairness(action)


def in_flight(view: View[Process]) -> bool:
    return bool(view.in_flight())


@pytest.mark.parametrize(
    "options",
    [{"a": [D], "b": [D], "ticks": 2}, {"a": [D], "b": [C], "again": [A], "ticks": 1}],
    ids=["both-send", "restart"],
)
def test_messages_come_to_an_end_without_time(options: dict[str, Any]) -> None:
    holds(find_starvation(Timeless(**options), {"the log": in_flight}))


@pytest.mark.verify
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "options",
    [
        {"a": [D, D], "b": [D], "again": [A, B], "ticks": 1},
        {"a": [D, C, D], "again": [A, A], "ticks": 1},
        {"a": [D, D, D], "repeats": [D], "again": [B, B], "ticks": 0},
        {"a": [D, D], "b": [C], "close": [A, B], "again": [A, B], "ticks": 0},
    ],
    ids=["both-restart", "sender-restarts-twice", "receiver-restarts-twice", "closing"],
)
def test_more_of_it(options: dict[str, Any]) -> None:
    holds(explore(LoggedModel(**options), max_states=20_000_000))


# -- the test of the test ---------------------------------------------------------------------


class Forgetful(DurableMachine):
    """Believes that everything is new."""

    def _on_segment(self, segment: Segment, lane: Lane, *rest: Any) -> None:  # noqa: ANN401
        epoch, _ = self.heard[lane]
        self.heard[lane] = (epoch, 0)
        super()._on_segment(segment, lane, *rest)


class OneLog(DurableMachine):
    """Thinks that what a newer incarnation says on one lane is the end of the other too."""

    def _on_segment(self, segment: Segment, lane: Lane, *rest: Any) -> None:  # noqa: ANN401
        super()._on_segment(segment, lane, *rest)
        for other in Lane:
            if self.heard[other][0] < segment.epoch:
                self.heard[other] = (segment.epoch, 0)


class Continuing(DurableMachine):
    """Takes the numbers of a newer incarnation for those of the older one."""

    def _on_segment(self, segment: Segment, lane: Lane, *rest: Any) -> None:  # noqa: ANN401
        epoch, received = self.heard[lane]
        if received and segment.epoch > epoch:
            self.heard[lane] = (segment.epoch, received)
        super()._on_segment(segment, lane, *rest)


class Deaf(DurableMachine):
    """Hears nobody who was suspected before."""

    def handle(self, event: Any, now: float) -> Any:  # noqa: ANN401
        silent = self.suspected and any(epoch for epoch, _ in self.heard.values())
        return [] if silent and isinstance(event, Received) else super().handle(event, now)


class Polite(DurableMachine):
    """Answers every word by a word."""

    def _hear(self, kind: SegmentKind, *rest: Any) -> None:  # noqa: ANN401
        super()._hear(kind, *rest)
        self._say(SegmentKind.STATUS, *rest)


@pytest.mark.parametrize(
    ("machine", "options", "message"),
    [
        (Forgetful, {"a": [D, D], "repeats": [D], "ticks": 0}, "b got b'a0' of"),
        (OneLog, {"a": [D, C], "again": [A], "ticks": 0}, "b rejects a correct peer"),
        (Continuing, {"a": [D, D], "again": [A], "ticks": 0}, "lost: Stream"),
        (Deaf, {"a": [D, D], "ticks": 2}, "lost: Stream"),
    ],
)
def test_a_wrong_machine_is_found_out(
    machine: type[DurableMachine], options: dict[str, Any], message: str
) -> None:
    result = explore(LoggedModel(**options, machine=machine))
    assert result.violation is not None
    assert message in result.violation.message, result


def test_a_storm_is_found_out() -> None:
    model = Timeless([D], ticks=0, machine=Polite)
    model.lanes = dict.fromkeys(Lane, LaneRules(capacity=2))
    result = find_starvation(model, {"the log": in_flight})
    assert result.violation is not None
