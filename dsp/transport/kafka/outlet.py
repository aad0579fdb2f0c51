"""The sending half of a lane: one producer, and for each peer what is not acknowledged yet.

A frame stays with its link until the brokers have it, so a producer that breaks is replaced and
everything that it left open is sent again, in order.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaProducer, errors

from dsp.core.types import Lane, Peer
from dsp.transport.kafka.errors import FAILURES, describe, is_poison, is_too_large
from dsp.transport.kafka.letting_go import drop_producer, end_producer
from dsp.transport.kafka.wire import HEADER
from dsp.transport.link import Link

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["Flight", "KafkaLink", "Outlet", "OutletHooks"]

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 2.0


class Flight:
    """A frame that was handed to a producer and is not acknowledged."""

    __slots__ = ("generation", "payload")

    def __init__(self, payload: bytes, generation: int) -> None:
        self.payload = payload
        self.generation = generation


class KafkaLink(Link):
    """The sending side of one lane to one peer: its queue, and its frames on their way."""

    def __init__(
        self, peer: Peer, lane: Lane, config: "TransportConfig", topic: str, limit: int
    ) -> None:
        super().__init__(peer, lane, config)
        self.topic = topic
        self.limit = limit
        self.known = False
        """Whether the inbox was seen to be there."""
        self.flights: deque[Flight] = deque()
        self.flying_bytes = 0
        self.sent = 0
        """How many of the flights the producer of today has; the others come first."""
        self.alone = 0
        """How many of the flights must go one by one, to find the one that is too large."""
        self.acknowledged = 0
        self.wanted = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._most_frames = config.send_queue_frames
        self._most_bytes = config.kafka.in_flight_bytes

    def pending(self) -> list[bytes]:
        frames = [flight.payload for flight in self.flights]
        self.flights.clear()
        self.flying_bytes = self.sent = self.alone = 0
        return frames + self.queue.drain()

    def waiting(self) -> bool:
        return bool(self.flights) or len(self.queue) > 0

    def moved(self) -> int:
        return self.queue.taken + self.acknowledged

    def unacknowledged(self) -> int:
        return len(self.flights)

    def next(self) -> bytes | None:
        """Give the payload to hand to the producer next, if there is one and it may go."""
        if self.alone and self.sent:
            return None
        if self.sent < len(self.flights):
            return self.flights[self.sent].payload
        if self.flights and not (
            len(self.flights) < self._most_frames and self.flying_bytes < self._most_bytes
        ):
            return None
        return self.queue.peek()

    def handed(self, generation: int) -> Flight:
        """The payload of ``next`` is with the producer."""
        if self.sent < len(self.flights):
            flight = self.flights[self.sent]
            flight.generation = generation
        else:
            payload = self.queue.get_nowait()
            assert payload is not None
            flight = Flight(payload, generation)
            self.flights.append(flight)
            self.flying_bytes += len(payload)
        self.sent += 1
        return flight

    def withdraw(self) -> bytes:
        """Take the payload of ``next`` out: it will not be sent."""
        if self.sent < len(self.flights):
            payload: bytes | None = self.flights[self.sent].payload
            del self.flights[self.sent]
            self.flying_bytes -= len(payload or b"")
        else:
            payload = self.queue.get_nowait()
        assert payload is not None
        return payload

    def flies(self, flight: Flight) -> bool:
        """Tell whether this is the first flight; if not, it was taken back."""
        return bool(self.flights) and self.flights[0] is flight

    def landed(self, flight: Flight) -> None:
        """The first flight ended, well or badly."""
        self.flights.popleft()
        self.flying_bytes -= len(flight.payload)
        self.sent -= 1
        self.alone = max(0, self.alone - 1)
        self.wanted.set()


@dataclass(frozen=True, slots=True)
class OutletHooks:
    """What an outlet needs of its endpoint.

    Attributes:
        links_of: gives the links of a lane.
        spawn: starts a task whose failure ends the endpoint.
        acknowledged: is told that a frame is with the brokers.
        lost: is told of frames that cannot be delivered, and why.
        problem: is told what is wrong about something, or, with None, that it is right again.
        inbox_exists: tells whether a topic is there, without creating it.
    """

    links_of: Callable[[Lane], Iterable[KafkaLink]]
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    acknowledged: Callable[[], None]
    lost: Callable[[KafkaLink, list[bytes], str], None]
    problem: Callable[[str, str | None], None]
    inbox_exists: Callable[[str], Awaitable[bool]]


class Outlet:
    """The producer of a lane.

    Args:
        lane: which one.
        endpoint: what it needs of its endpoint.
        make: makes a producer that is not started.
        stamp: the header of every frame.
    """

    def __init__(
        self, lane: Lane, endpoint: OutletHooks, make: Callable[[], AIOKafkaProducer], stamp: bytes
    ) -> None:
        self._lane = lane
        self._endpoint = endpoint
        self._make = make
        self._headers = [(HEADER, stamp)]
        self._producer: AIOKafkaProducer | None = None
        self._ready = asyncio.Event()
        self._generation = 0
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False

    async def start(self) -> None:
        """Connect. Not to be cancelled: aiokafka would leave connections behind.

        Raises:
            KafkaError: or another of ``FAILURES``.
        """
        producer = self._producer = self._make()
        try:
            await producer.start()
        except BaseException:
            drop_producer(producer)
            await end_producer(producer)
            raise
        if self._closed:
            drop_producer(producer)
        else:
            self._ready.set()

    async def say(self, topic: str, stamp: bytes) -> int:
        """Send a record of our own and give its offset; only before the first frame."""
        assert self._producer is not None
        sent = await self._producer.send(topic, b"", partition=0, headers=[(HEADER, stamp)])
        return int((await sent).offset)

    async def serve(self, link: KafkaLink) -> None:
        """Hand the frames of a link to the producer, one after the other. Ends by cancellation."""
        while True:
            await self._ready.wait()
            payload = link.next()
            if payload is None:
                link.wanted.clear()
                await link.wanted.wait()
                continue
            if len(payload) > link.limit:
                reason = f"{len(payload)} bytes, the peer takes {link.limit}"
                self._endpoint.lost(link, [link.withdraw()], reason)
                continue
            if not link.known:
                await self._find(link)
            await self._hand(link, payload)

    async def _hand(self, link: KafkaLink, payload: bytes) -> None:
        generation, producer = self._generation, self._producer
        assert producer is not None
        try:
            sent = await producer.send(link.topic, payload, partition=0, headers=self._headers)
        except (errors.KafkaTimeoutError, errors.UnknownTopicOrPartitionError) as error:
            # Nothing was taken: the brokers are away, or the inbox went.
            self._endpoint.problem(f"to {link.peer.id}", describe(error))
            link.known = False
        except errors.KafkaError as error:
            if is_poison(error):
                self._refuse(link, [link.withdraw()], error)
            else:
                self._renew(error)
        else:
            # Of a producer that was replaced in the meantime we take no promise.
            if generation == self._generation:
                flight = link.handed(generation)
                sent.add_done_callback(partial(self._landed, link, flight, generation))

    async def _find(self, link: KafkaLink) -> None:
        """Wait until the peer's inbox is there: a producer that asks would create it wrongly."""
        pause, about = FIRST_PAUSE, f"to {link.peer.id}"
        while not link.known:
            try:
                link.known = await self._endpoint.inbox_exists(link.topic)
                trouble = f"{link.peer} has no inbox: the topic {link.topic} is not there"
            except FAILURES as error:
                trouble = f"{link.topic}: {describe(error)}"
            if not link.known:
                self._endpoint.problem(about, trouble)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        self._endpoint.problem(about, None)

    def _landed(
        self, link: KafkaLink, flight: Flight, generation: int, sent: "asyncio.Future[Any]"
    ) -> None:
        error = None if sent.cancelled() else sent.exception()
        if generation != self._generation or self._closed or not link.flies(flight):
            return  # sent again by a later producer, or given up
        if sent.cancelled():
            self._renew(asyncio.CancelledError("the producer gave a frame up"))
        elif error is None:
            link.landed(flight)
            link.acknowledged += 1
            self._endpoint.acknowledged()
        else:
            if is_too_large(error) and not link.alone:
                # The batch is too large, and only frames that go alone tell which of them is.
                link.alone = len(link.flights)
            elif is_poison(error):
                link.landed(flight)
                self._refuse(link, [flight.payload], error)
            # The brokers expect the numbers of the refused batch: a new producer starts anew.
            self._renew(error)

    def _refuse(self, link: KafkaLink, payloads: list[bytes], error: BaseException) -> None:
        if isinstance(error, errors.TopicAuthorizationFailedError):
            payloads += link.pending()  # the same would be said of each
        self._endpoint.lost(link, payloads, describe(error))

    # -- a producer that broke ------------------------------------------------------------

    def _renew(self, error: BaseException) -> None:
        if self._closed or not self._ready.is_set():
            return
        logger.warning(
            "the producer of %s broke and is made anew, what it left open is sent again: %s",
            self._lane.value,
            describe(error),
        )
        self._ready.clear()
        self._generation += 1
        old, self._producer = self._producer, None
        if old is not None:
            # At once: what it still holds must not get in between what is sent again.
            drop_producer(old)
            ending = asyncio.ensure_future(end_producer(old))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        for link in self._endpoint.links_of(self._lane):
            link.sent = 0
            if link.task is not None:
                link.task.cancel()  # it may wait inside the old producer
            link.task = self._endpoint.spawn(self.serve(link))
        self._endpoint.spawn(self._start_again())

    async def _start_again(self) -> None:
        pause = FIRST_PAUSE
        while not self._closed:
            try:
                # Shielded, because a cancelled start leaves connections behind.
                starting = asyncio.ensure_future(self.start())
                self._ending.add(starting)
                starting.add_done_callback(self._ending.discard)
                await asyncio.shield(starting)
                self._endpoint.problem(f"producer of {self._lane.value}", None)
                return
            except FAILURES as error:
                self._endpoint.problem(f"producer of {self._lane.value}", describe(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    # -- the end --------------------------------------------------------------------------

    def drop(self) -> None:
        """Send nothing more, from now on. Safe to repeat."""
        self._closed = True
        self._ready.clear()
        if self._producer is not None:
            drop_producer(self._producer)

    async def end(self) -> None:
        """Wait until everything that was dropped has let go."""
        while self._ending:
            await asyncio.wait([*self._ending])
        if self._producer is not None:
            await end_producer(self._producer)
