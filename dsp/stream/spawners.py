"""Where new instances come from: ``createNode()`` of the papers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dsp.core.types import Peer
from dsp.scaling.place import Place

if TYPE_CHECKING:
    from dsp.stream.host import Host

__all__ = ["SpawnRequest", "Spawner", "LocalSpawner"]


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """An instance that is wanted.

    Attributes:
        place: where it is in the graph.
        parent: the process that asks.
        watcher: who is told how things go.
    """

    place: Place
    parent: Peer
    watcher: Peer | None


class Spawner(Protocol):
    """Creates instances."""

    async def spawn(self, host: "Host", request: SpawnRequest) -> Peer:
        """Create an instance that is idle until its start; give the endpoint of its process.

        Raises:
            Exception: it could not be created; nothing of it is left.
        """
        ...

    async def close(self) -> None:
        """Let go of what belongs to this process. Instances live on."""
        ...


class LocalSpawner:
    """Creates instances in the process that asks."""

    async def spawn(self, host: "Host", request: SpawnRequest) -> Peer:
        host.create(request.place, request.parent)
        return host.peer

    async def close(self) -> None:
        pass
