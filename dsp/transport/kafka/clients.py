"""How aiokafka's clients are set up: what each is told, and why."""

from typing import TYPE_CHECKING, Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from dsp.transport.kafka.broker import Broker
from dsp.transport.kafka.inbox import BATCH_BYTES, record_bytes
from dsp.transport.kafka.security import client_options
from dsp.transport.kafka.wire import RECORD_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsp.config import TransportConfig

__all__ = ["Clients"]

RETRY_MS = 50
MOST_FETCH_BYTES = 8 * 1024 * 1024


class Clients:
    """Makes the clients of an endpoint; none is started.

    Args:
        config: settings; their files are read here, once.
        hosts: ``host:port`` of brokers.
        name: name of the endpoint towards the brokers, and of the group that keeps its offsets.

    Raises:
        ConnectError: a file with a secret or a certificate cannot be used.
    """

    def __init__(self, config: "TransportConfig", hosts: "Sequence[str]", name: str) -> None:
        self._config = config
        self._hosts = hosts
        self._name = name
        self._options = client_options(config.kafka)
        self._common: dict[str, Any] = {
            "bootstrap_servers": [*hosts],
            "client_id": name,
            "request_timeout_ms": int(config.kafka.request_timeout * 1000),
            "retry_backoff_ms": RETRY_MS,
            **self._options,
        }

    def broker(self) -> Broker:
        """Make the connection beside the data."""
        return Broker(
            self._hosts,
            self._options,
            client=self._name,
            connect_timeout=self._config.connect_timeout,
            request_timeout=self._config.kafka.request_timeout,
        )

    def producer(self) -> AIOKafkaProducer:
        """Make a producer that neither loses nor doubles nor reorders, as long as it lives."""
        compression = self._config.kafka.compression
        return AIOKafkaProducer(
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=BATCH_BYTES,
            max_request_size=self._config.max_frame_bytes + RECORD_OVERHEAD,
            compression_type=None if compression == "none" else compression,
            **self._common,
        )

    def consumer(self) -> AIOKafkaConsumer:
        """Make a consumer that commits when it is told, and holds one bounded fetch."""
        batch = record_bytes(self._config.max_frame_bytes)
        most = max(batch, min(self._config.receive_queue_bytes, MOST_FETCH_BYTES))
        return AIOKafkaConsumer(
            group_id=self._name,
            enable_auto_commit=False,
            # Records that are gone must be told of, not passed over.
            auto_offset_reset="none",
            max_partition_fetch_bytes=most,
            fetch_max_bytes=most,
            **self._common,
        )
