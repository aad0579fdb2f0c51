"""The records of a Kafka topic."""

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Literal

from dsp.errors import ConfigError, ConnectError
from dsp.stream.batch import OFFSET_BITS
from dsp.stream.kafka_topic import KafkaTopic, make_form
from dsp.stream.sources.base import Chunk, Position, Source, SourceContext, Unreadable
from dsp.stream.sources.blocking import Kept
from dsp.stream.sources.lines import shown

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dsp.config.kafka import KafkaConfig

__all__ = ["KafkaSource"]

logger = logging.getLogger(__name__)

# An identity has room for this many partitions, and 2**36 records in each.
RECORD_BITS = 36
MOST_PARTITIONS = 1 << (OFFSET_BITS - RECORD_BITS)
WAIT_MS = 200


class KafkaSource(Source):
    """The records of all partitions of a topic. Replayable: a position has an offset for each.

    No consumer group: one application reads the whole topic, and how far it is stays in
    ``stream.state_directory``. A record without a value (a tombstone) is None; one that cannot be
    decoded is a dead letter. Partitions that are added to the topic later are read after the next
    start.

    Args:
        url: ``kafka://host:port,host:port/topic``.
        values: ``"json"``, ``"text"``, ``"bytes"``, or a protobuf message class.
        start: where the first run begins: ``"earliest"`` or ``"latest"``.
        until_end: whether to stop at the records that are there when it starts. Without it the
            source waits for more.
        settings: security and patience, as in the table ``[transport.kafka]``.
    """

    replayable = True

    def __init__(
        self,
        url: str,
        *,
        values: "str | type[Message]" = "json",
        start: Literal["earliest", "latest"] = "earliest",
        until_end: bool = False,
        settings: "KafkaConfig | None" = None,
    ) -> None:
        if start not in ("earliest", "latest"):
            raise ConfigError(f"start={start!r} of {url}: 'earliest' or 'latest'")
        self.topic = KafkaTopic(url, settings)
        self.load = make_form(values).load
        self.start = start
        self.until_end = until_end
        self._consumer: Any = None
        self._position: dict[str, int] = {}
        self._ends: dict[str, int] = {}
        self._reading: Kept[Any] = Kept()

    async def open(self, context: SourceContext, position: Position, count: int) -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        from dsp.transport.kafka.errors import map_errors

        topic = self.topic
        numbers = await topic.partitions()
        if numbers[-1] >= MOST_PARTITIONS:
            raise ConfigError(f"{topic.url}: more than {MOST_PARTITIONS} partitions")
        places = [TopicPartition(topic.name, number) for number in numbers]
        with map_errors(topic.url, topic.settings):
            consumer = self._consumer = AIOKafkaConsumer(
                enable_auto_commit=False,
                # Records that are gone must be told of, not passed over.
                auto_offset_reset="none",
                isolation_level="read_committed",
                **topic.options(),
            )
            await consumer.start()
            consumer.assign(places)
            first = await consumer.beginning_offsets(places)
            last = await consumer.end_offsets(places)
        begin = first if self.start == "earliest" else last
        before: dict[str, int] = position or {}
        self._position = {}
        for place in places:
            number = str(place.partition)
            offset = before.get(number, begin[place])
            if not first[place] <= offset <= last[place]:
                raise ConnectError(
                    f"{topic.url}: an earlier run stopped at record {offset} of partition "
                    f"{number}, and the brokers have {first[place]} to {last[place]}: records were "
                    "deleted before they were read. Keep them for longer (retention.ms), and "
                    "remove the offsets in stream.state_directory to go on with what is there"
                )
            consumer.seek(place, offset)
            self._position[number] = offset
        self._ends = {str(place.partition): last[place] for place in places}

    async def read(self, most: int) -> Chunk | None:
        from dsp.transport.kafka.errors import FAILURES, connect_error

        while not self.until_end or not self._at_end():
            try:
                found = await self._reading.get(
                    lambda: self._consumer.getmany(timeout_ms=WAIT_MS, max_records=most)
                )
                if found:
                    return self._chunk(found)
                # Nothing may have come because all that is left are marks of transactions.
                for place in self._consumer.assignment():
                    number = str(place.partition)
                    self._position[number] = await self._consumer.position(place)
            except FAILURES as error:
                raise connect_error(self.topic.url, error, self.topic.settings) from error
        return None

    def _at_end(self) -> bool:
        return all(self._position[number] >= end for number, end in self._ends.items())

    def _chunk(self, found: dict[Any, list[Any]]) -> Chunk:
        values: list[Any] = []
        offsets: list[int] = []
        failures: list[Unreadable] = []
        for place, records in found.items():
            base = place.partition << RECORD_BITS
            for record in records:
                if self.until_end and record.offset >= self._ends[str(place.partition)]:
                    continue
                identity = base | record.offset
                try:
                    data = record.value
                    values.append(None if data is None else self.load(data))
                    offsets.append(identity)
                except Exception as error:
                    where = f"{self.topic.url}, partition {place.partition}, {record.offset}"
                    raw = shown(record.value or b"")
                    failures.append(Unreadable(raw, f"{where}: {error}", identity))
            self._position[str(place.partition)] = records[-1].offset + 1
        return Chunk(values, dict(self._position), offsets, failures)

    async def close(self) -> None:
        await self._reading.cancel()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await asyncio.shield(consumer.stop())
