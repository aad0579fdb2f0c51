"""The receiving half of a lane: one consumer of one inbox, and the commits of what is done.

One task reads, and nobody cancels it while the endpoint is open. It asks for nothing while the
layer above has no room: the log waits.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition, errors

from dsp.core.types import Lane, Peer
from dsp.errors import CodecError, ConnectError
from dsp.transport.kafka.errors import describe
from dsp.transport.kafka.letting_go import drop_consumer, end_consumer, fetching_failed
from dsp.transport.kafka.offsets import Offsets
from dsp.transport.kafka.wire import Kind, Stamp, Stamps

__all__ = ["Inlet", "InletHooks"]

logger = logging.getLogger(__name__)

POLL_MS = 3000
MOST_RECORDS = 500
COMMIT_FRAMES = 10_000
PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class InletHooks:
    """What an inlet needs of its endpoint.

    Attributes:
        has_room: tells whether a frame of this size would be taken now.
        arrived: takes a frame: its sender, lane, payload and offset.
        greeted: is told that an endpoint of our id opened the inbox, maybe we, and at which offset.
        rejected: is told of a record that makes no sense, and why.
        problem: is told what is wrong about something, or, with None, that it is right again.
    """

    has_room: Callable[[Lane, int], bool]
    arrived: Callable[[Peer, Lane, bytes, int], None]
    greeted: Callable[[Stamp, int], None]
    rejected: Callable[[Lane, str], None]
    problem: Callable[[str, str | None], None]


class Inlet:
    """The inbox of a lane.

    Args:
        lane: which one.
        topic: its topic.
        endpoint: what it needs of its endpoint.
        make: makes a consumer that is not started.
        max_frame_bytes: the largest payload that is taken.
        commit_interval: seconds for which commits are gathered.
    """

    def __init__(
        self,
        lane: Lane,
        topic: str,
        endpoint: InletHooks,
        make: Callable[[], AIOKafkaConsumer],
        *,
        max_frame_bytes: int,
        commit_interval: float,
    ) -> None:
        self._lane = lane
        self._inbox = TopicPartition(topic, 0)
        self._endpoint = endpoint
        self._make = make
        self._most = max_frame_bytes
        self._interval = commit_interval
        self._consumer: AIOKafkaConsumer | None = None
        self._offsets = Offsets(0)
        self._stamps = Stamps()
        self.space = asyncio.Event()
        """Set by the endpoint when its queue has room again."""
        self._dirty = asyncio.Event()
        self._many = asyncio.Event()
        self._uncommitted = 0
        self._committing = asyncio.Lock()

    async def start(self) -> None:
        """Connect, and find out where to go on. Not to be cancelled: aiokafka would leak.

        Raises:
            ConnectError: the inbox holds what others wrote.
            KafkaError: or another failure of the brokers.
        """
        consumer = self._consumer = self._make()
        consumer.assign([self._inbox])
        await consumer.start()
        committed = await consumer.committed(self._inbox)
        if committed is None:
            committed = (await consumer.beginning_offsets([self._inbox]))[self._inbox]
            await self._check_owner(consumer, committed)
        consumer.seek(self._inbox, committed)
        self._offsets = Offsets(committed)

    async def _check_owner(self, consumer: AIOKafkaConsumer, first: int) -> None:
        """The first record of an inbox is from its owner or a peer, unless others use the name."""
        end = (await consumer.end_offsets([self._inbox]))[self._inbox]
        if end <= first:
            return
        consumer.seek(self._inbox, first)
        found = await consumer.getmany(self._inbox, timeout_ms=POLL_MS, max_records=1)
        for record in found.get(self._inbox, ()):
            try:
                self._stamps.read(record.headers)
            except CodecError as error:
                raise ConnectError(
                    f"the topic {self._inbox.topic} begins with {error}: another application uses "
                    f"this name, change the prefix in transport.url"
                ) from error

    # -- reading --------------------------------------------------------------------------

    async def read(self) -> None:
        """Move records from the log to the endpoint. Ends by cancellation."""
        consumer = self._consumer
        assert consumer is not None
        while True:
            await self._room(1)
            try:
                found = await consumer.getmany(
                    self._inbox, timeout_ms=POLL_MS, max_records=MOST_RECORDS
                )
            except errors.OffsetOutOfRangeError as error:
                await self._skip_what_is_gone(consumer, error)
                continue
            except errors.KafkaError as error:
                if not error.retriable:
                    raise
                self._endpoint.problem(f"inbox of {self._lane.value}", describe(error))
                await asyncio.sleep(PAUSE)
                continue
            if not found and (failure := fetching_failed(consumer)) is not None:
                raise failure
            for record in found.get(self._inbox, ()):
                await self._take(record)

    async def _room(self, size: int) -> None:
        while not self._endpoint.has_room(self._lane, size):
            self.space.clear()
            await self.space.wait()

    async def _take(self, record: ConsumerRecord) -> None:
        try:
            stamp = self._stamps.read(record.headers)
            if record.value is None or len(record.value) > self._most:
                raise CodecError(
                    "a record without a value"
                    if record.value is None
                    else f"a frame of {len(record.value)} bytes, over {self._most}"
                )
        except CodecError as error:
            self._offsets.took(record.offset, done=True)
            self._endpoint.rejected(self._lane, str(error))
            self._mark_dirty()
            return
        if stamp.kind is Kind.HELLO:
            self._offsets.took(record.offset, done=True)
            self._endpoint.greeted(stamp, record.offset)
            return
        if not self._endpoint.has_room(self._lane, len(record.value)):
            await self._room(len(record.value))
        self._offsets.took(record.offset)
        self._endpoint.arrived(stamp.peer, self._lane, record.value, record.offset)

    async def _skip_what_is_gone(
        self, consumer: AIOKafkaConsumer, error: errors.OffsetOutOfRangeError
    ) -> None:
        what = (
            f"the topic {self._inbox.topic} no longer has the records that come next "
            f"({describe(error)}): they were kept for transport.kafka.retention_ms, or the topic "
            f"was made anew; going on with the oldest that there is"
        )
        logger.error("%s", what)
        self._endpoint.problem(f"retention of {self._lane.value}", what)
        await consumer.seek_to_beginning(self._inbox)

    # -- committing -----------------------------------------------------------------------

    def done(self, offset: int) -> None:
        """A frame is dealt with."""
        self._offsets.done(offset)
        self._mark_dirty()

    def _mark_dirty(self) -> None:
        self._uncommitted += 1
        if self._uncommitted == 1:
            self._dirty.set()
        elif self._uncommitted == COMMIT_FRAMES:
            self._many.set()

    async def keep_committing(self) -> None:
        """Commit what is done, a while after it is. Ends by cancellation."""
        about = f"commits of {self._lane.value}"
        while True:
            await self._dirty.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._many.wait()
            self._dirty.clear()
            self._many.clear()
            self._uncommitted = 0
            try:
                await self.commit()
                self._endpoint.problem(about, None)
            except errors.KafkaError as error:
                self._endpoint.problem(about, describe(error))
                self._dirty.set()
                await asyncio.sleep(PAUSE)

    async def commit(self) -> None:
        """Commit what is done; return when the brokers have it.

        Raises:
            KafkaError: the brokers refuse.
        """
        async with self._committing:
            position = self._offsets.to_commit()
            if position is not None and self._consumer is not None:
                await self._consumer.commit({self._inbox: position})
                self._offsets.committed(position)

    # -- the end --------------------------------------------------------------------------

    def drop(self) -> None:
        """Read nothing more, from now on. Safe to repeat."""
        if self._consumer is not None:
            drop_consumer(self._consumer)

    async def end(self) -> None:
        """Wait until everything that was dropped has let go."""
        if self._consumer is not None:
            await end_consumer(self._consumer)
