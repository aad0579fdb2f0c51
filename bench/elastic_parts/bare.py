"""An idle process with a ZeroMQ socket and a loop, and nothing of dsp: what an instance is beside.

It says when it waits; it ends when its standard input does.
"""

import asyncio
import sys

import zmq
import zmq.asyncio


async def main() -> None:
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.ROUTER)
    socket.bind_to_random_port("tcp://127.0.0.1")
    receiving = asyncio.ensure_future(socket.recv_multipart())
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    receiving.cancel()
    socket.close(0)
    context.term()


if __name__ == "__main__":
    asyncio.run(main())
