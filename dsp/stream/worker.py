"""The main program of a process that runs one instance: ``python -m dsp.stream.worker``.

It reads an order from standard input, tells its endpoint on standard output, and ends when its
instance does.
"""

import asyncio
import logging
import os
import signal
import sys
from random import Random

import orjson

from dsp.config import Config
from dsp.core.types import NodeId
from dsp.stream.deciding import decider_for
from dsp.stream.host import Host
from dsp.stream.processes import Order, ProcessSpawner, load_pipeline
from dsp.transport.session import create_session

__all__ = ["main"]


async def serve(order: Order) -> None:
    """Run one instance until it is over."""
    graph = load_pipeline(order.application).graph()
    config = Config.model_validate(order.config, strict=False)
    name = order.place.member.id
    async with create_session(config.transport, NodeId(name)) as transport:
        host = Host(
            transport,
            graph,
            config,
            ProcessSpawner(order.application, config),
            make_decider=decider_for(config, graph),
            random=Random(os.urandom(16)),
            watcher=order.watcher,
        )
        host.start()
        instance = host.create(order.place, order.parent)
        contact = transport.contact
        sys.stdout.buffer.write(orjson.dumps([contact.id, contact.address]) + b"\n")
        sys.stdout.flush()
        # Nobody reads any more, and whoever did may be gone: nothing may be written there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, instance.leave)
        try:
            await host.run()
        finally:
            await host.close()


def main() -> None:
    """Read an order and carry it out."""
    logging.basicConfig(
        level=logging.WARNING,
        format=f"%(asctime)s %(levelname)s [{os.getpid()}] %(name)s: %(message)s",
    )
    sys.path.insert(0, os.getcwd())
    asyncio.run(serve(Order.from_json(sys.stdin.buffer.read())))


if __name__ == "__main__":
    main()
