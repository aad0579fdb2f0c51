"""Run the gateway: ``python -m examples.gateway [PORT]``."""

import asyncio
import sys
from contextlib import suppress

from examples.gateway.server import serve
from examples.gateway.service import Service


async def main(port: int) -> None:
    """Serve until interrupted."""
    service = Service()
    server = await serve(service, "127.0.0.1", port)
    host, bound = server.sockets[0].getsockname()[:2]
    print(f"gateway at http://{host}:{bound}/pipelines/NAME", flush=True)
    try:
        await server.serve_forever()
    finally:
        await service.close()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8080))
