"""Links of the mesh that are cut in mid-stream: the sessions over them lose and double nothing."""

import asyncio
import os
import socket
from collections.abc import Iterator

import pytest

from dsp.core.types import Lane
from dsp.testing.contract.harness import check, numbers
from dsp.testing.contract.streams import Stream
from dsp.transport.base import Transport
from dsp.transport.zmq.address import Address
from tests.contract.sessions import Sessions
from tests.contract.zmq_contract import CurveHarness, ZmqHarness

# Frames that flow between two cuts; another number each time, so that cuts come at any point.
BETWEEN = (1, 7, 40, 150)


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
                assert _cut(ports) > 0
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


def _cut(ports: list[int]) -> int:
    """End every connection to these ports, as a broken network does; give how many there were."""
    count = 0
    for end in _sockets():
        with end:
            try:
                if end.family == socket.AF_INET and end.getpeername()[1] in ports:
                    end.shutdown(socket.SHUT_RDWR)
                    count += 1
            except OSError:
                continue  # it listens, or is over already
    return count


def _sockets() -> Iterator[socket.socket]:
    """Give the sockets of this process, libzmq's among them, under descriptors of their own."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                yield socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # closed meanwhile, by a thread of libzmq's
