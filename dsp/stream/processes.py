"""Instances as processes of this machine, started anew from an importable reference.

No fork and no pickle: a child gets the name of the application and its settings as JSON, imports
the application, and opens an endpoint of its own. It lives on when the process that started it is
gone, and creates siblings in the same way.
"""

import asyncio
import importlib
import logging
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from dsp.config.told import tell
from dsp.core.types import NodeId, Peer
from dsp.errors import ConfigError, DspError
from dsp.scaling.events import Member
from dsp.scaling.place import Place
from dsp.stream.pipeline import Pipeline
from dsp.stream.spawners import SpawnRequest

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.stream.host import Host

__all__ = ["ProcessSpawner", "Order", "load_pipeline", "endpoint_url"]

logger = logging.getLogger(__name__)

START_PATIENCE = 60.0


def load_pipeline(reference: str) -> Pipeline:
    """Import the pipeline that ``package.module:name`` names: a ``Pipeline``, or what makes one.

    Raises:
        ConfigError: there is no such thing.
    """
    module_name, colon, name = reference.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{reference!r} names no pipeline: write package.module:name")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigError(f"{reference}: {module_name} cannot be imported: {error}") from error
    try:
        found = getattr(module, name)
    except AttributeError:
        raise ConfigError(f"{reference}: {module_name} has no {name}") from None
    pipeline = found() if callable(found) and not isinstance(found, Pipeline) else found
    if not isinstance(pipeline, Pipeline):
        raise ConfigError(f"{reference} is {type(pipeline).__name__}, no Pipeline")
    return pipeline


def endpoint_url(url: str, name: str) -> str:
    """Give the URL of one more endpoint like another: its own port, or its own name."""
    parts = urlsplit(url)
    match parts.scheme:
        case "zmq" | "zmq+tcp":
            return f"zmq+tcp://{_host(parts.netloc)}:0?data=0"
        case "zmq+ipc":
            return f"{url}.{name}"
        case "grpc" | "grpcs":
            return f"{parts.scheme}://{_host(parts.netloc)}:0"
        case _:
            return url


def _host(netloc: str) -> str:
    host = netloc.rpartition(":")[0] or netloc
    # A wildcard is no address that others on this machine could be told.
    return "127.0.0.1" if host in ("0.0.0.0", "*", "[::]") else host


@dataclass(frozen=True, slots=True)
class Order:
    """What a new process is told: as JSON on its standard input."""

    application: str
    config: dict[str, Any]
    place: Place
    parent: Peer
    watcher: Peer | None

    def to_json(self) -> bytes:
        """Give the bytes."""
        return orjson.dumps(
            {
                "application": self.application,
                "config": self.config,
                "operator": self.place.member.operator,
                "generation": self.place.member.generation,
                "name": self.place.member.id,
                "upstream": self.place.upstream,
                "downstream": self.place.downstream,
                "keeper": self.place.keeper,
                "parent_instance": self.place.parent,
                "parent": [self.parent.id, self.parent.address],
                "watcher": [self.watcher.id, self.watcher.address] if self.watcher else None,
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> "Order":
        """Read what ``to_json`` gave."""
        told = orjson.loads(data)
        member = Member(told["operator"], told["generation"], NodeId(told["name"]))
        parent = told["parent_instance"]
        place = Place(
            member,
            tuple(told["upstream"]),
            tuple(told["downstream"]),
            told["keeper"],
            NodeId(parent) if parent is not None else None,
        )
        watcher = told["watcher"]
        return cls(
            told["application"],
            told["config"],
            place,
            Peer(NodeId(told["parent"][0]), told["parent"][1]),
            Peer(NodeId(watcher[0]), watcher[1]) if watcher else None,
        )


class ProcessSpawner:
    """Starts a process for each instance.

    Args:
        application: reference to the pipeline, as ``package.module:name``.
        config: settings, which the process gets with an endpoint of its own.
        spares: processes to keep in reserve, started and waiting for an order.
    """

    def __init__(self, application: str, config: "Config", *, spares: int = 0) -> None:
        self._application = application
        self._config = config
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._wanted = spares
        self._spares: deque[asyncio.subprocess.Process] = deque()
        self._preparing: asyncio.Task[None] | None = None

    @property
    def children(self) -> list[int]:
        """Ids of the processes that were started here and have not been seen to end."""
        return [pid for pid, child in self._children.items() if child.returncode is None]

    async def spawn(self, host: "Host", request: SpawnRequest) -> Peer:
        place = request.place
        url = endpoint_url(self._config.transport.url, place.member.id)
        transport = self._config.transport.model_copy(update={"url": url})
        settings = tell(self._config.model_copy(update={"transport": transport}))
        order = Order(self._application, settings, place, request.parent, request.watcher)
        child = await self._take()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(order.to_json())
            child.stdin.close()
            async with asyncio.timeout(START_PATIENCE):
                line = await child.stdout.readline()
            if not line:
                code = await child.wait()
                raise DspError(f"the process of {place.member.id} ended at once, with {code}")
            node, address = orjson.loads(line)
        except BaseException:
            if child.returncode is None:
                child.kill()
            raise
        self.prepare()
        return Peer(NodeId(node), address)

    def prepare(self) -> None:
        """See that there are as many processes in reserve as are wanted."""
        if len(self._spares) < self._wanted and self._preparing is None:
            self._preparing = asyncio.get_running_loop().create_task(self._prepare())
            self._preparing.add_done_callback(self._prepared)

    async def _prepare(self) -> None:
        while len(self._spares) < self._wanted:
            self._spares.append(await self._start())

    def _prepared(self, task: "asyncio.Task[None]") -> None:
        self._preparing = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("no process in reserve: %r", error)

    async def _take(self) -> asyncio.subprocess.Process:
        """Give a process that waits for an order."""
        while self._spares:
            child = self._spares.popleft()
            if child.returncode is None:
                return child
        return await self._start()

    async def _start(self) -> asyncio.subprocess.Process:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dsp.stream.worker",
            self._application,
            self._config.transport.url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # It must not get the signals of our terminal: it ends when the stream does.
            start_new_session=True,
        )
        self._children[child.pid] = child
        return child

    async def close(self) -> None:
        """End the processes in reserve; the others end when the stream does."""
        if self._preparing is not None:
            self._preparing.cancel()
            await asyncio.wait([self._preparing])
        while self._spares:
            child = self._spares.popleft()
            assert child.stdin is not None
            child.stdin.close()  # no order will come

    async def wait(self, patience: float) -> list[int]:
        """Wait for the processes that were started here; give those that did not end."""
        waiting = [child for child in self._children.values() if child.returncode is None]
        if waiting:
            tasks = [asyncio.ensure_future(child.wait()) for child in waiting]
            _, left = await asyncio.wait(tasks, timeout=patience)
            for task in left:
                task.cancel()
        return self.children

    def kill(self) -> None:
        """Kill the processes that were started here."""
        for child in self._children.values():
            if child.returncode is None:
                child.kill()
