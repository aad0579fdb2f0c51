"""The example gateway: its pipelines in a world, its HTTP server on a real loop."""

import asyncio
import json
from typing import Any

import pytest

from dsp.stream.app import run
from dsp.testing import Host, World
from examples.gateway.pipelines import Readings, hot_rooms
from examples.gateway.server import serve
from examples.gateway.service import Service

READINGS = [{"room": n, "fahrenheit": 60 + n} for n in range(60)]


def test_hot_rooms_in_a_world() -> None:
    with World(7) as world:
        ends: list[Readings] = []

        async def main(host: Host) -> None:
            ends.append(Readings(hot_rooms))
            async with run(ends[0].pipeline, seed=1) as app:
                for reading in READINGS:
                    await ends[0].source.put(reading)
                ends[0].source.end()
                await app.join()

        host = world.add_host("gateway", main)
        world.run_until(lambda: host.finished, limit=60)
    rooms = [alarm["room"] for alarm in ends[0].alarms.values]
    assert rooms == list(range(27, 60))  # 86 degrees Fahrenheit are 30 Celsius


async def ask(port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: gateway\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    top, _, rest = answer.partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(rest)


@pytest.mark.asyncio
async def test_the_server_starts_watches_and_stops_pipelines() -> None:
    service = Service()
    server = await serve(service, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        assert (await ask(port, "PUT", "/pipelines/a", {"kind": "hot-rooms"}))[0] == 201
        assert (await ask(port, "PUT", "/pipelines/b", {"kind": "hot-rooms"}))[0] == 201
        assert (await ask(port, "PUT", "/pipelines/a", {"kind": "hot-rooms"}))[0] == 400
        assert (await ask(port, "PUT", "/pipelines/c", {"kind": "unheard-of"}))[0] == 404
        assert (await ask(port, "POST", "/pipelines/a", READINGS)) == (202, {"taken": 60})
        status, figures = await ask(port, "GET", "/pipelines/a")
        assert status == 200
        assert figures["running"]
        status, last = await ask(port, "DELETE", "/pipelines/a")
        assert (status, last["in"], last["out"]) == (200, 60, 33)
        assert (await ask(port, "GET", "/pipelines/a"))[0] == 404
        assert (await ask(port, "GET", "/pipelines/b"))[1]["running"]
        assert (await ask(port, "PATCH", "/pipelines/b"))[0] == 405
        assert (await ask(port, "GET", "/elsewhere"))[0] == 404
    finally:
        server.close()
        await server.wait_closed()
        await service.close()
