"""The topics of an endpoint: made at its first start, checked at each, deleted for good."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aiokafka import errors
from aiokafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
)

from dsp.errors import ConnectError
from dsp.transport.kafka.errors import connect_error
from dsp.transport.kafka.wire import RECORD_OVERHEAD

if TYPE_CHECKING:
    from dsp.config import TransportConfig
    from dsp.transport.kafka.broker import Broker

__all__ = ["BATCH_BYTES", "record_bytes", "open_topics", "delete_topics"]

BATCH_BYTES = 960 * 1024
"""Bytes of small frames that go as one batch; every inbox takes batches of this size.

A little less than Kafka's default limit, so that topics made by hand will do for such frames.
"""

_TOPIC, _BROKER = 2, 4
SETTLING = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0)
_RECORD_LIMIT = "max.message.bytes"
_REQUEST_LIMIT = "socket.request.max.bytes"


def record_bytes(max_frame_bytes: int) -> int:
    """Give the size of the largest batch in an inbox that takes frames up to this size."""
    return max(max_frame_bytes, BATCH_BYTES) + RECORD_OVERHEAD


async def open_topics(
    broker: "Broker", topics: Sequence[str], config: "TransportConfig"
) -> str | None:
    """Make the topics that are not there, check those that are; give the cluster's id.

    Raises:
        ConnectError: they cannot be made, or are not as they must be.
        KafkaError: or another failure to talk to the brokers.
    """
    errors_by_topic = await _create(broker, topics, config)
    # Without the right to create, topics that somebody else made for us will do.
    refused = (
        errors.TopicAuthorizationFailedError,
        errors.ClusterAuthorizationFailedError,
        errors.PolicyViolationError,
        errors.TopicAlreadyExistsError,
    )
    for topic, error in errors_by_topic.items():
        if not isinstance(error, refused):
            raise _creation_error(topic, error, config)
    found = await broker.topics(topics)
    for topic, error in errors_by_topic.items():
        _check_partitions(topic, found.get(topic, {}), error, config)
    await _check_limits(broker, topics, config)
    return (await broker.cluster())[0]


async def delete_topics(broker: "Broker", topics: Sequence[str], patience: float) -> None:
    """Delete topics; those that are not there are deleted already.

    Raises:
        KafkaError: the brokers refuse.
    """
    answer = await broker.ask(DeleteTopicsRequest([*topics], int(patience * 1000)))
    for topic, code in answer.topic_error_codes:
        error = errors.for_code(code)
        if error not in (errors.NoError, errors.UnknownTopicOrPartitionError):
            raise error(topic)


async def _create(
    broker: "Broker", topics: Sequence[str], config: "TransportConfig"
) -> dict[str, errors.KafkaError]:
    kafka = config.kafka
    settings = {
        _RECORD_LIMIT: str(record_bytes(config.max_frame_bytes)),
        "retention.ms": str(kafka.retention_ms),
        "cleanup.policy": "delete",
    }
    if kafka.min_insync_replicas:
        settings["min.insync.replicas"] = str(kafka.min_insync_replicas)
    wanted: list[Any] = [
        (topic, 1, kafka.replication_factor or -1, [], [*settings.items()]) for topic in topics
    ]
    timeout = int(kafka.request_timeout * 1000)
    answer = await broker.ask(CreateTopicsRequest(wanted, timeout, validate_only=False))
    found: dict[str, errors.KafkaError] = {}
    for topic, code, *message in answer.topic_errors:
        error = errors.for_code(code)
        if error is not errors.NoError:
            found[topic] = error(*filter(None, message))
    return found


def _creation_error(
    topic: str, error: errors.KafkaError, config: "TransportConfig"
) -> ConnectError:
    setting = "transport.url (its prefix)"
    if isinstance(error, errors.InvalidReplicationFactorError):
        setting = "transport.kafka.replication_factor"
    elif isinstance(error, errors.InvalidConfigurationError):
        setting = (
            "transport.max_frame_bytes, transport.kafka.retention_ms and "
            "transport.kafka.min_insync_replicas"
        )
    elif isinstance(error, errors.NotControllerError):
        return connect_error(config.url, error, config.kafka)
    return ConnectError(
        f"{config.url}: the brokers do not create the inbox {topic}: {error}. Check {setting}"
    )


def _check_partitions(
    topic: str, found: dict[str, Any], error: errors.KafkaError, config: "TransportConfig"
) -> None:
    partitions = found.get("partitions") or []
    if not partitions and not isinstance(error, errors.TopicAlreadyExistsError):
        raise connect_error(config.url, error, config.kafka)
    # Just created by another start of ours, a topic may be listed before its partition.
    if len(partitions) > 1:
        raise ConnectError(
            f"{config.url}: the topic {topic} has {len(partitions)} partitions, an inbox has 1: "
            f"another application uses these names (change the prefix in transport.url), or "
            f"the topic was made by hand (delete it)"
        )


async def _check_limits(broker: "Broker", topics: Sequence[str], config: "TransportConfig") -> None:
    needed = record_bytes(config.max_frame_bytes)
    resources: list[Any] = [(_TOPIC, topic, [_RECORD_LIMIT]) for topic in topics]
    for name, limit in (await _limits(broker, resources)).items():
        if limit < needed:
            raise ConnectError(
                f"{config.url}: the topic {name} takes batches of {limit} bytes, and "
                f"transport.max_frame_bytes = {config.max_frame_bytes} needs {needed}: lower "
                f"transport.max_frame_bytes, or raise {_RECORD_LIMIT} of the topic"
            )
    # Only a broker itself tells its settings.
    _, node = await broker.cluster()
    if node is not None:
        limits = await _limits(broker, [(_BROKER, str(node), [_REQUEST_LIMIT])])
        for name, limit in limits.items():
            if limit < needed + RECORD_OVERHEAD:
                raise ConnectError(
                    f"{config.url}: broker {name} takes requests of {limit} bytes, and "
                    f"transport.max_frame_bytes = {config.max_frame_bytes} needs "
                    f"{needed + RECORD_OVERHEAD}: lower transport.max_frame_bytes, or raise the "
                    f"broker's {_REQUEST_LIMIT}"
                )


async def _limits(broker: "Broker", resources: list[Any]) -> dict[str, int]:
    """Give a limit per resource; those that we may not see are left out."""
    for pause in (*SETTLING, None):
        answer = await broker.ask(DescribeConfigsRequest(resources))
        codes = {code for code, *_ in answer.resources}
        # A broker may not have heard yet of a topic that the controller has made.
        if pause is None or errors.UnknownTopicOrPartitionError.errno not in codes:
            break
        await asyncio.sleep(pause)
    return {
        name: int(entries[0][1])
        for code, _, _, name, entries in answer.resources
        if code == 0 and entries
    }
