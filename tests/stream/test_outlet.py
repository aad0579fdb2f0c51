"""What goes from an instance to its successors: whose turn it is, who has room, what comes back."""

import asyncio
from collections.abc import Sequence

import pytest

from dsp._pb.engine_pb2 import EngineProgress
from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.codecs import JsonCodec
from dsp.stream.graph import Edge, Grouping
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Limits, Made, Sent
from dsp.stream.tokens import Token

pytestmark = pytest.mark.asyncio

ONE, TWO, THREE = map(NodeId, ("b.1", "b.2", "b.3"))


class Around:
    """An instance that notes what its outlet does."""

    def __init__(self, grouping: Grouping, *, window: int = 1000, keep: bool = True) -> None:
        self.names: tuple[NodeId, ...] = (ONE, TWO)
        self.sent: list[tuple[NodeId, int, list[int]]] = []
        self.balance: dict[NodeId, int] = {}
        self.waits = 0
        self.done: list[int] = []
        key = (lambda value: value) if grouping is Grouping.KEY else None
        self.edge = Edge("a", "b", grouping, JsonCodec(), key=key)
        limits = Limits(window, 10, 10**6, 10, 3600.0)
        self.outlet = Outlet(self, [(self.edge, limits)], keep=keep)

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        return self.names

    def assigned(self, to: NodeId, batches: int) -> None:
        assert to in self.names
        self.balance[to] = self.balance.get(to, 0) + batches

    def confirmed(self, by: NodeId, batches: int) -> None:
        self.balance[by] -= batches

    def transmit(self, sent: Sent) -> None:
        self.sent.append((sent.to, sent.sequence, list(sent.ids)))

    def is_local(self, name: NodeId) -> bool:
        return False

    def blocked(self, waiting: bool) -> None:
        self.waits += waiting

    def unfit(self, failures: object, born: float, token: Token) -> None:
        raise AssertionError(failures)

    async def emit(self, ids: Sequence[int]) -> None:
        """Send what came of one input; ``done`` gets its first identity when nothing is left."""
        token = Token(lambda: self.done.append(ids[0]))
        await self.outlet.emit(Made(self.edge, Batch(list(ids), ids)), token)
        token.release()

    def progress(
        self, sender: NodeId, *done: int, records: int = 0, window: int = 0, worked: int = 0
    ) -> None:
        told = EngineProgress(
            done=done, records=records, window=window, batch=10 * bool(window), worked=worked
        )
        self.outlet.progress(sender, told)

    def lose(self, name: NodeId) -> None:
        self.names = tuple(each for each in self.names if each != name)
        self.outlet.lost(name)


async def test_successors_take_turns() -> None:
    around = Around(Grouping.ROUND_ROBIN)
    await around.emit(range(35))
    assert around.sent == [
        (ONE, 1, [*range(10)]),
        (TWO, 2, [*range(10, 20)]),
        (ONE, 3, [*range(20, 30)]),
        (TWO, 4, [*range(30, 35)]),
    ]
    around.names = (ONE, TWO, THREE)
    around.outlet.view_changed()
    await around.emit(range(100, 130))
    assert {to for to, _, _ in around.sent[4:]} == {ONE, TWO, THREE}


async def test_an_input_is_done_with_the_last_batch_made_of_it() -> None:
    around = Around(Grouping.ROUND_ROBIN)
    await around.emit(range(20))
    around.progress(TWO, 2)
    assert (around.done, around.outlet.unfinished) == ([], 1)
    # Whoever did not get a batch cannot say that it is done, nor anyone twice.
    around.progress(TWO, 1, 2)
    assert (around.done, around.balance) == ([], {ONE: 1, TWO: 0})
    around.progress(ONE, 1)
    assert (around.done, around.balance, around.outlet.idle) == ([0], {ONE: 0, TWO: 0}, True)


async def test_who_has_no_room_is_passed_over_and_nobody_is_overrun() -> None:
    around = Around(Grouping.ROUND_ROBIN, window=20)
    emitting = asyncio.ensure_future(around.emit(range(60)))
    await asyncio.sleep(0)
    assert (len(around.sent), around.waits) == (4, 1)
    around.progress(TWO, records=10)
    await asyncio.sleep(0)
    assert [to for to, _, _ in around.sent[4:]] == [TWO]
    # A window that grows makes room as well.
    around.progress(ONE, window=30)
    await asyncio.wait_for(emitting, 30)
    assert [to for to, _, _ in around.sent[5:]] == [ONE]


async def test_who_works_on_its_last_batch_has_more_before_it_than_who_is_idle() -> None:
    around = Around(Grouping.ADAPTIVE)
    await around.emit(range(10))
    assert [to for to, _, _ in around.sent] == [ONE]
    around.progress(ONE, records=10)  # taken, so nothing waits there
    await around.emit(range(10, 20))
    around.progress(TWO, records=10, worked=10)
    await around.emit(range(20, 30))
    assert [to for to, _, _ in around.sent] == [ONE, TWO, TWO]
    around.progress(ONE, worked=10)
    await around.emit(range(30, 40))
    assert [to for to, _, _ in around.sent[3:]] == [ONE]


async def test_room_tells_how_fast_a_successor_is() -> None:
    around = Around(Grouping.ADAPTIVE, window=1000)
    await around.emit(range(20))
    around.progress(ONE, window=100)
    around.progress(TWO, window=400)
    await around.emit(range(20, 100))
    records = {
        name: sum(len(ids) for to, _, ids in around.sent if to == name) for name in (ONE, TWO)
    }
    assert records == {ONE: 20, TWO: 80}


async def test_what_came_back_is_no_work_before_whom_it_left() -> None:
    around = Around(Grouping.ADAPTIVE)
    await around.emit(range(10))
    around.outlet.returned(1)
    assert [to for to, _, _ in around.sent] == [ONE, TWO]
    await around.emit(range(10, 20))
    assert [to for to, _, _ in around.sent] == [ONE, TWO, ONE]


async def test_a_broadcast_reaches_all_and_newcomers_while_it_waits() -> None:
    around = Around(Grouping.BROADCAST, window=10)
    await around.emit(range(10))
    assert [to for to, _, _ in around.sent] == [ONE, TWO]
    emitting = asyncio.ensure_future(around.emit(range(10, 20)))
    await asyncio.sleep(0)
    around.names = (ONE, TWO, THREE)
    around.progress(ONE, records=10)
    around.progress(TWO, records=10)
    await asyncio.wait_for(emitting, 30)
    assert sorted(to for to, _, ids in around.sent if ids[0] == 10) == [ONE, TWO, THREE]
    around.progress(ONE, 1)
    assert around.done == []
    around.progress(TWO, 2)
    assert around.done == [0]


async def test_batches_of_a_lost_one_go_to_others_under_the_same_numbers() -> None:
    around = Around(Grouping.ROUND_ROBIN)
    await around.emit(range(30))
    around.progress(ONE, 1)
    around.lose(ONE)
    assert around.sent[3:] == [(TWO, 3, [*range(20, 30)])]
    assert around.outlet.again == 1
    around.progress(TWO, 2, 3)
    assert (around.done, around.outlet.idle) == ([0], True)


async def test_a_broadcast_to_a_lost_one_is_for_nobody_else() -> None:
    around = Around(Grouping.BROADCAST)
    await around.emit(range(5))
    around.progress(TWO, 2)
    around.lose(ONE)
    assert len(around.sent) == 2
    assert (around.done, around.outlet.idle) == ([0], True)


async def test_a_broadcast_that_comes_back_goes_to_the_same_one() -> None:
    around = Around(Grouping.BROADCAST)
    await around.emit(range(5))
    around.outlet.returned(1)
    assert around.sent[2:] == [(ONE, 1, [*range(5)])]
    assert around.balance == {ONE: 1, TWO: 1}


async def test_a_broadcast_that_comes_back_from_one_that_left_is_dealt_with() -> None:
    around = Around(Grouping.BROADCAST)
    idle: list[bool] = []
    around.outlet.on_idle = lambda: idle.append(around.outlet.idle)
    await around.emit(range(5))
    around.progress(TWO, 2)
    around.names = (TWO,)
    around.outlet.returned(1)
    assert (len(around.sent), around.done, idle) == (2, [0], [True])
    assert around.balance == {ONE: 0, TWO: 0}


async def test_what_comes_back_goes_to_whoever_is_there() -> None:
    around = Around(Grouping.ROUND_ROBIN)
    await around.emit(range(10))
    around.names = (TWO,)
    around.outlet.returned(1)
    around.outlet.returned(99)
    assert around.sent[1:] == [(TWO, 1, [*range(10)])]
    assert around.balance == {ONE: 0, TWO: 1}
    around.progress(TWO, 1)
    assert around.done == [0]


@pytest.mark.parametrize("grouping", [Grouping.ROUND_ROBIN, Grouping.KEY])
async def test_without_anybody_left_batches_wait_for_who_comes(grouping: Grouping) -> None:
    around = Around(grouping)
    around.names = (ONE,)
    await around.emit(range(20))
    assert len(around.sent) == 2
    around.lose(ONE)
    emitting = asyncio.ensure_future(around.emit(range(20, 30)))
    await asyncio.sleep(0)
    assert len(around.sent) == 2
    assert not emitting.done()
    around.names = (TWO,)
    around.outlet.view_changed()
    await asyncio.wait_for(emitting, 30)
    again = [each for to, _, ids in around.sent[2:] for each in ids if to == TWO]
    assert sorted(again) == list(range(30))
    around.progress(TWO, *(sequence for to, sequence, _ in around.sent if to == TWO))
    assert sorted(around.done) == [0, 20]
    assert around.outlet.idle
    around.outlet.close()


async def test_at_most_once_lets_go_at_once_and_of_the_lost_for_good() -> None:
    around = Around(Grouping.ROUND_ROBIN, keep=False)
    await around.emit(range(20))
    assert around.done == [0]
    around.outlet.progress(TWO, EngineProgress(delivered=1, records=10))
    assert around.balance == {ONE: 1, TWO: 0}
    around.lose(ONE)
    assert (len(around.sent), around.outlet.idle) == (2, True)
