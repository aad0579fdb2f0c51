"""A proxy between two peers whose connections a test cuts."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from dsp.core.types import Peer


@asynccontextmanager
async def cuttable_proxy(to: Peer) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """Stand between two peers; give the address, and a function that cuts every connection."""
    scheme, _, where = to.address.partition("://")
    host, _, port = where.rpartition(":")
    loop = asyncio.get_running_loop()
    sockets: set[socket.socket] = set()
    async with asyncio.TaskGroup() as group:

        async def copy(source: socket.socket, target: socket.socket) -> None:
            try:
                while data := await loop.sock_recv(source, 65536):
                    await loop.sock_sendall(target, data)
            except OSError:
                pass  # cut
            finally:
                for end in (source, target):
                    _shut(end)

        async def link(near: socket.socket) -> None:
            far = socket.socket()
            far.setblocking(False)
            with near, far:
                await loop.sock_connect(far, (host, int(port)))
                sockets.update((near, far))
                both: list[Coroutine[Any, Any, None]] = [copy(near, far), copy(far, near)]
                await asyncio.gather(*both)
                sockets.difference_update((near, far))

        async def accept(listener: socket.socket) -> None:
            while True:
                near, _ = await loop.sock_accept(listener)
                group.create_task(link(near))

        def cut() -> None:
            for end in sockets:
                _shut(end)

        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            accepting = group.create_task(accept(listener))
            try:
                yield f"{scheme}://127.0.0.1:{listener.getsockname()[1]}", cut
            finally:
                accepting.cancel()
                cut()


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # shut already
