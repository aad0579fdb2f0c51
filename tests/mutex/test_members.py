"""Members that join, leave, crash and are suspected wrongly: every interleaving.

In every state: two groups never hold valid numbers inside together; without wrong suspicions
nobody who is inside would be refused. In every quiet state: everybody who lives is a member, knows
exactly who is there, and has been inside.
"""

import pytest

from dsp.core.machine import PeerAppeared, PeerLost, Received, Reject, Send, SendFailed, Tick
from dsp.core.types import NodeId
from dsp.errors import ConfigError, LocalProtocolError
from dsp.mutex.events import (
    Ack,
    Admit,
    Bye,
    Carried,
    EnterRequested,
    Expelled,
    Hello,
    JoinRequested,
    LeaveRequested,
    Left,
    MemberRemoved,
    Req,
    Revoke,
    Settled,
    Superseded,
    Welcome,
)
from dsp.mutex.member import Member
from dsp.mutex.numbers import explain, next_number, next_term
from dsp.mutex.seat import Seat
from dsp.mutex.status import Phase, Status
from dsp.testing.explorer import explore, random_walks
from tests.mutex.members import MembersModel
from tests.mutex.models import groups_of, names

A, B, C, D, E, F = names(6)
TWO_AND_TWO = ((A, B), (C, D))
ONE_AND_ONE = ((A,), (B,))


@pytest.mark.parametrize("group", [0, 1])
def test_one_joins_two_and_two(group: int) -> None:
    explore(MembersModel(TWO_AND_TWO, visitors=(A, C), joiners={E: group})).assert_holds()


def test_one_leaves_two_and_two() -> None:
    explore(MembersModel(TWO_AND_TWO, visitors=(A, B, C, D), leavers=(B,))).assert_holds()


def test_two_join_at_once() -> None:
    # Nobody enters but the two, which may not know each other at first.
    model = MembersModel(ONE_AND_ONE, joiners={C: 0, D: 1})
    explore(model, max_states=1_000_000).assert_holds()


@pytest.mark.verify
def test_two_join_at_once_while_others_enter() -> None:
    model = MembersModel(ONE_AND_ONE, visitors=(A, B), joiners={C: 0, D: 1})
    explore(model).assert_holds()


@pytest.mark.verify
@pytest.mark.parametrize("group", [0, 1])
def test_one_joins_while_one_leaves(group: int) -> None:
    model = MembersModel(TWO_AND_TWO, visitors=(A, C), leavers=(D,), joiners={E: group})
    explore(model).assert_holds()


def test_one_crashes_of_two_and_two() -> None:
    explore(MembersModel(TWO_AND_TWO, visitors=(A, B, C), crashes=(B,))).assert_holds()
    explore(MembersModel(TWO_AND_TWO, visitors=(A, C, D), crashes=(C,))).assert_holds()


@pytest.mark.verify
@pytest.mark.parametrize("victim", [A, B, C, D])
def test_anyone_crashes_of_two_and_two(victim: NodeId) -> None:
    explore(MembersModel(TWO_AND_TWO, visitors=(A, B, C, D), crashes=(victim,))).assert_holds()


@pytest.mark.parametrize("pairs", [((A, B),), ((B, A),)])
def test_wrong_suspicion_of_one_and_one(pairs: tuple[tuple[NodeId, NodeId], ...]) -> None:
    model = MembersModel(ONE_AND_ONE, visitors=(A, B, A, B), suspicions=pairs, quorum=False)
    explore(model).assert_holds()


def test_wrong_suspicion_of_one_and_two() -> None:
    groups = groups_of((A, B, C), 1)
    model = MembersModel(groups, visitors=(A, B, C), suspicions=((B, A),), quorum=False)
    explore(model).assert_holds()


def test_two_suspect_each_other() -> None:
    groups = groups_of((A, B, C), 2)
    model = MembersModel(groups, visitors=(A, C), suspicions=((A, C), (C, A)), quorum=False)
    explore(model).assert_holds()


def test_walks_with_everything_at_once() -> None:
    model = MembersModel(
        (names(4), (NodeId("w"), NodeId("x"), NodeId("y"))),
        visitors=(A, B, C, NodeId("w"), NodeId("x"), A, NodeId("w")),
        joiners={E: 0, F: 1},
        leavers=(B,),
        crashes=(D,),
        suspicions=((A, NodeId("w")), (NodeId("x"), C)),
    )
    random_walks(model, seed=1, walks=10, steps=5000).assert_holds(complete=False)


# -- one machine ------------------------------------------------------------------------------


def carried(body: object, number: int = 0) -> Carried:
    return Carried("", number, body)  # type: ignore[arg-type]


def test_numbers_grow_and_terms_are_above_counts() -> None:
    number = next_number(0, 1)
    assert number & 1 == 1
    later = next_number(number, 0)
    assert number < later
    assert next_term(next_number(10**9, 0)) > next_number(10**9, 1)
    assert explain(next_number(next_term(later), 1)) == "term 1, count 1, group 1"


def test_an_entry_is_above_everything_that_was_heard_of() -> None:
    member = Member(Seat(A, ONE_AND_ONE), founder=True)
    assert member.handle(Received(B, carried(Req(1), 501)), 0) == [Send(B, Carried("", 501, Ack()))]
    assert member.handle(EnterRequested(1), 0) == [Send(B, Carried("", 501, Req(2)))]
    assert member.handle(Received(B, carried(Ack(end=True), 601)), 0) == [Admit(1, 602)]


def test_one_that_suspects_everybody_takes_nothing() -> None:
    member = Member(Seat(A, TWO_AND_TWO), founder=True, patience=1.0)
    for time, peer in enumerate((B, C, D)):
        assert member.handle(PeerLost(peer), time / 2) == []
    assert member.next_deadline() == 2.0
    assert member.handle(Tick(), 1.5) == []
    assert member.handle(Tick(), 2.0) == []
    assert member.next_deadline() is None
    assert {*member.roster.known} == {B, C, D}
    # Those two were only silent for a while; the third one stays so, and three of four agree.
    assert member.handle(PeerAppeared(B), 3.0) == member.handle(PeerAppeared(D), 3.5) == []
    expelled = Carried("", 1 << 41, Expelled(1))
    assert member.handle(Tick(), 4.5) == [Send(C, expelled)]
    assert member.handle(Received(C, carried(Req(1))), 5) == [Send(C, expelled)]
    assert member.handle(PeerAppeared(C), 5) == [Send(C, expelled)]


def test_the_dead_count_for_the_majority_until_they_are_removed() -> None:
    member = Member(Seat(A, TWO_AND_TWO), founder=True)
    member.handle(PeerLost(C), 0)
    member.handle(PeerLost(B), 0)  # half, with the first name
    assert {*member.roster.lost} == {B, C}
    assert member.handle(PeerLost(D), 0) == []
    member.handle(MemberRemoved(B), 0)
    member.handle(MemberRemoved(C), 0)
    assert member.handle(PeerLost(D), 0)
    assert not member.roster.known


def test_half_goes_on_with_the_first_name_only() -> None:
    first, second = (Member(Seat(name, ONE_AND_ONE), founder=True) for name in (A, B))
    first.handle(Received(B, carried(Req(1))), 0)
    first.handle(EnterRequested(1), 0)
    assert isinstance(first.handle(PeerLost(B), 0)[-1], Admit)
    second.handle(EnterRequested(1), 0)
    assert second.handle(PeerLost(A), 0) == []
    assert second.handle(PeerAppeared(A), 0) == []
    assert second.status is Status.WAITING


def test_lost_messages_make_both_ends_begin_anew() -> None:
    member = Member(Seat(B, ONE_AND_ONE), founder=True)
    member.handle(EnterRequested(1), 0)
    assert member.handle(SendFailed(A, (carried(Req(1)),)), 0) == []
    hello = Hello(2, 1, ((A,), (B,)))
    assert member.handle(PeerAppeared(A), 0) == [Send(A, carried(hello))]
    assert member.phase is Phase.JOINING
    answer = Welcome(2, 1, ((A,), (B,)))
    assert member.handle(Received(A, carried(answer)), 0) == [
        Settled(),
        Send(A, carried(Req(2))),
    ]


def test_a_refused_entry_is_revoked() -> None:
    member = Member(Seat(A, ONE_AND_ONE), founder=True)
    member.handle(EnterRequested(7), 0)
    revoke, hello = member.handle(Superseded(999), 0)
    assert revoke == Revoke(7, "a resource has seen a higher number")
    assert hello == Send(B, Carried("", 999, Hello(2, 0, ((A,), (B,)))))


def test_leaving() -> None:
    member = Member(Seat(A, TWO_AND_TWO), founder=True)
    member.handle(EnterRequested(), 0)
    with pytest.raises(LocalProtocolError, match="cannot leave now"):
        member.handle(LeaveRequested(), 0)
    other = Member(Seat(B, TWO_AND_TWO), founder=True)
    *byes, left = other.handle(LeaveRequested(), 0)
    bye = carried(Bye(((A,), (C, D))))
    assert byes == [Send(name, bye) for name in (A, C, D)]
    assert left == Left()
    assert other.handle(Received(E, carried(Hello(1, 0, ((E,), ())))), 0) == [Send(E, bye)]
    assert other.handle(Received(C, carried(Req(1))), 0) == []
    with pytest.raises(LocalProtocolError, match="has left"):
        other.handle(EnterRequested(), 0)


def test_one_alone_joins_at_once() -> None:
    member = Member(Seat(A, ((A,), ())))
    member.handle(EnterRequested(3), 0)
    assert member.handle(JoinRequested(), 0) == [Settled(), Admit(3, 2)]


def test_what_no_member_says_is_rejected() -> None:
    member = Member(Seat(A, ONE_AND_ONE), founder=True)
    assert isinstance(member.handle(Received(B, Req(1)), 0)[0], Reject)
    assert isinstance(member.handle(Received(B, Carried("x", 0, Req(1))), 0)[0], Reject)
    assert isinstance(member.handle(Received(B, carried(Ack())), 0)[0], Reject)
    assert member.handle(Received(D, carried(Req(1))), 0) == []


def test_a_name_in_both_groups_is_refused() -> None:
    with pytest.raises(ConfigError):
        Seat(A, ((A,), (A,)))
