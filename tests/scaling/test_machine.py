"""The scale machine, event by event."""

from pathlib import Path

import pytest

from dsp.core.machine import Fail, PeerLost, Received, Reject, Resolve, Send
from dsp.core.types import NodeId
from dsp.errors import LocalProtocolError
from dsp.scaling import machine as scaling_machine
from dsp.scaling.events import (
    Activate,
    Assigned,
    Deletion,
    DeletionAck,
    Delivered,
    Deserted,
    Drain,
    Duplication,
    DuplicationAck,
    Evict,
    Keep,
    LeaveRequested,
    Member,
    QueueEmptied,
    ScaleEvent,
    ScaleOutRequested,
    Spawn,
    Spawned,
    SpawnFailed,
    Start,
    Stop,
    Terminate,
)
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.progress import Operation
from dsp.scaling.status import TRANSITIONS, Status

A0, A1, B0, B1, B2, C0, C1 = (NodeId(name) for name in ("a0", "a1", "b0", "b1", "b2", "c0", "c1"))
AROUND = (Member("a", 0, A0), Member("a", 0, A1), Member("c", 0, C0))


def machine(*, keeper: bool = False) -> ScaleMachine:
    return ScaleMachine(Place(Member("b", 0, B1), ("a",), ("c",), keeper), AROUND)


def newcomer() -> ScaleMachine:
    return ScaleMachine(machine().place.newcomer(B2))


def take(subject: ScaleMachine, event: ScaleEvent) -> list[object]:
    effects: list[object] = [*subject.handle(event, 0.0)]
    subject.check_invariants()
    copy = ScaleMachine(subject.place)
    copy.restore(subject.state())
    assert copy.state() == subject.state()
    return effects


def got(subject: ScaleMachine, sender: NodeId, message: object) -> list[object]:
    return take(subject, Received(sender, message))


def test_duplication_costs_two_messages_for_each_neighbour_and_one() -> None:
    b = machine()
    assert take(b, ScaleOutRequested(1, "t")) == [Spawn(1)]
    message = Duplication("b", 1, (B2,))
    assert take(b, Spawned((B2,))) == [Send(A0, message), Send(A1, message), Send(C0, message)]
    assert got(b, A0, DuplicationAck(True)) == []
    assert got(b, A1, DuplicationAck(False)) == []
    start = Start((Member("a", 0, A0), Member("c", 0, C0)))
    assert got(b, C0, DuplicationAck(True)) == [Send(B2, start), Resolve("t", (B2,))]
    assert b.may_scale


def test_a_newcomer_begins_with_what_it_heard_meanwhile() -> None:
    b = newcomer()
    assert got(b, C0, Duplication("c", 1, (C1,))) == [Send(C0, DuplicationAck(True))]
    assert got(b, A1, Deletion("a")) == [Send(A1, DeletionAck())]
    assert not b.works
    assert got(b, B1, Start(AROUND)) == [Activate()]
    assert sorted(b.neighbours.members) == [A0, C0, C1]
    assert b.routes("c") == (C0, C1)
    assert isinstance(got(b, B1, Start(AROUND))[0], Reject)


def test_leaving_in_two_phases() -> None:
    b = machine()
    take(b, Assigned(C0, 2))
    assert take(b, LeaveRequested("t")) == [Send(A0, Deletion("b")), Send(A1, Deletion("b"))]
    assert got(b, A0, DeletionAck()) == []
    assert got(b, A1, DeletionAck()) == [Drain()]
    take(b, Assigned(C0))
    assert take(b, QueueEmptied()) == []
    assert take(b, Delivered(C0, 2)) == []
    assert take(b, Delivered(C0)) == [Send(C0, Deletion("b"))]
    assert b.status is Status.FAREWELL
    assert got(b, C0, DeletionAck()) == [Resolve("t"), Terminate()]
    assert got(b, C0, Keep(True)) == []


def test_a_leaver_is_acknowledged_when_its_records_arrived() -> None:
    b = machine()
    take(b, Assigned(C0, 2))
    assert got(b, C0, Deletion("c")) == [Deserted("c")]
    assert b.routes("c") == ()
    assert take(b, Delivered(C0)) == []
    assert take(b, Delivered(C0)) == [Send(C0, DeletionAck())]


def test_a_leaver_links_no_newcomer_on_a_side_that_it_told() -> None:
    b = machine()
    take(b, LeaveRequested())
    assert got(b, A0, Duplication("a", 1, (NodeId("a2"),))) == [Send(A0, DuplicationAck(False))]
    assert got(b, C0, Duplication("c", 1, (C1,))) == [Send(C0, DuplicationAck(True))]
    assert b.routes("c") == (C0, C1)


def test_without_neighbours_operations_end_at_once() -> None:
    alone = ScaleMachine(Place(Member("x", 0, A0)), ())
    take(alone, ScaleOutRequested())
    assert take(alone, Spawned((A1,))) == [Send(A1, Start(())), Resolve(None, (A1,))]
    assert take(alone, LeaveRequested()) == [Drain()]
    assert take(alone, QueueEmptied()) == [Resolve(None), Terminate()]


@pytest.mark.parametrize(
    "event",
    [
        ScaleOutRequested(0),
        Spawned((B2,)),
        SpawnFailed("no"),
        QueueEmptied(),
        Assigned(A0),
        Assigned(B2),
        Delivered(C0),
    ],
)
def test_a_call_that_the_state_does_not_allow_changes_nothing(event: ScaleEvent) -> None:
    b = machine()
    before = b.state()
    with pytest.raises(LocalProtocolError):
        b.handle(event, 0.0)
    assert b.state() == before


def test_one_operation_at_a_time_and_the_keeper_stays() -> None:
    b = machine()
    take(b, ScaleOutRequested())
    for event in (ScaleOutRequested(), LeaveRequested()):
        with pytest.raises(LocalProtocolError, match="cannot"):
            b.handle(event, 0.0)
    assert take(b, SpawnFailed("no room")) == [Fail(None, "no room")]
    with pytest.raises(LocalProtocolError, match="keeper"):
        machine(keeper=True).handle(LeaveRequested(), 0.0)


@pytest.mark.parametrize(
    "message",
    [Duplication("z", 1, (B2,)), Deletion("b"), DuplicationAck(True), DeletionAck(), "hello"],
)
def test_a_peer_that_breaks_the_protocol_is_rejected(message: object) -> None:
    b = machine()
    before = b.state()
    assert isinstance(got(b, A0, message)[0], Reject)
    assert b.state() == before


def test_what_waits_for_a_lost_peer_goes_on() -> None:
    b = machine()
    take(b, ScaleOutRequested(2))
    take(b, Spawned((B2, NodeId("b3"))))
    got(b, A0, DuplicationAck(True))
    got(b, C0, DuplicationAck(True))
    assert take(b, PeerLost(B2)) == []
    start = Start((Member("a", 0, A0), Member("c", 0, C0)))
    assert take(b, PeerLost(A1)) == [
        Send(NodeId("b3"), start),
        Resolve(None, (NodeId("b3"),)),
    ]
    take(b, LeaveRequested())
    assert take(b, PeerLost(A0)) == [Deserted("a"), Drain()]


def test_the_loss_of_every_newcomer_fails_the_duplication() -> None:
    b = machine()
    take(b, ScaleOutRequested(1, "t"))
    take(b, Spawned((B2,)))
    take(b, PeerLost(B2))
    for peer in (A0, A1):
        assert got(b, peer, DuplicationAck(True)) == []
    assert got(b, C0, DuplicationAck(True)) == [
        Fail("t", "every newcomer was lost before its start")
    ]


def test_a_newcomer_stops_with_its_initiator() -> None:
    b = newcomer()
    assert take(b, PeerLost(C0)) == []
    assert take(b, PeerLost(B1)) == [Stop("its initiator is lost")]
    assert b.status is Status.GONE


def test_who_is_held_for_dead_is_evicted() -> None:
    b = machine()
    take(b, PeerLost(C0))
    assert got(b, C0, Deletion("c")) == [Send(C0, Evict())]
    assert got(b, C0, Evict()) == []
    take(b, ScaleOutRequested(1, "t"))
    reason = "a0 holds it for dead"
    assert got(b, A0, Evict()) == [Fail("t", reason), Stop(reason)]
    assert b.operation is Operation.NONE


def test_neighbours_name_the_next_keeper() -> None:
    b = machine()
    assert take(b, PeerLost(A1)) == []
    got(b, A0, Duplication("a", 1, (NodeId("a3"), NodeId("a2"))))
    assert take(b, PeerLost(A0)) == [Send(NodeId("a2"), Keep(True))]
    senior = Duplication("a", 0, (NodeId("a9"),))
    assert got(b, NodeId("a2"), senior)[:2] == [
        Send(NodeId("a2"), Keep(False)),
        Send(NodeId("a9"), Keep(True)),
    ]
    fresh = newcomer()
    take(fresh, PeerLost(A0))
    votes = got(fresh, B1, Start(AROUND, ("c",)))
    assert votes == [Activate(), Send(A1, Keep(True)), Send(C0, Keep(True))]


def test_a_keeper_by_vote_is_one_as_long_as_a_voter_says_so() -> None:
    b = machine()
    seen = []
    for event in (
        Received(A0, Keep(True)),
        Received(C0, Keep(True)),
        Received(A0, Keep(False)),
        PeerLost(C0),
        Received(A1, Keep(True)),
        Received(A1, Deletion("a")),
    ):
        take(b, event)
        seen.append(b.keeper)
    assert seen == [True, True, True, False, True, False]


def test_the_table_of_the_design_page_is_the_machines() -> None:
    page = (Path(__file__).parents[2] / "docs/design/scaling.md").read_text()
    rows = [line.strip("| ").split("|") for line in page.splitlines() if line.startswith("|")]
    table = {
        Status[row[0].strip()]: tuple(Status[n.strip()] for n in row[2].split(",") if n.strip())
        for row in ((*row, "") for row in rows)
        if row[0].strip() in Status.__members__
    }
    assert table == TRANSITIONS
    lines = (scaling_machine.__doc__ or "").splitlines()
    names = [line.split()[0] for line in lines if line.split()[:1] and line[0].isupper()]
    assert [status.name for status in Status] == [n for n in names if n in Status.__members__]
