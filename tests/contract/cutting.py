"""Connections of this process that a test cuts, whichever library holds them."""

import asyncio
import os
import socket
from abc import abstractmethod
from collections.abc import Iterator

from dsp.core.types import Lane
from dsp.testing.contract.harness import check, numbers
from dsp.testing.contract.streams import Stream
from dsp.transport.base import Transport
from tests.contract.sessions import Sessions

# Frames that flow between two cuts; another number each time, so that cuts come at any point.
BETWEEN = (1, 7, 40, 150)


class SessionCuts(Sessions):
    """A stream whose connections are cut again and again; mixed in before a harness.

    Both ends are in this process, and so are all the sockets that they dialled.

    Attributes:
        cuts: how often.
    """

    cuts: int = 6

    @abstractmethod
    def dialled(self, a: Transport, b: Transport) -> list[int]:
        """Give the ports to which the two ends are connected."""

    @check
    async def test_nothing_is_lost_or_doubled_when_connections_are_cut(self) -> None:
        """Every frame arrives once and in order, and none is given up."""
        stream, got = Stream(), list[int]()
        async with (
            self.endpoints("a", "b", **self.small_queues) as (a, b),
            asyncio.TaskGroup() as group,
        ):
            group.create_task(stream.run(a, b.contact))
            for round_ in range(self.cuts):
                # After a cut, more than what may have been on its way comes by new connections.
                await self._read(b, got, 50 + BETWEEN[round_ % len(BETWEEN)])
                await self.eventually(lambda: cut(self.dialled(a, b)) > 0, "connections to cut")
            ending = asyncio.create_task(stream.end())
            while not ending.done():
                await self._read(b, got, 1)
            await self._read(b, got, stream.accepted - len(got))
            assert await self.quiet(b, Lane.DATA) == []
            assert a.statistics().lanes[Lane.DATA].undelivered_frames == 0
        assert got == list(range(stream.accepted))

    async def _read(self, endpoint: Transport, got: list[int], count: int) -> None:
        got += numbers(await self.payloads(endpoint, Lane.DATA, count))


def cut(ports: list[int]) -> int:
    """End every connection to these ports, as a broken network does; give how many there were."""
    count = 0
    for end in _sockets():
        with end:
            try:
                if end.family != socket.AF_UNIX and end.getpeername()[1] in ports:
                    end.shutdown(socket.SHUT_RDWR)
                    count += 1
            except OSError:
                continue  # it listens, or is over already
    return count


def _sockets() -> Iterator[socket.socket]:
    """Give the sockets of this process, those of C libraries too, under their own descriptors."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                yield socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # closed meanwhile, by a thread of a library
