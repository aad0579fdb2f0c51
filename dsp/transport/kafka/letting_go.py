"""Ends aiokafka's clients within a bounded time, whatever the brokers do.

Their own ``stop`` waits for what is not acknowledged, for as long as the brokers are away, and a
client that is dropped without it warns when it is collected. What cannot be sent is ours to report
(``Undelivered``), so here nothing is waited for but connections. All use of the private parts of
aiokafka is in this file.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection

__all__ = [
    "AbruptConnection",
    "cut",
    "drop_producer",
    "end_producer",
    "drop_consumer",
    "end_consumer",
    "fetching_failed",
]

logger = logging.getLogger(__name__)

PATIENCE = 2.0


def drop_producer(producer: AIOKafkaProducer) -> None:
    """Cut a producer off its brokers, at once: nothing that it holds is sent after this."""
    producer._closed = True
    if (task := producer._sender.sender_task) is not None:
        task.cancel()
    _cut(producer.client)


async def end_producer(producer: AIOKafkaProducer) -> None:
    """Wait until a dropped producer has let go of everything."""
    task = producer._sender.sender_task
    # Cancelled once, it waits for requests on their way; those wait for news of brokers, which
    # nobody brings any more. Each further cancel ends one such wait.
    for _ in range(100):
        if task is None or task.done():
            break
        task.cancel()
        await asyncio.wait([task], timeout=0.05)
    await _settle(producer.client.close(), "a producer's client")


def drop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Cut a consumer off its brokers, at once."""
    consumer._closed = True
    if consumer._fetcher is not None:
        # Before its connections go, or it would log an error for each.
        for task in (consumer._fetcher._fetch_task, *consumer._fetcher._pending_tasks):
            task.cancel()
    _cut(consumer._client)


async def end_consumer(consumer: AIOKafkaConsumer) -> None:
    """Wait until a dropped consumer has let go of everything."""
    if consumer._coordinator is not None:
        await _settle(consumer._coordinator.close(), "a consumer's coordinator")
    if consumer._fetcher is not None:
        await _settle(consumer._fetcher.close(), "a consumer's fetcher")
    await _settle(consumer._client.close(), "a consumer's client")


def fetching_failed(consumer: AIOKafkaConsumer) -> BaseException | None:
    """Give what ended the task that fetches; ``getmany`` would wait for ever and say nothing."""
    task = consumer._fetcher.error_future
    if not task.done() or task.cancelled():
        return None
    error: BaseException | None = task.exception()
    return error


class AbruptConnection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka is not typed
    """A connection that closes without a word, also where aiokafka closes it by itself.

    With TLS a word would be waited for: brokers take their time after a refusal, and a loop that
    ends meanwhile leaves the socket open.
    """

    def close(self, reason: Any = None, exc: BaseException | None = None) -> Any:  # noqa: ANN401
        if self._writer is not None:
            self._writer.transport.abort()
        return super().close(reason, exc)


def cut(connection: AIOKafkaConnection) -> None:
    """Close a connection of a client without a word, as ``AbruptConnection`` does."""
    if connection._writer is not None:
        connection._writer.transport.abort()
    connection.close()


def _cut(client: AIOKafkaClient) -> None:
    for connection in [*client._conns.values()]:
        cut(connection)


async def _settle(ending: Coroutine[Any, Any, None], what: str) -> None:
    # A task of its own: where aiokafka cancels a task and then awaits it, the CancelledError that
    # comes out is not ours.
    task = asyncio.ensure_future(ending)
    try:
        await asyncio.wait([task], timeout=PATIENCE)
    finally:
        if not task.done():
            task.cancel()
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        logger.debug("closing %s: %r", what, error)
