"""Nodes that are created, leave and crash in the middle of a run."""

import pytest

from dsp.core.machine import PeerLost
from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.testing.explorer import (
    Absent,
    ActionKind,
    Kind,
    Notice,
    Run,
    Script,
    View,
    call,
    crash,
    explore,
    join,
    leave,
    tell,
)
from tests.explorer.groups import CHILD, PARENT, GroupModel, Grow, Node, Quit, Work


def met(view: View[Node]) -> bool:
    return CHILD in view.machine(PARENT).known


def test_spawned_node_takes_part() -> None:
    result = explore(GroupModel())
    result.assert_holds()
    assert (result.states, result.depth) == (4, 3)


def test_node_that_says_goodbye_is_forgotten() -> None:
    quits = Script("quit", (tell(CHILD, Quit(), when=lambda view: PARENT in known(view)),))
    result = explore(GroupModel(quits))
    result.assert_holds()


def known(view: View[Node]) -> tuple[str, ...]:
    return view.machine(CHILD).known


def test_leaving_without_a_word_is_found_out() -> None:
    result = explore(GroupModel(Script("go", (leave(CHILD, when=met),))))
    assert result.violation is not None
    assert result.violation.kind is Kind.QUIET
    assert result.violation.message.startswith("parent knows ['child'], there is []")
    assert "child left" in str(result)


@pytest.mark.parametrize("notice", list(Notice))
def test_survivors_of_a_crash_are_told(notice: Notice) -> None:
    model = GroupModel(Script("kill", (crash(CHILD, when=met),)))
    model.notice = notice
    explore(model).assert_holds()


def test_notice_may_come_before_frames_still_in_flight() -> None:
    model = GroupModel(Script("kill", (crash(CHILD),)))
    result = explore(model)
    # parent learns of the loss first, and then takes the hello of the dead child for a new one
    assert result.violation is not None
    assert result.violation.kind is Kind.QUIET
    kinds = [step.action.kind for step in result.violation.trace]
    assert kinds.index(ActionKind.NOTICE) < len(kinds) - 1
    for notice in (Notice.LAST, Notice.CUT):
        model.notice = notice
        explore(model).assert_holds()


def test_frames_to_the_dead_are_dropped_and_reported() -> None:
    class Counted(GroupModel):
        def invariant(self, view: View[Node]) -> None:
            assert view.ghost == 0, "a frame was dropped"

    scripts = (
        Script("kill", (crash(CHILD, when=met),)),
        Script("work", (tell(PARENT, Work(), when=met),)),
    )
    result = explore(Counted(*scripts))
    assert result.violation is not None
    assert "Ping() from parent to child" in str(result)
    model = GroupModel(*scripts)
    model.absent = Absent.VIOLATION
    strict = explore(model)
    assert strict.violation is not None
    assert strict.violation.kind is Kind.ABSENT


def test_frames_may_wait_for_a_node_that_joins_later() -> None:
    class Early(GroupModel):
        def on_effect(self, run: Run, node: object, effect: object) -> None:
            """The spawn is slow: the child appears by a script of its own."""

    late = Script("late", (join(CHILD, lambda: Node(CHILD)),))
    early = Early(late)
    early.absent = Absent.KEEP
    kept = explore(early)
    kept.assert_holds()
    early.absent = Absent.DROP
    dropped = explore(early)
    assert dropped.violation is not None
    assert dropped.violation.kind is Kind.QUIET


def test_scripts_of_nodes_that_are_gone_are_forgiven_and_others_are_not() -> None:
    scripts = (
        Script("kill", (crash(CHILD, when=met),)),
        Script("child", (tell(CHILD, Work(), when=lambda view: False),)),
    )
    model = GroupModel(*scripts)
    model.notice = Notice.LAST
    explore(model).assert_holds()
    ghost = Script("nobody", (tell(NodeId("nobody"), Work()),))
    result = explore(GroupModel(ghost))
    assert result.violation is not None
    assert result.violation.kind is Kind.DEADLOCK


def test_crash_and_join_again_under_the_same_name() -> None:
    again = Script(
        "again",
        (
            crash(CHILD, when=met),
            join(
                CHILD,
                lambda: Node(CHILD),
                variant="second life",
                when=lambda view: CHILD not in view.machine(PARENT).known,
            ),
            call("introduce", lambda run: run.post(CHILD, PeerLost(CHILD)), node=CHILD),
        ),
    )
    result = explore(GroupModel(again))
    assert result.violation is not None
    assert "child joined" in str(result.violation)
    assert "child takes PeerLost(peer='child'), posted before" in str(result.violation)


def test_fed_events_happen_in_the_same_step() -> None:
    def twice(run: Run) -> None:
        run.feed(PARENT, Grow())
        run.feed(PARENT, Work())

    class Fed(GroupModel):
        def scripts(self) -> list[Script]:
            return [Script("fed", (call("grow and work", twice),))]

    result = explore(Fed())
    result.assert_holds()
    assert result.depth == 3


def test_orders_that_make_no_sense_are_violations() -> None:
    for text, act in (
        ("parent is created while it exists", lambda run: run.spawn(PARENT, Node(PARENT))),
        ("child is removed while it does not exist", lambda run: run.retire(CHILD)),
        ("Work() is fed to child, which does not exist", lambda run: run.feed(CHILD, Work())),
        ("Work() is posted to child, which does not exist", lambda run: run.post(CHILD, Work())),
        ("enough", lambda run: run.violate("enough")),
    ):

        class Wrong(GroupModel):
            def scripts(self, act: object = act) -> list[Script]:
                return [Script("wrong", (call("wrong", act),))]  # type: ignore[arg-type]

        result = explore(Wrong())
        assert result.violation is not None
        assert result.violation.message == text
        assert len(result.violation.trace) == 1


def test_scripts_are_checked() -> None:
    with pytest.raises(ConfigError, match="script 'grow'"):
        explore(GroupModel(Script("grow", (tell(PARENT, Work()),))))


def test_membership_in_several_processes() -> None:
    model = GroupModel(Script("kill", (crash(CHILD),)), Script("w", (tell(PARENT, Work()),)))
    model.notice = Notice.LAST
    alone, together = explore(model), explore(model, workers=2)
    assert (alone.states, alone.transitions, alone.quiet, alone.complete) == (
        together.states,
        together.transitions,
        together.quiet,
        together.complete,
    )
