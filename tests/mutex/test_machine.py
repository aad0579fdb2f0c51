"""The machines by themselves: events in, effects out."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsp.core.machine import Cancelled, PeerLost, Received, Reject, Send
from dsp.core.types import NodeId
from dsp.errors import InvariantError, LocalProtocolError
from dsp.mutex.arbiter_token import ArbiterToken, Done, Grant, Token, TokenWanted, Want
from dsp.mutex.events import Ack, Admit, EnterRequested, ExitRequested, Linked, Req, Unlinked
from dsp.mutex.ra1 import RA1, RaReply, RaRequest
from dsp.mutex.ra2 import RA2, RaStart, VectorReply, VectorRequest
from dsp.mutex.seat import Seat
from dsp.mutex.status import TRANSITIONS, Status
from dsp.mutex.two_fgme import TwoFGME
from tests.mutex.models import Algorithm

A, B, C, D = (NodeId(name) for name in "abcd")
GROUPS = ((A, B), (C, D))


def test_the_table_of_the_design_page_is_the_table_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs/design/mutex.md").read_text()
    rows = re.findall(r"^\| ([A-Z]+) \| [^|]+ \| ([A-Z, ]*) \|$", page, re.MULTILINE)
    table = {
        Status[name]: tuple(Status[target.strip()] for target in targets.split(","))
        for name, targets in rows
    }
    assert table == TRANSITIONS


def test_group_0_gets_in_without_a_word_at_first() -> None:
    machine = TwoFGME(Seat(A, GROUPS))
    assert machine.handle(EnterRequested("t"), 0) == [Admit("t")]
    assert machine.handle(Received(C, Req(1)), 0) == []
    assert machine.handle(ExitRequested(), 0) == [Send(C, Ack(end=True))]
    # The permission of C is there, that of D is still here.
    assert machine.handle(EnterRequested("u"), 0) == [Send(C, Req(2))]


def test_a_senior_gets_the_permission_and_our_request_goes_with_it() -> None:
    machine = TwoFGME(Seat(C, GROUPS))
    assert machine.handle(EnterRequested(), 0) == [Send(A, Req(1)), Send(B, Req(1))]
    assert machine.handle(Received(A, Ack()), 0) == []
    assert machine.handle(Received(A, Req(1)), 0) == [Send(A, Ack(renew=1))]
    assert machine.handle(Received(A, Ack(end=True)), 0) == []
    assert machine.handle(Received(B, Ack()), 0) == [Admit(None)]


def test_a_junior_waits_and_is_lent_the_permission_while_its_group_is_let_by() -> None:
    machine = TwoFGME(Seat(C, GROUPS))
    machine.handle(EnterRequested(), 0)
    machine.handle(Received(A, Ack()), 0)  # B is still authorised
    assert machine.handle(Received(A, Req(5)), 0) == [Send(A, Ack(renew=1))]
    assert machine.handle(Received(B, Ack()), 0) == []
    # Now nobody is authorised: B is refused, and the loan to A recalled.
    assert machine.handle(Received(B, Req(6)), 0) == [Send(A, Req(1))]
    machine.check_invariants()


def test_a_permission_that_comes_after_the_request_was_withdrawn() -> None:
    machine = TwoFGME(Seat(C, GROUPS))
    machine.handle(EnterRequested(1), 0)
    assert machine.handle(Cancelled(2), 0) == []
    assert machine.describe()["status"] == "WAITING"
    assert machine.handle(Cancelled(1), 0) == []
    assert machine.handle(Received(A, Ack()), 0) == []
    assert machine.handle(Received(B, Ack(renew=3)), 0) == [Send(B, Ack())]
    assert machine.status is Status.IDLE
    assert machine.handle(Cancelled(1), 0) == []


def test_cancelling_in_the_step_of_the_admission_leaves_again() -> None:
    machine = TwoFGME(Seat(A, GROUPS))
    machine.handle(EnterRequested(1), 0)
    machine.handle(Received(D, Req(1)), 0)
    assert machine.handle(Cancelled(1), 0) == [Send(D, Ack(end=True))]


def test_competitors_that_come_and_go() -> None:
    machine = TwoFGME(Seat(C, GROUPS))
    machine.handle(EnterRequested(), 0)
    newcomer = NodeId("x")
    assert machine.handle(Linked(newcomer, held=False), 0) == [Send(newcomer, Req(1))]
    machine.handle(Unlinked(A), 0)
    machine.handle(Unlinked(newcomer), 0)
    assert machine.handle(Unlinked(B), 0) == [Admit(None)]
    with pytest.raises(LocalProtocolError, match="cannot link"):
        machine.handle(Linked(A, held=False), 0)
    assert machine.handle(Linked(A, held=True), 0) == []


@pytest.mark.parametrize("make", [TwoFGME, RA1, RA2, ArbiterToken])
def test_calls_that_the_state_does_not_allow(make: type[Algorithm]) -> None:
    machine = make(Seat(A, GROUPS))  # type: ignore[call-arg]
    with pytest.raises(LocalProtocolError):
        machine.handle(ExitRequested(), 0)
    machine.handle(EnterRequested(), 0)
    with pytest.raises(LocalProtocolError):
        machine.handle(EnterRequested(), 0)
    assert machine.handle(PeerLost(B), 0) == []
    assert machine.next_deadline() is None
    assert "status" in machine.describe()


@pytest.mark.parametrize("make", [TwoFGME, RA1, RA2, ArbiterToken])
@pytest.mark.parametrize(
    ("sender", "message"),
    [(C, "nonsense"), (NodeId("x"), Req(1)), (C, Done()), (C, VectorReply(1, (0,)))],
)
def test_what_no_correct_peer_sends(make: type[Algorithm], sender: NodeId, message: object) -> None:
    machine = make(Seat(A, GROUPS))  # type: ignore[call-arg]
    before = machine.state()
    effects = machine.handle(Received(sender, message), 0)
    assert [type(effect) for effect in effects] == [Reject]
    assert machine.state() == before


def test_a_permission_twice_is_rejected() -> None:
    machine = TwoFGME(Seat(A, GROUPS))
    assert isinstance(machine.handle(Received(C, Ack()), 0)[0], Reject)


def test_a_state_that_must_not_be_is_noticed() -> None:
    machine = TwoFGME(Seat(C, GROUPS))
    machine.status = Status.INSIDE
    with pytest.raises(InvariantError, match="inside without all permissions"):
        machine.check_invariants()


def test_ra1_keeps_the_other_group_waiting() -> None:
    machine = RA1(Seat(B, GROUPS))
    assert machine.handle(EnterRequested(), 0) == [Send(n, RaRequest(1)) for n in (A, C, D)]
    assert machine.handle(Received(C, RaRequest(1)), 0) == []
    assert machine.handle(Received(A, RaRequest(1)), 0) == [Send(A, RaReply())]
    for peer in (A, C):
        machine.handle(Received(peer, RaReply()), 0)
    assert machine.handle(Received(D, RaReply()), 0) == [Admit(None)]
    assert machine.handle(ExitRequested(), 0) == [Send(C, RaReply())]


def test_ra2_captures_its_group() -> None:
    machine = RA2(Seat(A, GROUPS))
    machine.handle(EnterRequested(), 0)
    machine.handle(Received(B, VectorRequest((0, 1, 0, 0))), 0)
    for peer in (B, C):
        machine.handle(Received(peer, VectorReply(1, (0, 0, 0, 0))), 0)
    start = RaStart(1, (1, 1, 0, 0))
    assert machine.handle(Received(D, VectorReply(1, (0,) * 4)), 0) == [
        Send(B, start),
        Admit(None),
    ]
    captured = RA2(Seat(B, GROUPS))
    captured.handle(EnterRequested(), 0)
    assert captured.handle(Received(A, start), 0) == [Admit(None)]


def test_the_token_goes_over_and_comes_back() -> None:
    arbiter = ArbiterToken(Seat(A, GROUPS))
    assert arbiter.handle(Received(B, Want()), 0) == [Send(B, Grant())]
    assert arbiter.handle(Received(C, TokenWanted()), 0) == []
    assert arbiter.handle(EnterRequested(), 0) == []
    assert arbiter.handle(Received(B, Done()), 0) == [Send(C, Token(wanted=True))]
    assert arbiter.handle(Received(C, Token(wanted=False)), 0) == [Admit(None)]


PROGRAM = """
import hashlib
from dsp.lab.mutex.setting import ALGORITHMS, Setting
from dsp.lab.mutex.simulator import simulate
setting = Setting(nodes=6, entries=3, pause=0.01, stay=0.02, first=0.01)
runs = [simulate(setting, name, 1) for name in ALGORITHMS]
print(hashlib.sha256(repr(runs).encode()).hexdigest())
"""


def test_the_same_whatever_the_hash_seed() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
