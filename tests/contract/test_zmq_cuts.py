"""Links of the mesh that are cut in mid-stream: the sessions over them lose and double nothing."""

import asyncio

import pytest

from dsp.core.types import Lane
from dsp.testing.contract.harness import check, numbers
from dsp.testing.contract.streams import Stream
from dsp.transport.base import Transport
from dsp.transport.zmq.address import Address
from tests.contract.cutting import BETWEEN, cut
from tests.contract.sessions import Sessions
from tests.contract.zmq_contract import CurveHarness, ZmqHarness


class Cuts(Sessions, ZmqHarness):
    """Both ends are in this process, and so are all the sockets between them.

    Attributes:
        cuts: how often.
    """

    cuts: int

    @check
    async def test_nothing_is_lost_or_doubled(self) -> None:
        """DATA is cut, or CONTROL with the acknowledgements, or all at once."""
        stream, got = Stream(), list[int]()
        async with (
            self.endpoints("a", "b", **self.small_queues) as (a, b),
            asyncio.TaskGroup() as group,
        ):
            group.create_task(stream.run(a, b.contact))
            await self._read(b, got, 1)
            expected = {"a": 0, "b": 0}
            for round_ in range(self.cuts):
                await self._read(b, got, BETWEEN[round_ % len(BETWEEN)])
                # a dials b on both lanes; b dials a on CONTROL alone, to acknowledge.
                data, control = round_ % 3 != 1, round_ % 3 != 0
                ports = [_port(b, Lane.DATA)] * data
                ports += [_port(b, Lane.CONTROL), _port(a, Lane.CONTROL)] * control
                assert cut(ports) > 0
                expected["a"] += data + control
                expected["b"] += control
                await self.eventually(
                    lambda: {"a": _reconnects(a, b), "b": _reconnects(b, a)} == expected,
                    f"{expected} reconnects",
                )
            ending = asyncio.create_task(stream.end())
            while not ending.done():
                await self._read(b, got, 1)
            await self._read(b, got, stream.accepted - len(got))
            assert await self.quiet(b, Lane.DATA) == []
            assert a.statistics().lanes[Lane.DATA].undelivered_frames == 0
            assert a.statistics().faults["lost connection"] == expected["a"]
        assert got == list(range(stream.accepted))

    async def _read(self, endpoint: Transport, got: list[int], count: int) -> None:
        got += numbers(await self.payloads(endpoint, Lane.DATA, count))


class TestCuts(Cuts):
    cuts = 10


class TestCutsWithKeys(Cuts, CurveHarness):
    cuts = 6


@pytest.mark.soak
class TestManyCuts(Cuts):
    cuts = 100


def _port(endpoint: Transport, lane: Lane) -> int:
    return Address.parse(endpoint.contact.address).ports[lane is Lane.DATA]


def _reconnects(endpoint: Transport, to: Transport) -> int:
    return endpoint.health().reconnects.get(to.contact.id, 0)
