"""``kafka://host:port,host:port/prefix``: an endpoint whose inboxes are topics of Apache Kafka."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from aiokafka.errors import KafkaError

from dsp.errors import ClosedError, ConfigError, ConnectError, PeerUnreachable
from dsp.transport.adapter import AdapterTransport
from dsp.transport.base import Frame, Guarantees, Lane, NodeId, Peer
from dsp.transport.kafka.clients import Clients
from dsp.transport.kafka.errors import describe, map_errors
from dsp.transport.kafka.inbox import delete_topics, open_topics
from dsp.transport.kafka.inlet import Inlet, InletHooks
from dsp.transport.kafka.names import Address, group_of, parse_url, topic_of
from dsp.transport.kafka.outlet import KafkaLink, Outlet, OutletHooks
from dsp.transport.kafka.security import check
from dsp.transport.kafka.wire import Kind, Stamp

if TYPE_CHECKING:
    from dsp.config import TransportConfig
    from dsp.transport.kafka.broker import Broker

__all__ = ["KafkaTransport"]

logger = logging.getLogger(__name__)

SLOW_AFTER = 2.0


class KafkaTransport(AdapterTransport[KafkaLink]):
    """A process's endpoint on Kafka brokers: ``kafka://broker-1:9092,broker-2:9092/prefix``.

    Its inbox is one topic per lane, made at the first start and kept: what is sent while the
    process is away waits there, and what was received and not ``done`` comes again to the next
    endpoint of this id. ``retire`` deletes it.
    """

    scheme: ClassVar[str] = "kafka"

    def __init__(self, config: "TransportConfig", node: NodeId, address: Address) -> None:
        super().__init__(config, node)
        most = config.max_frame_bytes
        self.guarantees = Guarantees(
            ordered=True, reliable=True, durable=True, duplicates=True, max_frame_bytes=most
        )
        self._address = address
        self._topics = {lane: topic_of(address.prefix, node, lane) for lane in Lane}
        self._contact: Peer | None = None
        self._broker: Broker | None = None
        self._inlets: dict[Lane, Inlet] = {}
        self._outlets: dict[Lane, Outlet] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._hello_offset: int | None = None

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        try:
            address = parse_url(config.url)
            endpoint = cls(config, node, Address(address.hosts, address.prefix))
        except ValueError as error:
            raise ConfigError(f"transport.url: {error}") from error
        check(config.kafka)
        return endpoint

    @property
    def contact(self) -> Peer:
        if self._contact is None:
            raise ClosedError(f"{self._name} is not started")
        return self._contact

    def done(self, frame: Frame) -> None:
        """Let the offset be committed, once all frames before it are done too."""
        if self._is_open and isinstance(frame.receipt, int):
            self._inlets[frame.lane].done(frame.receipt)

    async def aclose(self) -> None:
        await super().aclose()
        if self._ending is not None:
            await asyncio.wait([self._ending])

    async def retire(self) -> None:
        """Close, and delete the inbox with all that is in it; see ``Transport.retire``.

        Frames that were not received are gone, and peers that still send to this id are told that
        it has no inbox.

        Raises:
            ConnectError: the brokers cannot be reached, or refuse.
        """
        await self.aclose()
        with map_errors(self._config.url, self._config.kafka):
            broker = self._make_clients().broker()
            try:
                await broker.connect()
                patience = self._config.kafka.request_timeout
                await delete_topics(broker, [*self._topics.values()], patience)
            finally:
                broker.close()

    # -- what the shared half asks for ----------------------------------------------------

    async def _open(self) -> None:
        # A task of its own, which is not cancelled with us: a client of aiokafka whose start is
        # cancelled leaves connections behind.
        self._opening = asyncio.ensure_future(self._open_everything())
        await asyncio.shield(self._opening)

    def _connect(self, to: Peer, lane: Lane) -> KafkaLink:
        topic, limit = self._inbox_of(to, lane)
        link = KafkaLink(to, lane, self._config, topic, limit)
        link.task = self._spawn(self._outlets[lane].serve(link))
        return link

    def _readdress(self, link: KafkaLink, to: Peer) -> None:
        # The inbox follows from the id, which is the same: only what it takes may be new.
        _, link.limit = self._inbox_of(to, link.lane)
        link.peer = to

    def _wake(self, link: KafkaLink) -> None:
        link.wanted.set()

    def _room(self, lane: Lane) -> None:
        if (inlet := self._inlets.get(lane)) is not None:
            inlet.space.set()

    async def _flush(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(super()._flush())
            for inlet in self._inlets.values():
                group.create_task(self._last_commit(inlet))

    async def _last_commit(self, inlet: Inlet) -> None:
        try:
            await inlet.commit()
        except KafkaError as error:
            logger.warning("%s: what is done comes again: %s", self._name, describe(error))

    def _release(self) -> None:
        for task in self._tasks:
            task.cancel()
        for part in self._parts:
            part.drop()
        if self._broker is not None:
            self._broker.close()
        self._ending = asyncio.ensure_future(self._let_go())
        self._ending.add_done_callback(self._ended_badly)

    # -- opening and closing --------------------------------------------------------------

    async def _open_everything(self) -> None:
        config = self._config
        clients = self._make_clients()
        with map_errors(config.url, config.kafka):
            broker = self._broker = clients.broker()
            await broker.connect()
            try:
                async with asyncio.timeout(config.kafka.request_timeout):
                    cluster = await open_topics(broker, [*self._topics.values()], config)
                    address = Address(
                        self._address.hosts, self._address.prefix, cluster, config.max_frame_bytes
                    )
                    contact = Peer(self._node, str(address))
                    await self._start_lanes(clients, contact)
            except TimeoutError as error:
                raise TimeoutError(
                    f"not open within {config.kafka.request_timeout} s "
                    f"(transport.kafka.request_timeout)"
                ) from error
        if not self._is_open:
            raise ClosedError(f"{self._name} was closed while it was opened")
        self._address, self._contact = address, contact
        for inlet in self._inlets.values():
            self._spawn(inlet.read())
            self._spawn(inlet.keep_committing())
        self._spawn(broker.watch([*self._topics.values()], self._broker_state, SLOW_AFTER))

    async def _start_lanes(self, clients: Clients, contact: Peer) -> None:
        try:
            frame = Stamp(Kind.FRAME, contact, self._epoch).encode()
            hello = Stamp(Kind.HELLO, contact, self._epoch).encode()
        except ValueError as error:
            raise ConnectError(f"transport.url and node.id: {error}") from error
        sending = OutletHooks(
            links_of=self._links_of,
            spawn=self._spawn,
            acknowledged=self._handed_over,
            lost=self._lost,
            problem=self._report,
            inbox_exists=self._inbox_exists,
        )
        receiving = InletHooks(
            has_room=self._has_room,
            arrived=self._arrived,
            greeted=self._greeted,
            rejected=self._reject,
            problem=self._report,
        )
        for lane in Lane:
            self._outlets[lane] = Outlet(lane, sending, clients.producer, frame)
            self._inlets[lane] = Inlet(
                lane,
                self._topics[lane],
                receiving,
                clients.consumer,
                max_frame_bytes=self._config.max_frame_bytes,
                commit_interval=self._config.kafka.commit_interval,
            )
        # Each to its end, also where another one fails: none may be cancelled.
        results = await asyncio.gather(
            *(part.start() for part in self._parts), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        outlet = self._outlets[Lane.CONTROL]
        self._hello_offset = await outlet.say(self._topics[Lane.CONTROL], hello)

    def _ended_badly(self, ending: "asyncio.Task[None]") -> None:
        if not ending.cancelled() and (error := ending.exception()) is not None:
            logger.error("%s could not let go of everything", self._name, exc_info=error)

    async def _let_go(self) -> None:
        if self._opening is not None and not self._opening.done():
            await asyncio.wait([self._opening], timeout=self._config.connect_timeout)
            self._opening.cancel()
            await asyncio.wait([self._opening])
        if self._opening is not None and not self._opening.cancelled():
            self._opening.exception()  # start has raised it, or was cancelled and needs it no more
        if self._broker is not None:
            self._broker.close()
        for part in self._parts:
            part.drop()
        await asyncio.gather(*(part.end() for part in self._parts))
        if self._tasks:
            await asyncio.wait(self._tasks)

    @property
    def _parts(self) -> list[Inlet | Outlet]:
        return [*self._outlets.values(), *self._inlets.values()]

    def _make_clients(self) -> Clients:
        name = group_of(self._address.prefix, self._node)
        return Clients(self._config, self._address.hosts, name)

    # -- what the two halves of a lane ask for --------------------------------------------

    def _links_of(self, lane: Lane) -> Iterable[KafkaLink]:
        """Give the links of a lane."""
        return [link for link in self._links.values() if link.lane is lane]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task whose failure ends the endpoint."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)
        return task

    def _task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.critical("%s fails and closes", self._name, exc_info=error)
            self._fail(error)

    def _lost(self, link: KafkaLink, payloads: list[bytes], reason: str) -> None:
        """Frames cannot be delivered."""
        logger.error(
            "%s: %d frames to %s on %s cannot be delivered: %s",
            self._name,
            len(payloads),
            link.peer,
            link.lane.value,
            reason,
        )
        self._undelivered(link.peer, link.lane, payloads)
        self._handed_over()

    def _report(self, about: str, what: str | None) -> None:
        """Something is wrong, or, with None, right again."""
        if what is not None and about not in self._condition.problems:
            logger.warning("%s: %s: %s", self._name, about, what)
        elif what is None and about in self._condition.problems:
            logger.info("%s: %s: right again", self._name, about)
        self._problem(about, what)

    async def _inbox_exists(self, topic: str) -> bool:
        """Tell whether a topic is there, without creating it."""
        if self._broker is None:
            return False
        return bool((await self._broker.topics([topic])).get(topic, {}).get("partitions"))

    def _greeted(self, stamp: Stamp, offset: int) -> None:
        """End this endpoint if another one of this id opened the inbox after it."""
        later = self._hello_offset is not None and offset > self._hello_offset
        if later and stamp.peer.id == self._node and stamp.epoch != self._epoch:
            error = ConnectError(
                f"another endpoint with the id {self._node!r} was started later and has the inbox "
                f"now: give each process an id of its own (node.id), or stop the earlier one first"
            )
            logger.critical("%s: %s", self._name, error)
            self._fail(error)

    def _reject(self, lane: Lane, reason: str) -> None:
        """A record came that makes no sense: count it, and say who may be at fault."""
        self._rejected(lane)
        self._report(
            f"foreign records on {lane.value}",
            f"the topic {self._topics[lane]} has records of others ({reason}): does another "
            f"application use the prefix of transport.url?",
        )

    def _broker_state(self, what: str | None) -> None:
        self._report("broker", what)

    def _inbox_of(self, peer: Peer, lane: Lane) -> tuple[str, int]:
        try:
            address = parse_url(peer.address)
            topic = topic_of(address.prefix, peer.id, lane)
        except ValueError as error:
            raise PeerUnreachable(f"{peer}: {error}") from error
        if address.prefix != self._address.prefix:
            raise PeerUnreachable(
                f"{peer} has the prefix {address.prefix!r}, this endpoint has "
                f"{self._address.prefix!r}: endpoints reach each other under one prefix"
            )
        if not self._address.same_brokers(address):
            raise PeerUnreachable(
                f"{peer} is on other brokers than this endpoint, {self._address}: endpoints reach "
                f"each other over one cluster"
            )
        most = self._config.max_frame_bytes
        return topic, min(most, address.max_frame_bytes or most)
