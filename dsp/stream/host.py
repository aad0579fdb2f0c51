"""A process that runs instances: one endpoint, and a router between it and the instances here."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from dsp._pb.engine_pb2 import EngineReport
from dsp.core.envelope import Envelope, encode_envelope
from dsp.core.machine import Send
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError
from dsp.scaling.place import Place
from dsp.scaling.status import Status
from dsp.scaling.usable import CpuUse
from dsp.stream.coordination import ScalingStep
from dsp.stream.cpu import CpuMeter, make_meter
from dsp.stream.deciding import Deciders
from dsp.stream.figures import figures_of
from dsp.stream.foresight import foreseer
from dsp.stream.graph import Graph, Kind
from dsp.stream.instance import Instance
from dsp.stream.offsets import Ends
from dsp.stream.router import Router
from dsp.stream.spawners import Spawner, SpawnRequest
from dsp.transport.base import Transport
from dsp.transport.sim.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.stream.offset_store import OffsetStore

__all__ = ["Host"]

logger = logging.getLogger(__name__)


class Host(Router):
    """Runs instances of one application in this process.

    Args:
        transport: a started session; the host reads it and does not close it.
        graph: the application.
        config: settings.
        spawner: creates siblings.
        make_decider: makes the decider of an instance of an operator, and gives its period.
        random: decides names and moments.
        watcher: who is told how things go; None for nobody.
        heard: called with each report that comes here.
    """

    def __init__(
        self,
        transport: Transport,
        graph: Graph,
        config: "Config",
        spawner: Spawner,
        *,
        make_decider: Deciders,
        random: Random,
        watcher: Peer | None = None,
        heard: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        super().__init__(transport, config.stream.lost_after, heard)
        self.graph = graph
        self.config = config
        self.watcher = watcher
        self.faults: list[str] = []
        self.errors: list[BaseException] = []
        self.events: list[tuple[float, str, str, int]] = []
        self._spawner = spawner
        self._make_decider = make_decider
        self._random = random
        self._virtual = isinstance(self._loop, VirtualTimeLoop)
        self._cpu: CpuMeter | None = None
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._finals: list[dict[str, Any]] = []
        self.steps: list[ScalingStep] = []
        self._reported_events = self._reported_steps = 0
        # Processes that created instances here which have not started yet.
        self._creators: dict[NodeId, Peer] = {}
        self._empty = asyncio.Event()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        directory = config.stream.state_directory
        self._store = _open_store(directory, graph.name) if directory else None

    def cpu_use(self, busy: float) -> CpuUse:
        """How the core of an instance is used whose body works for such a share of the time."""
        if self._cpu is None:
            self._cpu = make_meter()
        return self._cpu.use(busy, max(1, len(self.instances)))

    def clock(self) -> float:
        """The time that batches are born by: the same in all processes of a machine."""
        return self._loop.time() if self._virtual else time.time()

    # -- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to listen."""
        for lane in Lane:
            self._start(self._listen(lane), f"{lane.value} router")
        self._start(self._report(), "host reports")

    async def run(self) -> None:
        """Wait until no instance is left.

        Raises:
            Exception: what broke the host.
        """
        waiter = asyncio.ensure_future(self._empty.wait())
        try:
            await asyncio.wait((waiter, self._failed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiter.cancel()
        if self._failed.done():
            self._failed.result()
        if self._closing:
            await asyncio.wait(self._closing)

    async def close(self) -> None:
        """Let go of everything; instances that are left end at once."""
        for instance in list(self.instances.values()):
            instance.abandon("the host closes")
        if self._closing:
            await asyncio.wait(self._closing)
        self.report()
        for handle in self._suspects.values():
            handle.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._store is not None:
            self._store.close()
        if not self._failed.done():
            self._failed.cancel()
        elif not self._failed.cancelled():
            self._failed.exception()

    def create(self, place: Place, parent: Peer | None = None) -> Instance:
        """Create an instance, idle until it is started.

        Raises:
            MissingExtraError: it decides by figures that cannot be taken here.
        """
        name = place.member.id
        chosen = self._make_decider(place.member.operator, self._random)
        decider, period = chosen if chosen is not None else (None, 1.0)
        if foreseer(decider) is not None and self._cpu is None:
            self._cpu = make_meter()
        instance = Instance(
            self,
            place,
            self.graph,
            self.config,
            decider=decider,
            period=period,
            random=self._random,
            store=self._store,
            news=self._news,
        )
        self.instances[name] = instance
        self.addresses.put(name, self.peer)
        if place.parent is not None and parent is not None:
            self.addresses.put(place.parent, parent)
        if parent is not None and parent.id != self.peer.id:
            self._depend_on(name, parent)
        self._empty.clear()
        return instance

    def new_name(self, operator: str) -> NodeId:
        """Give a name that no instance ever had."""
        return NodeId(f"{operator}.{self._random.getrandbits(48):012x}")

    async def spawn(self, place: Place, count: int) -> list[NodeId]:
        """Create siblings of an instance, idle.

        Raises:
            Exception: of the spawner, if not a single one could be created.
        """
        names = [self.new_name(place.member.operator) for _ in range(count)]
        requests = [SpawnRequest(place.newcomer(name), self.peer, self.watcher) for name in names]
        outcomes = await asyncio.gather(
            *(self._spawner.spawn(self, request) for request in requests), return_exceptions=True
        )
        created = []
        for name, outcome in zip(names, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                logger.error("no sibling %s: %r", name, outcome)
            else:
                self.addresses.put(name, outcome)
                created.append(name)
        if not created:
            raise next(each for each in outcomes if isinstance(each, BaseException))
        return created

    def settled(self, ends: Ends, sure: Callable[[], None]) -> None:
        """Records before these ends will never be read again, once ``sure`` was called.

        Sinks are where sources are: in the process of the application.
        """
        for instance in self.instances.values():
            instance.settled_below(ends, sure)

    def gone(self, instance: Instance, reason: str, *, clean: bool) -> None:
        """An instance is over."""
        logger.info("%s is over: %s", instance.name, reason)
        self.instances.pop(instance.name, None)
        self._finals.append({**figures_of(instance), "over": reason, "clean": clean})
        if not clean:
            self.faults.append(f"{instance.name}: {reason}")
            if instance.error is not None:
                self.errors.append(instance.error)
                if instance.operator.kind is Kind.SINK:
                    # There is no other one: what is under way would wait for ever.
                    self._fail(instance.error)
        closing = self._loop.create_task(instance.close(), name=f"{instance.name} closing")
        self._closing.add(closing)
        closing.add_done_callback(self._closed)

    def _closed(self, task: "asyncio.Task[None]") -> None:
        self._closing.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)
        if not self.instances and not self._closing:
            self._empty.set()

    def _news(self, name: str, what: str, count: int) -> None:
        self.events.append((self.clock(), name, what, count))

    def stepped(self, step: ScalingStep) -> None:
        """A scaling step of an instance is over."""
        self.steps.append(step)

    def _start(self, work: Any, name: str) -> None:  # noqa: ANN401
        task = self._loop.create_task(work, name=f"dsp {name}")
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)
        else:
            logger.error("the host failed again", exc_info=error)

    # -- reports --------------------------------------------------------------------------

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self.config.stream.report_every)
            self.report()

    def report(self) -> None:
        """Tell whoever watches how things go."""
        self._forget_creators()
        figures = {
            "host": self.peer.id,
            "time": self.clock(),
            "instances": [figures_of(each) for each in self.instances.values()],
            "over": self._finals,
            "events": self.events[self._reported_events :],
            "steps": [astuple(step) for step in self.steps[self._reported_steps :]],
            "faults": self.faults,
        }
        self._finals = []
        self._reported_events = len(self.events)
        self._reported_steps = len(self.steps)
        # A creator has no use for it; but the end of a process is seen by who talks with it alone.
        told = {peer.id: peer for peer in self._creators.values()}
        if self.watcher is not None and self.watcher.id != self.peer.id:
            told[self.watcher.id] = self.watcher
        elif self._heard is not None:
            self._heard(figures)
        if told:
            report = EngineReport(figures=orjson.dumps(figures))
            data = encode_envelope(Envelope(engine_report=report))
        for peer in told.values():
            self._peers[peer.id] = peer
            with suppress(ClosedError):
                self._outgoing.send(Send(peer.id, data, Lane.CONTROL))

    # -- creators -------------------------------------------------------------------------

    def _depend_on(self, name: NodeId, creator: Peer) -> None:
        """Watch the process that has yet to start an instance."""
        self._creators[name] = creator
        # A session tells of the end of those alone that it has heard: this one may be gone by now.
        patience = self.config.transport.session.suspect_after + self._lost_after
        self._suspects[creator.id] = self._loop.call_later(patience, self._lose, creator.id)
        self._loop.call_soon(self.report)

    def _forget_creators(self) -> None:
        """An instance that has started does not depend on its creator any more."""
        for name in list(self._creators):
            instance = self.instances.get(name)
            if instance is None or instance.machine.status is not Status.IDLE:
                del self._creators[name]

    def _lose(self, node: NodeId) -> None:
        super()._lose(node)
        self._forget_creators()
        for name in [name for name, peer in self._creators.items() if peer.id == node]:
            # Nobody else knows of it, so nobody will ever start it.
            self.instances[name].abandon("the process that created it is lost")


def _open_store(directory: str, application: str) -> "OffsetStore":
    # Whoever keeps none needs no database: a newcomer would wait for its import.
    from dsp.stream.offset_store import OffsetStore

    return OffsetStore(directory, application)
