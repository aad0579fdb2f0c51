"""A Kafka topic as a sink."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dsp.stream.kafka_topic import KafkaTopic, make_form
from dsp.stream.sinks.base import PartlyWritten, Sink

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from dsp.config.kafka import KafkaConfig

__all__ = ["KafkaSink"]

logger = logging.getLogger(__name__)

PAUSE = 0.5


class KafkaSink(Sink):
    """Writes values to a topic. They are done when all copies that have to be in sync have them.

    Each record carries its identity as the header ``dsp-id``, in hex: after a crash records come
    again, and whoever reads the topic can tell by it. While no broker answers, it waits, and holds
    the pipeline back. A record that the brokers refuse (too large, no right) is a dead letter.

    Args:
        url: ``kafka://host:port,host:port/topic``.
        values: ``"json"``, ``"text"``, ``"bytes"``, or a protobuf message class.
        key: gives the key of a record, text or bytes: records of one key keep their order. Without
            it they go to any partition.
        settings: security, patience and compression, as in the table ``[transport.kafka]``.
    """

    blocking = False

    def __init__(
        self,
        url: str,
        *,
        values: "str | type[Message]" = "json",
        key: Callable[[Any], str | bytes] | None = None,
        settings: "KafkaConfig | None" = None,
    ) -> None:
        self.topic = KafkaTopic(url, settings)
        self.dump = make_form(values).dump
        self.key = key
        self._producer: Any = None

    async def open(self) -> None:
        from dsp.transport.kafka.errors import map_errors

        await self.topic.partitions()
        with map_errors(self.topic.url, self.topic.settings):
            await self._start()

    async def _start(self) -> None:
        from aiokafka import AIOKafkaProducer

        compression = self.topic.settings.compression
        producer = AIOKafkaProducer(
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            compression_type=None if compression == "none" else compression,
            **self.topic.options(),
        )
        await producer.start()
        self._producer = producer

    async def write(self, values: Any, ids: Sequence[int]) -> None:  # noqa: ANN401
        dump, key = self.dump, self.key
        # All of them first: of a batch with a bad value nothing is sent.
        waiting = [
            (dump(value), _bytes(key(value)) if key is not None else None, f"{each:x}".encode())
            for value, each in zip(values, ids, strict=True)
        ]
        while waiting:
            waiting = await self._send(waiting)

    async def _send(self, records: list[Any]) -> list[Any]:
        """Send records; give those that have to be sent again, once that makes sense."""
        from dsp.transport.kafka.errors import FAILURES, describe, is_poison

        sent = []
        try:
            if self._producer is None:
                await self._start()
            for value, key, each in records:
                headers = [("dsp-id", each)]
                sent.append(await self._producer.send(self.topic.name, value, key, headers=headers))
        except FAILURES as error:
            if is_poison(error):
                # This one is not even sent; what went before it is not sent twice.
                await asyncio.gather(*sent)
                raise PartlyWritten(len(sent)) from error
            logger.warning("%s: %s; sent again", self.topic.url, describe(error))
        outcomes = await asyncio.gather(*sent, return_exceptions=True)
        again = records[len(sent) :]
        refused: BaseException | None = None
        for record, outcome in zip(records, outcomes, strict=False):
            if isinstance(outcome, BaseException):
                refused = outcome if is_poison(outcome) else refused
                again.append(record)
        if refused is not None:
            raise refused
        if again:
            logger.warning("%s: %d records are sent again", self.topic.url, len(again))
            # An idempotent producer that failed once may not go on.
            await self.close()
            await asyncio.sleep(PAUSE)
        return again

    async def close(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()


def _bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key
