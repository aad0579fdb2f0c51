"""The machine of the exchange: counting, answering, refusing, and every interleaving of it."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import pytest

from dsp import Lane, NodeId
from dsp.core.envelope import Custom, Envelope, encode_envelope
from dsp.core.machine import (
    Cancelled,
    Fail,
    PeerLost,
    Received,
    Reject,
    Resolve,
    Send,
    SendFailed,
    Tick,
)
from dsp.errors import CodecError, InvariantError, LocalProtocolError
from dsp.testing.explorer import Model, Run, Script, View, explore, random_walks, tell
from examples.exchange.counting import (
    AllSent,
    Answer,
    Arrived,
    Ask,
    BatchesLost,
    CountingMachine,
    Finished,
    Totals,
    TotalsRequested,
)
from examples.exchange.wire import Batch, Codec

A, B, C = NodeId("a"), NodeId("b"), NodeId("c")


def handle(machine: CountingMachine, *events: Any) -> list[object]:  # noqa: ANN401
    return [effect for event in events for effect in machine.handle(event, 0.0)]


# -- the way it goes --------------------------------------------------------------------------


def test_a_node_says_what_it_sent_and_answers_when_it_has_everything() -> None:
    machine = CountingMachine(A, [B])
    assert handle(machine, AllSent(3)) == [Send(B, Finished(3))]
    assert handle(machine, TotalsRequested("t")) == [Send(B, Ask())]
    assert handle(machine, Received(B, Ask()), Received(B, Finished(2))) == []
    assert handle(machine, Arrived(B, 0, ("elm", "elm"))) == []
    answer = Answer((("b", "alder", 1), ("b", "elm", 2)))
    assert handle(machine, Arrived(B, 1, ("alder",))) == [Send(B, answer)]
    theirs = Answer((("a", "elm", 7),))
    totals = (("a", "b", "alder", 1), ("a", "b", "elm", 2), ("b", "a", "elm", 7))
    assert handle(machine, Received(B, theirs)) == [Resolve("t", totals)]


def test_who_has_everything_answers_at_once() -> None:
    machine = CountingMachine(A, [B])
    handle(machine, Arrived(B, 0, ("elm",)), Received(B, Finished(1)))
    assert handle(machine, Received(B, Ask())) == [Send(B, Answer((("b", "elm", 1),)))]


def test_a_node_stays_until_nobody_needs_it() -> None:
    machine = CountingMachine(A, [B])
    handle(machine, AllSent(0), TotalsRequested("t"), Received(B, Finished(0)))
    assert handle(machine, Received(B, Answer(()))) == []
    assert handle(machine, Received(B, Ask())) == [Send(B, Answer(())), Resolve("t", ())]


@pytest.mark.parametrize(
    "loss", [SendFailed(B, (Finished(1),)), SendFailed(B, ("x",), Lane.DATA), BatchesLost(B)]
)
def test_what_is_lost_ends_the_wait_before_and_after_it_began(loss: object) -> None:
    failed = Fail("t", "what was sent to b did not arrive")
    machine = CountingMachine(A, [B, C])
    handle(machine, AllSent(1), TotalsRequested("t"))
    assert handle(machine, loss, loss) == [failed]
    machine = CountingMachine(A, [B, C])
    handle(machine, loss, AllSent(1))
    assert handle(machine, TotalsRequested("t"))[-1] == failed


def test_hints_and_time_change_nothing_and_a_wait_can_be_withdrawn() -> None:
    machine = CountingMachine(A, [B])
    handle(machine, AllSent(0), TotalsRequested("t"))
    before = machine.state()
    assert handle(machine, PeerLost(B), Tick(), Cancelled("other")) == []
    assert machine.state() == before
    assert machine.next_deadline() is None
    handle(machine, Cancelled("t"), Received(B, Finished(0)), Received(B, Ask()))
    assert handle(machine, Received(B, Answer(()))) == []


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        Arrived(NodeId("eve"), 0, ("elm",)),
        Received(NodeId("eve"), Ask()),
        Arrived(B, 0, ("elm",)),  # a second time
        Arrived(B, 2, ("elm",)),  # one is missing
        Received(B, Finished(0)),  # fewer than came
        Received(B, Answer(())),  # nobody asked
        Received(B, "nonsense"),
    ],
)
def test_what_a_correct_peer_never_does_is_rejected(event: Any) -> None:  # noqa: ANN401
    machine = CountingMachine(A, [B])
    handle(machine, Arrived(B, 0, ("elm",)))
    before = machine.state()
    (effect,) = machine.handle(event, 0.0)
    assert isinstance(effect, Reject)
    assert machine.state() == before


@pytest.mark.parametrize(
    "event", [Arrived(B, 1, ("elm",)), Received(B, Finished(1)), Received(B, Ask())]
)
def test_nothing_comes_after_the_end(event: Any) -> None:  # noqa: ANN401
    machine = CountingMachine(A, [B])
    handle(machine, Arrived(B, 0, ("elm",)), Received(B, Finished(1)), Received(B, Ask()))
    (effect,) = machine.handle(event, 0.0)
    assert isinstance(effect, Reject)


@pytest.mark.parametrize("event", [AllSent(1), TotalsRequested("u")])
def test_the_application_says_each_thing_once(event: Any) -> None:  # noqa: ANN401
    machine = CountingMachine(A, [B])
    handle(machine, AllSent(1), TotalsRequested("t"))
    before = machine.state()
    with pytest.raises(LocalProtocolError, match="before"):
        machine.handle(event, 0.0)
    assert machine.state() == before


def test_states_are_values() -> None:
    machine = CountingMachine(A, [B])
    start = machine.state()
    handle(machine, Arrived(B, 0, ("elm",)), Received(B, Ask()))
    later = machine.state()
    assert hash(later) != hash(start)
    machine.restore(start)
    assert machine.state() == start
    machine.restore(later)
    assert machine.state() == later
    assert machine.describe() == {"b": "1 of ? batches, did not answer"}


def test_a_broken_state_is_noticed() -> None:
    machine = CountingMachine(A, [B])
    handle(machine, Arrived(B, 0, ("elm",)), Received(B, Finished(1)))
    machine.check_invariants()
    stranger = CountingMachine(A, [C])
    parts = cast("tuple[Any, ...]", stranger.state())
    stranger.restore((parts[0], *cast("tuple[Any, ...]", machine.state())[1:]))
    with pytest.raises(InvariantError, match=r"words of \['b'\]"):
        stranger.check_invariants()


# -- every interleaving -----------------------------------------------------------------------


class Exchange(Model[CountingMachine]):
    """Nodes of an exchange; batches and messages come in any order that two lanes allow."""

    names: Sequence[NodeId] = (A, B)
    batches = 2

    def machines(self) -> Mapping[NodeId, CountingMachine]:
        others = {name: [other for other in self.names if other != name] for name in self.names}
        return {name: CountingMachine(name, others[name]) for name in self.names}

    def scripts(self) -> Sequence[Script]:
        numbers = range(self.batches)
        requests = [
            Script(name, (tell(name, AllSent(self.batches)), tell(name, TotalsRequested(name))))
            for name in self.names
        ]
        # Batches are on their way from the start: the worst that the lack of order can do.
        arrivals = [
            Script(
                f"{one} to {other}", tuple(tell(other, Arrived(one, n, (one,))) for n in numbers)
            )
            for one in self.names
            for other in self.names
            if one != other
        ]
        return requests + arrivals

    def ghost(self) -> Hashable:
        return ()

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        if not isinstance(effect, Resolve):
            run.violate(f"{effect}")
            return
        if effect.value != self.right:
            run.violate(f"{node} has {effect.value}")
        assert isinstance(run.ghost, tuple)
        run.ghost = tuple(sorted([*run.ghost, node]))

    @property
    def right(self) -> Totals:
        pairs = [(one, other) for one in self.names for other in self.names if one != other]
        return tuple(sorted((one, other, other, self.batches) for one, other in pairs))

    def quiet(self, view: View[CountingMachine]) -> None:
        assert view.ghost == tuple(sorted(self.names)), f"only {view.ghost} have the totals"


class Three(Exchange):
    """Too many interleavings to try all."""

    names = (A, B, C)


def test_two_nodes_get_the_right_totals_in_every_interleaving() -> None:
    explore(Exchange()).assert_holds()


def test_three_nodes_get_the_right_totals_in_many_interleavings() -> None:
    result = random_walks(Three(), seed=1, walks=200, steps=200)
    assert result.violation is None, str(result)


# -- bytes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [Finished(3), Ask(), Answer(()), Answer((("a", "elm", 2),)), Batch(7, ("elm", "oak"))],
)
def test_messages_come_back_as_they_were(message: Any) -> None:  # noqa: ANN401
    data = Codec("run").encode(message)
    assert Codec("run").decode(data) == message
    with pytest.raises(CodecError, match="another run, run"):
        Codec("other").decode(data)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'["run"]',
        b'["run", "dance"]',
        b'["run", "finished", "3"]',
        b'["run", "batch", 1, [2]]',
        b'["run", "answer", [["a", "elm"]]]',
        b'["run", "answer", [["a", "elm", [1]]]]',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_message_are_a_codec_error(body: bytes) -> None:
    with pytest.raises(CodecError):
        Codec("run").decode(body)
    envelope = Envelope(custom=Custom(type="examples.exchange", payload=body))
    with pytest.raises(CodecError):
        Codec("run").decode(encode_envelope(envelope))
