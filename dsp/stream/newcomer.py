"""What a process does that runs one instance: it reads an order and carries it out.

Others wait for it. So it imports what an instance needs and nothing else: settings are told it by
who has checked them, and of transports it loads its own.
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

from dsp.config.told import told
from dsp.core.types import NodeId
from dsp.errors import DspError
from dsp.stream.instance import Instance
from dsp.stream.processes import Order, ProcessSpawner, load_pipeline
from dsp.stream.serving import serve_instance
from dsp.transport.registry import take_known
from dsp.transport.session import create_session

__all__ = ["run"]


class Unwanted(Exception):
    """Whoever ordered this process is gone, and nobody else knows of it."""


async def serve(order: Order) -> None:
    """Run one instance until it is over.

    Raises:
        Unwanted: there was nobody to tell that it is ready.
    """
    graph = load_pipeline(order.application).graph()
    config = told(order.config)
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
            take_known(url)
    return sys.stdin.buffer.read()


def _collect_seldom() -> None:
    """Have the collector of garbage look at what comes from now on, and not often."""
    gc.freeze()
    # Records come and go by the thousand; looking through all of them for cycles every 700 costs
    # a third of the time of a cheap body.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


def run() -> None:
    """Read an order and carry it out."""
    logging.basicConfig(
        level=logging.WARNING,
        format=f"%(asctime)s %(levelname)s [{os.getpid()}] %(name)s: %(message)s",
    )
    sys.path.insert(0, os.getcwd())
    if not (order_json := _order()):
        return
    _collect_seldom()
    order = Order.from_json(order_json)
    try:
        asyncio.run(serve(order))
    except Unwanted:
        sys.exit(f"{order.place.member.id} is not needed any more: who ordered it is gone")
