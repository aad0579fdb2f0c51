"""A process that runs one instance, whatever kind of process it is."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from dsp.core.types import Peer
from dsp.scaling.place import Place
from dsp.stream.deciding import Deciders, decider_for
from dsp.stream.graph import Graph
from dsp.stream.host import Host
from dsp.stream.instance import Instance
from dsp.stream.spawners import Spawner
from dsp.transport.base import Transport

if TYPE_CHECKING:
    from dsp.config import Config

__all__ = ["serve_instance"]


async def serve_instance(
    transport: Transport,
    graph: Graph,
    config: "Config",
    spawner: Spawner,
    place: Place,
    *,
    parent: Peer,
    watcher: Peer | None,
    random: Random,
    ready: Callable[[Instance], None],
    deciders: Deciders | None = None,
) -> None:
    """Run one instance until it is over.

    Args:
        transport: a started session.
        graph: the application.
        config: settings.
        spawner: creates siblings.
        place: where the instance is in the graph.
        parent: the process that asked for it.
        watcher: who is told how things go.
        random: decides names and moments.
        ready: called when the instance can be reached.
        deciders: makes deciders, instead of those that the configuration asks for.
    """
    host = Host(
        transport,
        graph,
        config,
        spawner,
        make_decider=deciders or decider_for(config, graph),
        random=random,
        watcher=watcher,
    )
    host.start()
    try:
        ready(host.create(place, parent))
        await host.run()
    finally:
        await host.close()
