"""A process that runs instances: one endpoint, and a router between it and the instances here."""

import asyncio
import logging
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from dsp._pb.engine_pb2 import EngineBatch, EngineReport
from dsp.core.envelope import Envelope, decode_envelope, encode_envelope
from dsp.core.machine import Send
from dsp.core.outgoing import Outgoing
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, CodecError, EndOfStream, PeerUnreachable
from dsp.scaling.events import ScaleMessage
from dsp.scaling.place import Place
from dsp.scaling.wire import from_envelope, to_envelope
from dsp.stream.addresses import Addresses
from dsp.stream.figures import figures_of
from dsp.stream.graph import Graph
from dsp.stream.inlet import Arrival
from dsp.stream.instance import Instance
from dsp.stream.offsets import OffsetStore
from dsp.stream.parcels import Sent
from dsp.stream.spawners import Spawner, SpawnRequest
from dsp.transport.base import Frame, Inbound, PeerDown, PeerUp, Transport, Undelivered
from dsp.transport.sim.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.scaling.deciders import Decider

__all__ = ["Host"]

logger = logging.getLogger(__name__)

MAX_PENDING = 100_000


class _Bytes:
    """Messages that are bytes already."""

    def encode(self, message: bytes) -> bytes:
        return message

    def decode(self, data: bytes) -> Hashable:
        return data


class Host:
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
        make_decider: Callable[[str, Random], "tuple[Decider, float] | None"],
        random: Random,
        watcher: Peer | None = None,
        heard: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.graph = graph
        self.config = config
        self.addresses = Addresses()
        self.instances: dict[NodeId, Instance] = {}
        self.watcher = watcher
        self.faults: list[str] = []
        self.events: list[tuple[float, str, str, int]] = []
        self._transport = transport
        self._spawner = spawner
        self._make_decider = make_decider
        self._random = random
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._virtual = isinstance(self._loop, VirtualTimeLoop)
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._peers: dict[NodeId, Peer] = {}
        self._suspects: dict[NodeId, asyncio.TimerHandle] = {}
        self._lost: set[NodeId] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._local: list[tuple[NodeId, NodeId, Envelope, ScaleMessage | None]] = []
        self._finals: list[dict[str, Any]] = []
        self._reported_events = 0
        self._empty = asyncio.Event()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._outgoing = Outgoing(
            transport,
            _Bytes(),
            self._peers,
            spawn=self._start,
            failed=self._send_failed,
            max_pending=MAX_PENDING,
        )
        directory = config.stream.state_directory
        self._store = OffsetStore(directory, graph.name) if directory else None

    @property
    def peer(self) -> Peer:
        """How others reach this process."""
        return self._transport.contact

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
        """Create an instance, idle until it is started."""
        name = place.member.id
        chosen = self._make_decider(place.member.operator, self._random)
        decider, period = chosen if chosen is not None else (None, 1.0)
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

    def gone(self, instance: Instance, reason: str, *, clean: bool) -> None:
        """An instance is over."""
        logger.info("%s is over: %s", instance.name, reason)
        self.instances.pop(instance.name, None)
        self._finals.append({**figures_of(instance), "over": reason, "clean": clean})
        if not clean:
            self.faults.append(f"{instance.name}: {reason}")
            for other in list(self.instances.values()):
                other.lose(instance.name)
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

    # -- sending --------------------------------------------------------------------------

    def is_local(self, name: NodeId) -> bool:
        """Whether an instance is, or was, in this process."""
        peer = self.addresses.peer(name)
        return peer is not None and peer.id == self.peer.id

    def address(self, name: NodeId) -> str:
        """Where an instance is."""
        return self.addresses.get(name, "")

    def introduce(self, name: NodeId, address: str) -> None:
        """Note where an instance is."""
        self.addresses[name] = address

    def post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None:
        """Send a message to an instance, on the CONTROL lane."""
        self._post(source, to, envelope, None)

    def post_scale(self, source: NodeId, to: NodeId, message: ScaleMessage) -> None:
        """Send a message of the scale protocol."""
        if self.is_local(to):
            self._post(source, to, Envelope(), message)
        else:
            self._post(source, to, to_envelope(message, self.addresses), message)

    def _post(
        self, source: NodeId, to: NodeId, envelope: Envelope, message: ScaleMessage | None
    ) -> None:
        if self.is_local(to):
            # Not at once: the sender may be in the middle of a step.
            if not self._local:
                self._loop.call_soon(self._deliver_local)
            self._local.append((source, to, envelope, message))
            return
        peer = self.addresses.peer(to)
        if peer is None:
            logger.warning("no address of %s: a message of %s is not sent", to, source)
            return
        envelope.source, envelope.destination = source, to
        self._peers[peer.id] = peer
        self._outgoing.send(Send(peer.id, encode_envelope(envelope), Lane.CONTROL))

    def _deliver_local(self) -> None:
        waiting, self._local = self._local, []
        for source, to, envelope, message in waiting:
            instance = self.instances.get(to)
            if instance is not None:
                instance.hear(source, envelope, message)

    def hand_over(self, source: NodeId, sent: Sent, arrival: Arrival) -> None:
        """Give a batch to an instance of this process."""
        instance = self.instances.get(sent.to)
        if instance is not None:
            instance.arrive(arrival)

    def send_batch(self, source: NodeId, to: NodeId, message: EngineBatch) -> None:
        """Send a batch to an instance of another process."""
        peer = self.addresses.peer(to)
        if peer is None:
            logger.warning("no address of %s: a batch of %s is not sent", to, source)
            return
        self._peers[peer.id] = peer
        envelope = Envelope(source=source, destination=to, engine_batch=message)
        self._outgoing.send(Send(peer.id, encode_envelope(envelope), Lane.DATA))

    def _send_failed(self, effect: Send) -> None:
        logger.warning("a message to %s was not sent", effect.to)
        self._returned(Undelivered(self._peers[effect.to], effect.lane, (effect.message,)))  # type: ignore[arg-type]

    def finished(self, frame: Frame) -> None:
        """A frame is dealt with."""
        self._transport.done(frame)

    # -- receiving ------------------------------------------------------------------------

    async def _listen(self, lane: Lane) -> None:
        while True:
            try:
                inbound = await self._transport.receive(lane)
            except (EndOfStream, ClosedError):
                return
            self._take(inbound)

    def _take(self, inbound: Inbound) -> None:
        match inbound:
            case Frame():
                try:
                    self._route(inbound)
                except CodecError as error:
                    logger.warning("frame of %s rejected: %s", inbound.sender, error)
                    self._transport.done(inbound)
            case PeerUp(peer):
                if (timer := self._suspects.pop(peer.id, None)) is not None:
                    timer.cancel()
            case PeerDown(peer, reason):
                if peer.id not in self._suspects and peer.id not in self._lost:
                    logger.info("process %s is suspected: %s", peer.id, reason)
                    self._suspects[peer.id] = self._loop.call_later(
                        self.config.stream.lost_after, self._lose, peer.id
                    )
            case Undelivered():
                self._returned(inbound)

    def _route(self, frame: Frame) -> None:
        envelope = decode_envelope(frame.payload)
        source, destination = NodeId(envelope.source), NodeId(envelope.destination)
        body = envelope.WhichOneof("body")
        if body == "engine_report":
            if self._heard is not None:
                self._heard(orjson.loads(envelope.engine_report.figures))
            self._transport.done(frame)
            return
        # Who speaks is at the other end: a newcomer may be heard before it is introduced.
        if self.addresses.peer(source) != frame.sender and source:
            self.addresses.put(source, frame.sender)
        instance = self.instances.get(destination)
        if body == "engine_batch":
            message = envelope.engine_batch
            if instance is None:
                logger.warning("%d records for %s, which is not here", message.records, destination)
                self._transport.done(frame)
                return
            instance.arrive(
                Arrival(
                    source,
                    message.operator,
                    message.sequence,
                    message.records,
                    len(message.payload),
                    message.born,
                    message=message,
                    frame=frame,
                )
            )
            return
        scale: ScaleMessage | None = None
        if body is not None and body.startswith("scale_"):
            scale = from_envelope(envelope, self.addresses)
        if instance is not None:
            instance.hear(source, envelope, scale)
        self._transport.done(frame)

    # -- loss -----------------------------------------------------------------------------

    def _lose(self, node: NodeId) -> None:
        self._suspects.pop(node, None)
        self._lost.add(node)
        names = self.addresses.at(node)
        known = {
            name for each in self.instances.values() for name in each.machine.neighbours.members
        }
        if missed := [name for name in names if name in known]:
            logger.warning("process %s is lost, with %s", node, ", ".join(missed))
        for instance in list(self.instances.values()):
            for name in names:
                instance.lose(name)

    def _returned(self, lost: Undelivered) -> None:
        """Frames did not arrive: batches go to others, messages again, unless their end is dead."""
        if lost.peer.id in self._lost:
            return
        for payload in lost.payloads:
            with suppress(CodecError):
                envelope = decode_envelope(payload)
                instance = self.instances.get(NodeId(envelope.source))
                if instance is None:
                    continue
                if lost.lane is Lane.DATA:
                    instance.outlet.returned(envelope.engine_batch.sequence)
                elif not lost.reason and envelope.WhichOneof("body") != "engine_report":
                    with suppress(PeerUnreachable):
                        self._outgoing.send(Send(lost.peer.id, payload, Lane.CONTROL))

    # -- reports --------------------------------------------------------------------------

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(self.config.stream.report_every)
            self.report()

    def report(self) -> None:
        """Tell whoever watches how things go."""
        figures = {
            "host": self.peer.id,
            "time": self.clock(),
            "instances": [figures_of(each) for each in self.instances.values()],
            "over": self._finals,
            "events": self.events[self._reported_events :],
            "faults": self.faults,
        }
        self._finals = []
        self._reported_events = len(self.events)
        if self.watcher is None or self.watcher.id == self.peer.id:
            if self._heard is not None:
                self._heard(figures)
            return
        report = EngineReport(figures=orjson.dumps(figures))
        self._peers[self.watcher.id] = self.watcher
        with suppress(ClosedError):
            data = encode_envelope(Envelope(engine_report=report))
            self._outgoing.send(Send(self.watcher.id, data, Lane.CONTROL))
