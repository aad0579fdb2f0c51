"""Pipelines in a world: every instance a host of its own, over simulated links."""

import asyncio
from typing import TYPE_CHECKING

from dsp.core.types import Peer
from dsp.stream.graph import Graph
from dsp.stream.serving import serve_instance
from dsp.stream.spawners import SpawnRequest
from dsp.testing.host import Host
from dsp.testing.world import World
from dsp.transport.session import create_session

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.stream.deciding import Deciders
    from dsp.stream.host import Host as StreamHost
    from dsp.stream.instance import Instance

__all__ = ["WorldSpawner"]


class WorldSpawner:
    """Creates instances on new hosts of a world.

    Args:
        world: where they live.
        graph: the application.
        config: settings; each host gets an endpoint of its own.
        deciders: makes deciders, instead of those that the configuration asks for.

    Attributes:
        instances: every instance that was created, by name, for oracles.
    """

    def __init__(
        self,
        world: World,
        graph: Graph,
        config: "Config",
        deciders: "Deciders | None" = None,
    ) -> None:
        self.instances: dict[str, Instance] = {}
        self._world = world
        self._graph = graph
        self._config = config
        self._deciders = deciders

    async def spawn(self, host: "StreamHost", request: SpawnRequest) -> Peer:
        ready: asyncio.Future[Peer] = asyncio.get_running_loop().create_future()

        async def main(here: Host) -> None:
            transport = self._config.transport.model_copy(update={"url": here.url})
            config = self._config.model_copy(update={"transport": transport})

            def created(instance: "Instance") -> None:
                self.instances[instance.name] = instance
                ready.set_result(endpoint.contact)

            async with create_session(transport, here.name) as endpoint:
                await serve_instance(
                    endpoint,
                    self._graph,
                    config,
                    self,
                    request.place,
                    parent=request.parent,
                    watcher=request.watcher,
                    random=here.random,
                    ready=created,
                    deciders=self._deciders,
                )

        self._world.add_host(request.place.member.id, main)
        return await ready

    async def close(self) -> None:
        """Nothing: hosts end when the stream does."""
