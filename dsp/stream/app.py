"""Running a pipeline inside somebody else's program.

``run`` touches nothing that belongs to the program: no event-loop policy, no signal handler, no
logging configuration. It can be used any number of times in one process, at the same time too.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from dsp.core.randomness import derive_random
from dsp.core.types import NodeId, Peer
from dsp.errors import ClosedError, ConfigError, DspError
from dsp.scaling.events import Member, Start
from dsp.scaling.place import Place
from dsp.stream.alone import Alone
from dsp.stream.deciding import Deciders, decider_for
from dsp.stream.ends import check_ends
from dsp.stream.exclusion import core_message, excluding_edges
from dsp.stream.graph import Graph, Kind, Operator
from dsp.stream.host import Host
from dsp.stream.pipeline import Pipeline
from dsp.stream.processes import ProcessSpawner, load_pipeline
from dsp.stream.spawners import LocalSpawner, Spawner, SpawnRequest
from dsp.stream.summary import Summary
from dsp.transport.session import create_session

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.transport.base import Transport

__all__ = ["App", "run"]

logger = logging.getLogger(__name__)

# Seconds for which the last reports are waited for; without them counts are a little too low.
LAST_REPORTS = 2.0


def run(
    pipeline: Pipeline | str,
    config: "Config | None" = None,
    *,
    processes: bool = False,
    spawner: Spawner | None = None,
    seed: int | None = None,
    on_report: Callable[[dict[str, Any]], None] | None = None,
    deciders: Deciders | None = None,
) -> "App":
    """Make a running application of a pipeline; use it as an async context manager.

    Args:
        pipeline: the description, or ``package.module:name`` of one.
        config: settings. Without a transport URL everything is in this process.
        processes: run each instance of an operator in a process of its own; sources and sinks
            stay here. Needs the name of an importable pipeline and a transport URL.
        spawner: where instances come from, instead.
        seed: decides all that is random; drawn from the system without it.
        on_report: called with the figures of each process, several times a second.
        deciders: makes deciders, instead of those that the configuration asks for. Instances in
            other processes take the configuration's.

    Raises:
        ConfigError: the pipeline or the settings are wrong; every mistake is told.
    """
    if config is None:
        from dsp.config import Config

        config = Config()
    described = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    graph = described.graph()
    check_ends(graph, config.stream.delivery)
    if processes:
        if not isinstance(pipeline, str):
            raise ConfigError(
                "processes need an importable pipeline: pass its name, package.module:name"
            )
        if "url" not in config.transport.model_fields_set:
            raise ConfigError("processes need a transport: set transport.url, as zmq://127.0.0.1:0")
        spawner = ProcessSpawner(pipeline, config)
    return App(graph, config, spawner or LocalSpawner(), seed, on_report, deciders)


class App:
    """A pipeline that runs while its ``async with`` block lasts.

    Leaving the block stops the sources, lets what is under way reach the sinks within
    ``stream.drain_timeout``, and ends everything. Left by an exception or a cancellation, it does
    the same.

    Attributes:
        summary: what was counted so far.
    """

    def __init__(
        self,
        graph: Graph,
        config: "Config",
        spawner: Spawner,
        seed: int | None,
        on_report: Callable[[dict[str, Any]], None] | None,
        deciders: Deciders | None,
    ) -> None:
        self.graph = graph
        self.summary = Summary(graph)
        self._config = config
        self._spawner = spawner
        self._random = derive_random(seed, "app") if seed is not None else Random(os.urandom(16))
        self._on_report = on_report
        self._deciders = deciders or decider_for(config, graph)
        self._host: Host | None = None
        self._stack = AsyncExitStack()
        self._heard = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    # -- for users ------------------------------------------------------------------------

    async def join(self) -> Summary:
        """Wait until every source is over and all that came of it has reached the sinks.

        Raises:
            DspError: an instance failed.
        """
        await asyncio.shield(self._require_running())
        self._check_faults()
        return self.summary

    async def stop(self) -> Summary:
        """Stop the sources, let what is under way reach the sinks, and wait for that.

        Raises:
            TimeoutError: it took longer than ``stream.drain_timeout``.
        """
        running = self._require_running()
        assert self._host is not None
        for instance in list(self._host.instances.values()):
            instance.stop_reading()
            instance.look_later()
        async with asyncio.timeout(self._config.stream.drain_timeout):
            await asyncio.shield(running)
        self._check_faults()
        return self.summary

    def abort(self) -> None:
        """End at once, whatever is under way; ``join`` raises then.

        Instances in other processes end by themselves, when they find nobody before or after them.
        """
        for instance in list(self.host.instances.values()):
            instance.abandon("the application was stopped")
        self.summary.forget_living()

    @property
    def running(self) -> bool:
        """Whether it was started and is not over."""
        return self._running is not None and not self._running.done()

    @property
    def host(self) -> Host:
        """The part of the application that is in this process."""
        if self._host is None:
            raise ClosedError("the application is not running")
        return self._host

    @property
    def spawner(self) -> Spawner:
        """Where instances come from."""
        return self._spawner

    # -- life -----------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._running is not None:
            raise ClosedError("an application runs once; call run again")
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        running = self._require_running()
        try:
            if not running.done():
                await self.stop()
        except TimeoutError:
            left = ", ".join(self.host.instances)
            logger.warning("not drained within stream.drain_timeout, ended anyway: %s", left)
            if exc is None:
                raise
        finally:
            running.cancel()
            await asyncio.wait([running])
            await self._stack.aclose()
        error = None if running.cancelled() else running.exception()
        if exc is None:
            if error is not None:
                raise error
            self._check_faults()

    async def _start(self) -> None:
        node = NodeId(self._config.node.id or f"{self.graph.name}-{self._random.getrandbits(48):x}")
        transport: Transport
        if "url" in self._config.transport.model_fields_set:
            transport = create_session(self._config.transport, node)
        else:
            transport = Alone(node)
        await self._stack.enter_async_context(transport)
        self._stack.push_async_callback(self._spawner.close)
        host = self._host = Host(
            transport,
            self.graph,
            self._config,
            self._spawner,
            make_decider=self._deciders,
            random=self._random,
            watcher=transport.contact,
            heard=self._hear,
        )
        self._stack.push_async_callback(host.close)
        host.start()
        await self._start_instances(host)
        self._running = asyncio.get_running_loop().create_task(self._run(host), name="dsp app")

    async def _run(self, host: Host) -> None:
        await host.run()
        host.report()
        # The last reports of other processes may still be on their way.
        try:
            async with asyncio.timeout(LAST_REPORTS):
                while self.summary.living:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            logger.warning("no last report of some instances: counts per operator may be low")

    async def _start_instances(self, host: Host) -> None:
        """Create the first instances, then introduce them to each other."""
        places: list[Place] = []
        for operator in self.graph.operators.values():
            for number in range(operator.instances):
                name = host.new_name(operator.name)
                upstream = self.graph.upstream(operator.name)
                downstream = self.graph.downstream(operator.name)
                member = Member(operator.name, 0, name)
                places.append(Place(member, upstream, downstream, keeper=number == 0))
        # The most senior is the keeper, and of equals that is the one with the first name.
        places = _with_keepers(places)
        local = LocalSpawner()
        requests = [SpawnRequest(place, host.peer, host.watcher) for place in places]

        async def create(request: SpawnRequest) -> tuple[NodeId, Peer]:
            operator = self.graph.operators[request.place.member.operator]
            chosen = local if _stays_here(operator) else self._spawner
            return request.place.member.id, await chosen.spawn(host, request)

        for name, peer in await asyncio.gather(*map(create, requests)):
            host.addresses.put(name, peer)
        members = [place.member for place in places]
        for member in members if self._config.scaling.coordination == "2fgme" else ():
            if edges := excluding_edges(member.operator, self.graph):
                told = core_message(member.operator, edges, members, host.address)
                host.post(NodeId(host.peer.id), member.id, told)
        for place in reversed(places):
            around = tuple(
                sorted(other.member for other in places if place.adjoins(other.member.operator))
            )
            host.post_scale(NodeId(host.peer.id), place.member.id, Start(around))

    def _hear(self, report: dict[str, Any]) -> None:
        self.summary.add(report)
        self._heard.set()
        if self._on_report is not None:
            self._on_report(report)

    def _check_faults(self) -> None:
        faults = self.summary.faults
        if not faults:
            return
        errors = self._host.errors if self._host is not None else []
        known = next((error for error in errors if isinstance(error, DspError)), None)
        if known is not None:
            raise known
        raise DspError("\n".join(faults)) from (errors[0] if errors else None)

    def _require_running(self) -> "asyncio.Task[None]":
        if self._running is None:
            raise ClosedError("the application is not running: use it in an async with block")
        return self._running


def _stays_here(operator: Operator) -> bool:
    return operator.kind in (Kind.SOURCE, Kind.SINK)


def _with_keepers(places: list[Place]) -> list[Place]:
    first = {place.member.operator: place.member for place in places}
    for place in places:
        operator = place.member.operator
        first[operator] = min(first[operator], place.member)
    return [
        Place(p.member, p.upstream, p.downstream, keeper=first[p.member.operator] == p.member)
        for p in places
    ]
