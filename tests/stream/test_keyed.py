"""Records that are gathered by key: none stays behind when instances come and go."""

import asyncio

from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.codecs import JsonCodec
from dsp.stream.fitting import fit
from dsp.stream.graph import Edge, Grouping
from dsp.stream.outlet import Outlet
from dsp.stream.parcels import Limits, Made, Sent
from dsp.stream.tokens import Token

EDGE = Edge("a", "b", Grouping.KEY, JsonCodec(), key=lambda value: value)


class Around:
    """An instance that notes what its outlet does."""

    def __init__(self) -> None:
        self.names: tuple[NodeId, ...] = (NodeId("b.1"), NodeId("b.2"))
        self.sent: list[Sent] = []

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        return self.names

    def assigned(self, to: NodeId, batches: int) -> None:
        assert to in self.names

    def confirmed(self, by: NodeId, batches: int) -> None:
        pass

    def transmit(self, sent: Sent) -> None:
        self.sent.append(sent)

    def is_local(self, name: NodeId) -> bool:
        return False

    def blocked(self, waiting: bool) -> None:
        pass

    def unfit(self, failures: object, born: float, token: Token) -> None:
        raise AssertionError(failures)


async def gather_and_change(names: tuple[str, ...]) -> None:
    around = Around()
    outlet = Outlet(around, [(EDGE, Limits(1000, 1000, 10**6, 100, 0.001))], keep=True)
    done: list[bool] = []
    token = Token(lambda: done.append(True))
    await outlet.emit(Made(EDGE, Batch(list(range(20)), range(20))), token)
    token.release()
    around.names = tuple(map(NodeId, names))
    outlet.view_changed()
    async with asyncio.timeout(10):
        while sum(len(sent.ids) for sent in around.sent) < 20:
            await asyncio.sleep(0.001)
    assert sorted(each for sent in around.sent for each in sent.ids) == list(range(20))
    assert {sent.to for sent in around.sent} <= {*around.names}
    assert not done
    outlet.close()


def test_what_is_gathered_leaves_though_its_owner_went() -> None:
    asyncio.run(gather_and_change(("b.2",)))


def test_what_is_gathered_leaves_though_owners_came() -> None:
    asyncio.run(gather_and_change(("b.1", "b.2", "b.3")))


def test_what_a_codec_cannot_hold_is_told_apart() -> None:
    good, failures = fit(EDGE, Batch([1, object(), 3], [10, 11, 12]))
    assert (good.values, list(good.ids)) == ([1, 3], [10, 12])
    assert [failure.id for failure in failures] == [11]
    assert "a -> b" in failures[0].error
