"""Several edges at once, in one order: every interleaving of a line and of a diamond."""

import pytest

from dsp.core.machine import Cancelled, Received, Reject
from dsp.core.types import NodeId
from dsp.errors import ConfigError, LocalProtocolError
from dsp.mutex.chain import Chain
from dsp.mutex.edges import Edge, edges_in_order, edges_of
from dsp.mutex.events import (
    Admit,
    Carried,
    EnterRequested,
    ExitRequested,
    Expelled,
    LeaveRequested,
    Left,
    Req,
    Revoke,
)
from dsp.mutex.member import Member
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status
from dsp.testing.explorer import Kind, explore, random_walks
from tests.mutex.chains import DIAMOND, LINE, ChainModel

TRIANGLE = tuple(Edge(a, b) for a, b in ("ab", "ac", "bc"))


@pytest.mark.parametrize("graph", [LINE, DIAMOND, TRIANGLE], ids=["line", "diamond", "triangle"])
def test_pipelines(graph: tuple[Edge, ...]) -> None:
    explore(ChainModel(graph)).assert_holds()


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(LINE, id="line"),
        pytest.param(DIAMOND, id="diamond", marks=pytest.mark.verify),
    ],
)
def test_pipelines_with_two_entries(graph: tuple[Edge, ...]) -> None:
    explore(ChainModel(graph, entries=2)).assert_holds()


def test_another_order_deadlocks() -> None:
    order = {
        "a": [Edge("a", "c"), Edge("a", "b")],
        "b": [Edge("a", "b"), Edge("b", "d")],
        "c": [Edge("c", "d"), Edge("a", "c")],
        "d": [Edge("b", "d"), Edge("c", "d")],
    }
    violation = explore(ChainModel(DIAMOND, order=order)).violation
    assert violation is not None
    assert violation.kind is Kind.DEADLOCK


def test_walks_through_a_longer_line() -> None:
    line = tuple(Edge(a, b) for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    random_walks(ChainModel(line, entries=3), seed=1, walks=10).assert_holds(complete=False)


def test_predecessors_come_first_in_every_graph() -> None:
    graph = [Edge(*ends) for ends in ("xa", "ab", "xb", "bc", "ad", "dc", "xz", "zc")]
    ordered = edges_in_order(graph)
    for operator in "xabcdz":
        mine = edges_of(operator, reversed(graph))
        assert mine == [edge for edge in ordered if operator in (edge.before, edge.after)]
        sides = [edge.before == operator for edge in mine]
        assert sides == sorted(sides)
    with pytest.raises(ConfigError, match="circle"):
        edges_in_order([Edge("a", "b"), Edge("b", "a")])


# -- one machine ------------------------------------------------------------------------------

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")


def middle() -> Chain:
    """The node b of a > b > c, which has to ask a."""
    members = (
        Member(Seat(B, ((A,), (B,))), founder=True, edge="a>b"),
        Member(Seat(B, ((B,), (C,))), founder=True, edge="b>c"),
    )
    return Chain(members)


def ack(edge: str, number: int = 0) -> Carried:
    from dsp.mutex.events import Ack

    return Carried(edge, number, Ack())


def test_the_predecessor_then_the_successor() -> None:
    chain = middle()
    asked = chain.handle(EnterRequested(5), 0)
    assert [getattr(effect, "to", None) for effect in asked] == [A]
    admitted = chain.handle(Received(A, ack("a>b", 10)), 0)
    assert admitted == [Admit(5, 13, (("a>b", 13), ("b>c", 2)))]
    chain.check_invariants()
    with pytest.raises(LocalProtocolError, match="cannot leave"):
        chain.handle(LeaveRequested(), 0)
    chain.handle(ExitRequested(), 0)
    assert chain.handle(LeaveRequested(), 0)[-1] == Left()


def test_an_edge_that_is_lost_takes_the_entry_with_it() -> None:
    chain = middle()
    chain.handle(EnterRequested(5), 0)
    chain.handle(Received(A, ack("a>b")), 0)
    effects = chain.handle(Received(C, Carried("b>c", 0, Expelled(1))), 0)
    assert effects[0] == Revoke(5, "c held this member for dead")
    assert chain.status is Status.IDLE
    chain.check_invariants()


def test_an_edge_that_is_lost_on_the_way_is_taken_again() -> None:
    chain = middle()
    chain.handle(Received(C, Carried("b>c", 0, Req(1))), 0)  # c has the other permission
    chain.handle(EnterRequested(5), 0)
    chain.handle(Received(A, ack("a>b")), 0)
    assert chain.members["a>b"].status is Status.INSIDE
    effects = chain.handle(Received(A, Carried("a>b", 0, Expelled(1))), 0)
    assert not any(isinstance(effect, Revoke | Admit) for effect in effects)
    assert chain.status is Status.WAITING
    chain.check_invariants()


def test_withdrawing_gives_back_what_was_taken() -> None:
    chain = middle()
    chain.handle(Received(C, Carried("b>c", 0, Req(1))), 0)
    chain.handle(EnterRequested(5), 0)
    chain.handle(Received(A, ack("a>b")), 0)
    chain.handle(Cancelled(5), 0)
    assert chain.status is Status.IDLE
    chain.check_invariants()
    assert isinstance(chain.handle(Received(A, Carried("?", 0, Req(1))), 0)[0], Reject)
