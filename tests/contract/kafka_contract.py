"""``kafka://`` as the contract suite uses it: a fresh prefix for each test."""

import itertools
import os
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from dsp.config import TransportConfig
from dsp.config.kafka import KafkaConfig
from dsp.core.types import Lane
from dsp.testing.contract import ContractHarness
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from dsp.transport.base import Transport
from dsp.transport.kafka.names import parse_url, topic_of
from tests.kafka_security import Secrets

_PREFIXES = itertools.count()


def fresh_prefix() -> str:
    """Give a prefix that no other test has used, on this broker or before."""
    return f"test-{os.getpid()}-{os.urandom(3).hex()}-{next(_PREFIXES)}"


class KafkaHarness(ContractHarness):
    """``kafka://`` on the broker of the session, plain."""

    patience = 20.0
    grace = 0.4
    cancel_steps = range(0, 50, 2)

    @pytest.fixture(autouse=True)
    def _on_a_broker(self, kafka_broker: KafkaBroker | ExternalBroker) -> None:
        self.broker = kafka_broker
        self.prefix = fresh_prefix()

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        return TransportConfig(url=f"kafka://{self.broker.bootstrap}/{self.prefix}", **settings)

    async def send_garbage(self, endpoint: Transport) -> None:
        address = parse_url(endpoint.contact.address)
        producer = AIOKafkaProducer(bootstrap_servers=self.broker.bootstrap)
        await producer.start()
        try:
            for lane in Lane:
                topic = topic_of(address.prefix, endpoint.contact.id, lane)
                for headers in (
                    [],
                    [("other", b"application")],
                    [("dsp", b"")],
                    [("dsp", os.urandom(40))],
                    [("dsp", b"\x02" + bytes(40))],
                    [("dsp", b"\x01\x00" + bytes(8) + b"\xff\xff\xff\xff")],
                    [("dsp", b"\x01\x00" + bytes(8) + b"\x00\x01\x00\x01\xff\xff")],
                    [("dsp", b"\x01\x07" + bytes(8) + b"\x00\x01\x00\x01ab")],
                ):
                    await producer.send_and_wait(topic, os.urandom(100), headers=headers)
        finally:
            await producer.stop()


class SecuredKafkaHarness(KafkaHarness):
    """``kafka://`` with SCRAM over TLS."""

    peers_at_once = 10
    slow_frames = 1000
    cancel_steps = range(0, 50, 12)

    @pytest.fixture(autouse=True)
    def _with_secrets(self, kafka_secrets: Secrets) -> None:
        self.secrets = kafka_secrets
        own_broker(self.broker)

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        url = f"kafka://{own_broker(self.broker).address('SECURE')}/{self.prefix}"
        kafka = KafkaConfig.model_validate(self.secrets.settings("SECURE"))
        return TransportConfig(url=url, kafka=kafka, **settings)


def own_broker(broker: KafkaBroker | ExternalBroker) -> KafkaBroker:
    """Give the broker if it is ours; skip the test if it has only the port that was named."""
    if isinstance(broker, ExternalBroker):
        pytest.skip("DSP_KAFKA_BOOTSTRAP names a broker that is not ours")
    return broker
