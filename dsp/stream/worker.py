"""The main program of a process that runs one instance.

``python -m dsp.stream.worker APPLICATION URL`` imports what these name, reads an order from
standard input, tells its endpoint on standard output, and ends when its instance does. Without an
order it just ends.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from contextlib import suppress
from random import Random

import orjson

from dsp.config import Config
from dsp.core.types import NodeId
from dsp.errors import DspError
from dsp.stream.instance import Instance
from dsp.stream.processes import Order, ProcessSpawner, load_pipeline
from dsp.stream.serving import serve_instance
from dsp.transport.registry import transport_class
from dsp.transport.session import create_session

__all__ = ["main"]


class Unwanted(Exception):
    """Whoever ordered this process is gone, and nobody else knows of it."""


async def serve(order: Order) -> None:
    """Run one instance until it is over.

    Raises:
        Unwanted: there was nobody to tell that it is ready.
    """
    graph = load_pipeline(order.application).graph()
    config = Config.model_validate(order.config, strict=False)
    node, operator = NodeId(order.place.member.id), order.place.member.operator

    def ready(instance: Instance) -> None:
        contact = transport.contact
        try:
            # Not through the buffer: what cannot be written would be tried again at exit.
            os.write(sys.stdout.fileno(), orjson.dumps([contact.id, contact.address]) + b"\n")
        except BrokenPipeError as error:
            raise Unwanted from error
        # Nobody reads any more, and whoever did may be gone: nothing may be written there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, instance.leave)
        spawner.prepare()

    spares = config.stream.spare_processes if graph.operators[operator].elastic else 0
    spawner = ProcessSpawner(order.application, config, spares=spares)
    try:
        async with create_session(config.transport, node) as transport:
            await serve_instance(
                transport,
                graph,
                config,
                spawner,
                order.place,
                parent=order.parent,
                watcher=order.watcher,
                random=Random(os.urandom(16)),
                ready=ready,
            )
    finally:
        await spawner.close()


def _order() -> bytes:
    """Import what will be needed, and wait for an order."""
    if len(sys.argv) == 3:
        _, application, url = sys.argv
        # What cannot be imported is told of when there is an order.
        with suppress(DspError):
            load_pipeline(application)
            transport_class(url)
    return sys.stdin.buffer.read()


def main() -> None:
    """Read an order and carry it out."""
    logging.basicConfig(
        level=logging.WARNING,
        format=f"%(asctime)s %(levelname)s [{os.getpid()}] %(name)s: %(message)s",
    )
    sys.path.insert(0, os.getcwd())
    if not (told := _order()):
        return
    # Records come and go by the thousand; looking through all of them for cycles every 700 costs
    # a third of the time of a cheap body.
    gc.set_threshold(50_000, 20, 20)
    order = Order.from_json(told)
    try:
        asyncio.run(serve(order))
    except Unwanted:
        sys.exit(f"{order.place.member.id} is not needed any more: who ordered it is gone")


if __name__ == "__main__":
    main()
