"""As much of HTTP/1.1 as the gateway needs, on asyncio streams: one request for each connection.

PUT /pipelines/NAME with a kind starts one, POST hands readings over, GET watches, DELETE stops.
"""

import asyncio
import json
from typing import Any

from examples.gateway.service import Service

__all__ = ["serve"]

MOST_BODY = 1 << 20
PATIENCE = 10.0


async def serve(service: Service, host: str, port: int) -> asyncio.Server:
    """Listen; give the server, which the caller closes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                method, path, body = await _request(reader)
            status, answer = await _answer(service, method, path, body)
        except (ValueError, asyncio.IncompleteReadError, TimeoutError) as error:
            status, answer = "400 Bad Request", {"error": str(error)}
        data = json.dumps(answer).encode()
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(data)
        try:
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass  # whoever asked is gone

    return await asyncio.start_server(handle, host, port)


async def _request(reader: asyncio.StreamReader) -> tuple[str, str, Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, _ = head[0].split(" ")
    fields = dict(line.lower().split(":", 1) for line in head[1:] if ":" in line)
    length = int(fields.get("content-length", "0"))
    if length > MOST_BODY:
        raise ValueError(f"a body of {length} bytes, {MOST_BODY} at most")
    return method, path, json.loads(await reader.readexactly(length) or b"null")


async def _answer(service: Service, method: str, path: str, body: Any) -> tuple[str, Any]:  # noqa: ANN401
    _, root, name = [*path.split("/"), "", ""][:3]
    if root != "pipelines" or not name:
        return "404 Not Found", {"error": f"no {path}"}
    try:
        match method:
            case "PUT":
                await service.start(name, body["kind"])
                return "201 Created", {}
            case "POST":
                await service.put(name, body)
                return "202 Accepted", {"taken": len(body)}
            case "GET":
                return "200 OK", service.figures(name)
            case "DELETE":
                return "200 OK", await service.stop(name)
            case _:
                return "405 Method Not Allowed", {"error": method}
    except (KeyError, TypeError) as error:
        return "404 Not Found", {"error": f"no {error}"}
