"""Every interleaving of two ends of a session, for short scripts."""

from dataclasses import replace
from typing import Any

import pytest

from dsp.core.machine import Received
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
from tests.session.model import IMPATIENT, PATIENT, A, B, SessionModel
from tests.session.recovery import RecoveringModel
from tests.session.watched import Watched
from tests.session.zombie import ZombieModel

C, D = Lane.CONTROL, Lane.DATA
LOSSY = LaneRules(losses=1)
BAD = LaneRules(losses=1, duplicates=1, overtakings=1)
HASTY = replace(IMPATIENT, heartbeat_every=9.0, suspect_after=3.0, dead_after=3.0, resend_after=9.0)
"""The peer is given up at the first time-out."""
LAZY = replace(PATIENT, acknowledge_every=2, window_items=3)
"""Acknowledgements wait for company."""


def holds(result: Result) -> None:
    print(result)
    result.assert_holds()
    assert result.states > 100, "too small to mean anything"


@pytest.mark.parametrize(
    "options",
    [
        {"a": [D], "rules": BAD, "ticks": 1},
        {"a": [D], "b": [C], "rules": LOSSY, "ticks": 1},
        {"a": [D, D, D], "opened": True, "rules": LOSSY, "ticks": 2},
        {"a": [D, D, D], "opened": True, "rules": LOSSY, "ticks": 1, "slow": True},
        {"a": [D, C], "opened": True, "rules": BAD, "ticks": 1},
        {"a": [D, D], "opened": True, "rules": LOSSY, "ticks": 2, "limits": LAZY},
        {"a": [D, D], "opened": True, "rules": LOSSY, "ticks": 1, "again": [B]},
        {"a": [D, D], "opened": True, "rules": LOSSY, "ticks": 1, "again": [A]},
        {"a": [D], "b": [D], "opened": True, "ticks": 1, "again": [A, B]},
        {"a": [D, D], "opened": True, "rules": LOSSY, "ticks": 0, "cuts": 1},
        {"a": [D], "opened": True, "rules": LOSSY, "ticks": 4, "limits": IMPATIENT},
        {"a": [D], "opened": True, "rules": LOSSY, "ticks": 3, "limits": HASTY},
    ],
    ids=[
        "greeting",
        "greeting-both",
        "three",
        "slow-reader",
        "two-lanes",
        "late-acknowledgements",
        "receiver-restarts",
        "sender-restarts",
        "both-restart",
        "link-cut",
        "impatient",
        "hasty",
    ],
)
def test_everything_arrives_once_in_order_and_after_any_bad_luck(options: dict[str, Any]) -> None:
    holds(explore(RecoveringModel(**options)))


@pytest.mark.parametrize(
    "options",
    [
        {"a": [D], "close": [A], "rules": LOSSY, "ticks": 2},
        {"a": [D], "close": [B], "rules": LOSSY, "ticks": 2},
        {"a": [D, D], "close": [B], "opened": True, "rules": BAD, "ticks": 1},
        {"a": [D], "b": [D], "close": [A, B], "opened": True, "rules": LOSSY, "ticks": 1},
        {"a": [D, C], "close": [A], "opened": True, "rules": LOSSY, "ticks": 2},
        {"a": [D], "close": [B], "again": [B], "opened": True, "rules": LOSSY, "ticks": 2},
    ],
    ids=[
        "closes-while-greeting",
        "peer-closes-while-greeting",
        "receiver-closes",
        "both-close",
        "sender-closes",
        "closes-and-restarts",
    ],
)
def test_whoever_closes_leaves_a_peer_that_knows_what_is_lost(options: dict[str, Any]) -> None:
    holds(explore(SessionModel(**options)))


@pytest.mark.parametrize(
    "options",
    [
        {"b": [D], "rules": LOSSY, "ticks": 1},
        {"b": [D], "rules": LaneRules(duplicates=1), "ticks": 1},
        {"b": [D, D], "ticks": 1},
    ],
    ids=["loss", "doubling", "two"],
)
def test_a_stale_incarnation_is_heard_no_more(options: dict[str, Any]) -> None:
    holds(explore(ZombieModel(**options)))


class Timeless(SessionModel):
    """Time may stand still for ever, so that a run which needs none of it is seen."""

    def fairness(self, action: Action) -> Any:  # noqa: ANN401
        return None if action.kind is ActionKind.TICK else super().fairness(action)


def in_flight(view: View[Watched]) -> bool:
    return bool(view.in_flight())


@pytest.mark.parametrize(
    "options",
    [
        {"a": [D], "b": [D], "ticks": 1},
        {"a": [D], "rules": LaneRules(duplicates=1), "ticks": 1},
        {"a": [D], "b": [D], "ticks": 1, "again": [B], "opened": True},
        {"a": [D], "close": [A, B], "ticks": 1, "opened": True},
        {"a": [D], "ticks": 3, "limits": HASTY, "opened": True},
    ],
    ids=["greeting-both", "doubling", "restart", "closing", "hasty"],
)
def test_messages_come_to_an_end_without_time(options: dict[str, Any]) -> None:
    holds(find_starvation(Timeless(**options), {"the network": in_flight}))


@pytest.mark.verify
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "options",
    [
        {"a": [D], "b": [D], "rules": BAD, "ticks": 1},
        {"a": [D, D], "opened": True, "rules": BAD, "ticks": 2},
        {"a": [D, D, D], "opened": True, "rules": LaneRules(losses=2), "ticks": 3},
        {"a": [D, D, C], "opened": True, "rules": LOSSY, "ticks": 1, "slow": True},
        {"a": [D], "b": [D], "rules": LOSSY, "ticks": 1, "again": [A, B]},
        {"a": [D], "b": [C], "opened": True, "rules": LOSSY, "ticks": 4, "limits": IMPATIENT},
        {"a": [D], "opened": True, "rules": LOSSY, "ticks": 5, "limits": HASTY},
        {"a": [D, D], "opened": True, "rules": LOSSY, "ticks": 1, "cuts": 1, "again": [B]},
    ],
    ids=[
        "greeting-both",
        "bad-link",
        "three-two-losses",
        "slow-reader-two-lanes",
        "both-restart",
        "impatient",
        "hasty",
        "cut-and-restart",
    ],
)
def test_more_of_it(options: dict[str, Any]) -> None:
    holds(explore(RecoveringModel(**options), max_states=20_000_000))


@pytest.mark.verify
@pytest.mark.timeout(7200)
def test_more_of_closing_and_of_stale_incarnations() -> None:
    both = {"a": [D, D], "b": [C], "close": [A, B], "opened": True}
    holds(explore(SessionModel(**both, rules=LOSSY, ticks=2), max_states=20_000_000))  # type: ignore[arg-type]
    holds(explore(ZombieModel([D], rules=BAD, ticks=1), max_states=20_000_000))


# -- the test of the test ---------------------------------------------------------------------


class Forgetful(Watched):
    """Believes that everything is new."""

    def _on_data(self, segment: Segment, *rest: Any) -> None:  # noqa: ANN401
        self.receiving[D].received = segment.sequence - 1
        super()._on_data(segment, *rest)


class Gullible(Watched):
    """Believes every segment to be of the present session."""

    def handle(self, event: Any, now: float) -> Any:  # noqa: ANN401
        if isinstance(event, Received) and isinstance(event.message, Segment):
            present = event.message._replace(epoch=self.peer_epoch, peer_epoch=self.epoch)
            if self.peer_epoch and event.message.kind is SegmentKind.DATA:
                event = replace(event, message=present)
        return super().handle(event, now)


class Resigned(Watched):
    """Sends nothing again."""

    def _resend(self, now: float, effects: Any) -> None:  # noqa: ANN401
        self._resend_at = None


class Stubborn(Watched):
    """Goes on in the same session after it gave it up."""

    def _end(self, reason: str, effects: Any, *, refused: bool = False) -> None:  # noqa: ANN401
        super()._end(reason, effects, refused=refused)
        self.epoch -= 1


class Mute(Watched):
    """Names nothing when a session ends."""

    def _forget(self, effects: Any, reason: str, refused: bool = False) -> None:  # noqa: ANN401
        for stream in self.sending.values():
            stream.unacknowledged.clear()
        super()._forget(effects, reason, refused)


class Polite(Watched):
    """Answers every greeting by a greeting."""

    def _say(self, kind: SegmentKind, *rest: Any) -> None:  # noqa: ANN401
        super()._say(SegmentKind.HELLO if kind is SegmentKind.STATUS else kind, *rest)


@pytest.mark.parametrize(
    ("machine", "options", "message"),
    [
        (Forgetful, {"a": [D], "opened": True, "rules": BAD, "ticks": 1}, "b got b'a0' of"),
        (Gullible, {"a": [D], "opened": True, "again": [B], "ticks": 1}, "b got b'a0' of"),
        (Resigned, {"a": [D], "opened": True, "rules": LOSSY, "ticks": 1}, "not at its end"),
        (
            Stubborn,
            {"a": [D, D], "opened": True, "rules": LOSSY, "limits": HASTY, "ticks": 4},
            "a rejects a correct peer",
        ),
        (Mute, {"a": [D], "opened": True, "again": [B], "ticks": 1}, "a names only ()"),
        (Polite, {"a": [D], "ticks": 1}, "a storm: messages and no time passes"),
    ],
)
def test_a_wrong_machine_is_found_out(
    machine: type[Watched], options: dict[str, Any], message: str
) -> None:
    result = explore(RecoveringModel(**options, machine=machine))
    assert result.violation is not None
    assert result.violation.message.startswith(message), result
