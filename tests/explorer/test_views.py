"""What predicates read, and that remembered answers are the right ones."""

import pytest

from dsp.core.types import Lane, NodeId
from dsp.testing.explorer import (
    LaneRules,
    Script,
    View,
    WorkerError,
    crash,
    explore,
    explore_many,
)
from dsp.testing.explorer.digest import encode
from tests.explorer.groups import CHILD, PARENT, GroupModel, Hello, Node
from tests.explorer.links import SOURCE, LinkModel, Sink, Source
from tests.explorer.locks import Lock, LockModel, names


class Watched(LockModel):
    """Collects what each of two ways to count frames in flight says."""

    def __init__(self, *, narrow: bool) -> None:
        super().__init__(names(3))
        self.narrow = narrow
        self.most = 3

    def invariant(self, view: View[Lock]) -> None:
        if self.narrow:
            frames = sum(len(view.channel(a, b)) for a in self.nodes for b in self.nodes)
        else:
            frames = sum(len(row[3]) for row in view.in_flight())
        assert frames <= self.most, f"{frames} frames in flight"


def test_remembered_answers_know_of_channels_that_appear_later() -> None:
    narrow, broad = explore(Watched(narrow=True)), explore(Watched(narrow=False))
    assert narrow.violation is not None
    assert broad.violation is not None
    assert narrow.violation.message == broad.violation.message == "4 frames in flight"
    assert len(narrow.violation.trace) == len(broad.violation.trace) == 2


def test_view_of_nodes_that_come_and_go() -> None:
    seen = set()

    class Looking(GroupModel):
        def invariant(self, view: View[Node]) -> None:
            seen.add((view.nodes, view.gone, view.steps_done("grow")))
            assert view.exists(PARENT)
            assert view.ghost in (0, 1)
            if not view.exists(CHILD):
                with pytest.raises(KeyError):
                    view.state(CHILD)
                with pytest.raises(KeyError):
                    view.machine(CHILD)
            for _, _, lane, frames in view.in_flight():
                assert lane is Lane.CONTROL
                assert frames == (Hello(),)

        def quiet(self, view: View[Node]) -> None:
            """Whatever."""

    explore(Looking(Script("kill", (crash(CHILD),)))).assert_holds()
    assert seen == {
        ((PARENT,), (), 0),
        ((PARENT, CHILD), (), 1),
        ((PARENT,), (CHILD,), 1),
    }


def test_answers_that_depend_on_all_states_are_not_kept_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = explore(LockModel(names(3)))
    monkeypatch.setattr("dsp.testing.explorer.view._LEAVES", 10)
    forgetful = explore(LockModel(names(3)))
    assert (whole.states, whole.transitions) == (forgetful.states, forgetful.transitions)
    assert explore(LockModel(names(2), tie_break=False)).violation is not None


class Faulty(LinkModel):
    """A model with a bug of its own."""

    def invariant(self, view: View[Source | Sink]) -> None:
        if view.machine(SOURCE) is not None:
            raise TypeError("a bug in the model")


def test_bugs_of_a_model_are_not_taken_for_faults_of_the_protocol() -> None:
    with pytest.raises(TypeError, match="a bug in the model"):
        explore(Faulty(LaneRules()))
    with pytest.raises(WorkerError, match="TypeError: a bug in the model"):
        explore(Faulty(LaneRules()), workers=2)
    with pytest.raises(WorkerError, match="TypeError: a bug in the model"):
        explore_many([Faulty(LaneRules()), Faulty(LaneRules())], workers=2)


def test_equal_values_have_equal_digests() -> None:
    assert encode(True) == encode(1) == encode(1.0)
    assert encode(frozenset({"a", "b", "c"})) == encode(frozenset({"c", "b", "a"}))
    values: list[object] = [
        None,
        0,
        1,
        0.5,
        "1",
        b"1",
        (),
        (1,),
        ((1,),),
        (1, 2),
        frozenset({1}),
        Lane.DATA,
    ]
    values += [Hello(), Node, ("ab", "c"), ("a", "bc"), Lane.CONTROL, NodeId("x")]
    assert len({encode(value) for value in values}) == len(values)
