"""A member in a process of its own: ``python -m tests.mutex.visitor``, with orders on standard
input.

It says where it listens, is told who takes part, and then visits. Each number is shown to the
resource, which is the process that started it: before an entry begins, and with two effects
inside.
"""

import asyncio
import sys
from itertools import count
from typing import Any

import orjson

from dsp.config import SessionConfig, TransportConfig
from dsp.core.types import NodeId, Peer
from dsp.errors import LeaseLost
from dsp.mutex.service import Entry, open_mutex
from dsp.transport.session import create_session


class Resource:
    """The resource, as a visitor sees it: over its standard streams."""

    def __init__(self) -> None:
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._ids = count()
        self.orders: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    def tell(self, report: dict[str, Any]) -> None:
        sys.stdout.buffer.write(orjson.dumps(report) + b"\n")
        sys.stdout.buffer.flush()

    async def read(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            order = orjson.loads(line)
            if "answer" in order:
                self._answers.pop(order["answer"]).set_result(order)
            else:
                self.orders.put_nowait(order)
        self.orders.put_nowait({"end": True})

    async def show(self, what: str, number: int) -> None:
        request = next(self._ids)
        answer = self._answers[request] = asyncio.get_running_loop().create_future()
        self.tell({"kind": what, "number": number, "id": request})
        order = await answer
        if order["refused"]:
            raise LeaseLost(number, order["highest"])


async def main(name: str, url: str, suspect_after: float) -> None:
    resource = Resource()
    session = SessionConfig(
        heartbeat_every=suspect_after / 8, suspect_after=suspect_after, dead_after=4 * suspect_after
    )
    config = TransportConfig(url=url, session=session)
    async with create_session(config, NodeId(name)) as transport, asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(resource.read())
        resource.tell({"kind": "ready", "address": transport.contact.address})
        order = await resource.orders.get()
        groups = [[Peer(NodeId(n), a) for n, a in group] for group in order["groups"]]

        async def present(entry: Entry) -> None:
            await resource.show("present", entry.number)

        async with open_mutex(
            transport, (groups[0], groups[1]), present=present, patience=suspect_after / 4
        ) as mutex:
            done = 0
            while done < order["entries"]:
                try:
                    async with mutex.enter() as entry:
                        await resource.show("effect", entry.number)
                        await resource.show("effect", entry.number)
                except LeaseLost:
                    continue  # as if it had not been inside
                done += 1
                resource.tell({"kind": "visited", "count": done})
            await resource.orders.get()  # others still need it until all are done
        reading.cancel()
    resource.tell({"kind": "closed"})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
