"""A host of a simulated world: one process with one endpoint, that can crash and come back."""

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from random import Random
from typing import TYPE_CHECKING, Any

from dsp.core.randomness import derive_random
from dsp.core.types import NodeId, Peer

if TYPE_CHECKING:
    import asyncio

    from dsp.testing.world import World

__all__ = ["Host", "HostMain"]

HostMain = Callable[["Host"], Coroutine[Any, Any, object]]
"""What a host runs. Called anew at each start, so it holds no state of an earlier life."""

CURRENT_HOST: ContextVar["Life | None"] = ContextVar("dsp_current_host", default=None)


class Life:
    """One incarnation of a host: the tasks that were started in it, directly or not."""

    def __init__(self, host: "Host", incarnation: int) -> None:
        self.host = host
        self.incarnation = incarnation
        self.ended = False
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.main: asyncio.Task[object] | None = None

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        """Count a task as running in this life."""
        self.tasks[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.pop(task, None)


class Host:
    """A simulated process.

    Attributes:
        name: its name, also the id of its endpoint.
        incarnation: how often it was started, from 1.
        result: what its main returned, once ``finished``.
    """

    def __init__(self, world: "World", name: str, main: HostMain) -> None:
        self.world = world
        self.name = NodeId(name)
        self.incarnation = 0
        self.result: object = None
        self._main = main
        self._life: Life | None = None

    @property
    def url(self) -> str:
        """The transport URL of this host's endpoint."""
        return f"sim://{self.world.network.name}/{self.name}"

    @property
    def peer(self) -> Peer:
        """How others address this host's endpoint."""
        return Peer(self.name, self.url)

    @property
    def random(self) -> Random:
        """Seeded randomness for this incarnation; each call starts the same stream."""
        return derive_random(self.world.seed, "host", self.name, self.incarnation)

    @property
    def running(self) -> bool:
        """Whether it was started and has neither finished nor crashed."""
        return self._life is not None and not self._life.ended

    @property
    def finished(self) -> bool:
        """Whether its main returned."""
        return self._life is not None and self._life.ended and self._life.main is not None

    def __repr__(self) -> str:
        state = "running" if self.running else "finished" if self.finished else "down"
        return f"<Host {self.name} {state}, incarnation {self.incarnation}>"
