"""What cannot work over Kafka is said soon, and with the setting to change."""

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dsp.config import TransportConfig
from dsp.config.kafka import KafkaConfig
from dsp.core.types import Lane, NodeId
from dsp.errors import ConfigError, ConnectError
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from dsp.testing.kafka.process import free_ports
from dsp.transport.kafka.endpoint import KafkaTransport
from dsp.transport.kafka.names import topic_of
from tests.contract.kafka_contract import fresh_prefix, own_broker
from tests.kafka_security import GUEST, MOST_REQUEST_BYTES, Secrets

pytestmark = pytest.mark.asyncio

NODE = NodeId("a")


@pytest.fixture
def broker(kafka_broker: KafkaBroker | ExternalBroker) -> KafkaBroker:
    return own_broker(kafka_broker)


def make(url: str, kafka: dict[str, Any] | None = None, **settings: Any) -> KafkaTransport:  # noqa: ANN401
    table = KafkaConfig.model_validate(kafka or {})
    config = TransportConfig(url=url, kafka=table, **settings)
    return KafkaTransport.from_config(config, NODE)


def connections_to(url: str) -> list[object]:
    """Give the connections of this process to the broker of a URL."""
    _, _, port = url.removeprefix("kafka://").partition("/")[0].rpartition(":")
    every = psutil.Process().net_connections("tcp")
    return [each for each in every if each.raddr and each.raddr.port == int(port)]


async def refusal(
    url: str,
    kafka: dict[str, Any] | None = None,
    **settings: Any,  # noqa: ANN401
) -> str:
    """Start an endpoint that cannot start; give what it says."""
    endpoint = make(url, kafka, **{"connect_timeout": 20.0, **settings})
    with pytest.raises(ConnectError) as caught:
        async with asyncio.timeout(40.0):
            await endpoint.start()
    await endpoint.aclose()
    await asyncio.sleep(0)  # asyncio closes what was aborted in the next step
    assert connections_to(url) == [], "a connection that was refused is left open"
    text = str(caught.value)
    assert "wonder-land" not in text, "a secret is printed"
    return text


async def test_nobody_listens() -> None:
    url = f"kafka://127.0.0.1:{free_ports(1)[0]}/p"
    text = await refusal(url)
    assert url in text
    assert "Connect call failed" in text


async def test_somebody_listens_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"kafka://127.0.0.1:{silent.getsockname()[1]}/p"
        text = await refusal(url, connect_timeout=1.0)
        assert url in text
        assert "no answer from 127.0.0.1" in text


async def test_somebody_listens_with_tls_and_says_nothing(kafka_secrets: Secrets) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(kafka_secrets.folder / "broker.pem")
    deaf: list[asyncio.StreamWriter] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        deaf.append(writer)
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()

    async with await asyncio.start_server(hear, "127.0.0.1", 0, ssl=context) as server:
        url = f"kafka://127.0.0.1:{server.sockets[0].getsockname()[1]}/p"
        text = await refusal(url, kafka_secrets.settings("SECURE"), connect_timeout=1.0)
        assert "no answer from 127.0.0.1" in text
        for writer in deaf:
            writer.transport.abort()
    assert deaf


@pytest.mark.parametrize(
    ("listener", "changes", "words"),
    [
        ("SASL", {"password_file": "wrong-password"}, ["password_file", "username"]),
        (
            "SASL",
            {"password_file": "wrong-password", "sasl_mechanism": "PLAIN"},
            ["password_file", "username"],
        ),
        ("SASL", {"username": "nobody"}, ["password_file", "username"]),
        ("SECURE", {"password_file": "wrong-password"}, ["password_file", "username"]),
        ("SECURE", {"sasl_mechanism": "PLAIN"}, ["transport.kafka.sasl_mechanism"]),
        ("SECURE", {"ca_file": "other-ca.pem"}, ["transport.kafka.ca_file", "verify failed"]),
        ("SECURE", {"ca_file": None}, ["transport.kafka.ca_file", "verify failed"]),
        ("EXPIRED", {}, ["transport.kafka.ca_file", "expired"]),
        ("ELSEWHERE", {}, ["transport.url", "127.0.0.1"]),
        ("MUTUAL", {"certificate_file": None, "key_file": None}, ["certificate_file"]),
        ("SASL", {"security_protocol": "PLAINTEXT"}, ["transport.kafka.security_protocol"]),
        ("PLAINTEXT", {"security_protocol": "SSL"}, ["transport.kafka.security_protocol"]),
    ],
)
async def test_security_that_does_not_fit(
    broker: KafkaBroker,
    kafka_secrets: Secrets,
    listener: str,
    changes: dict[str, Any],
    words: list[str],
) -> None:
    files = {
        key: str(kafka_secrets.folder / value)
        for key, value in changes.items()
        if key.endswith("file") and value is not None
    }
    kafka = kafka_secrets.settings(listener, **{**changes, **files})
    text = await refusal(f"kafka://{broker.address(listener)}/{fresh_prefix()}", kafka)
    assert [word for word in words if word not in text] == [], text


async def test_a_plain_client_at_a_port_for_tls(broker: KafkaBroker) -> None:
    text = await refusal(f"kafka://{broker.address('SECURE')}/{fresh_prefix()}")
    assert "transport.kafka.security_protocol" in text


@pytest.mark.parametrize("listener", ["SASL", "SECURE", "MUTUAL"])
async def test_security_that_fits(
    broker: KafkaBroker, kafka_secrets: Secrets, listener: str
) -> None:
    url = f"kafka://{broker.address(listener)}/{fresh_prefix()}"
    async with make(url, kafka_secrets.settings(listener)) as endpoint:
        await endpoint.send(endpoint.contact, b"note", lane=Lane.DATA)
        assert "wonder" not in repr(endpoint.contact)
        await endpoint.receive(Lane.DATA)


async def test_plain_sasl_fits_too(broker: KafkaBroker, kafka_secrets: Secrets) -> None:
    kafka = kafka_secrets.settings("SASL", sasl_mechanism="PLAIN")
    async with make(f"kafka://{broker.address('SASL')}/{fresh_prefix()}", kafka):
        pass


async def test_a_user_without_rights(broker: KafkaBroker, kafka_secrets: Secrets) -> None:
    kafka = kafka_secrets.settings("SASL", username=GUEST)
    text = await refusal(f"kafka://{broker.address('SASL')}/{fresh_prefix()}", kafka)
    assert "lacks a right" in text
    assert "transport.kafka.username" in text


@pytest.mark.parametrize(
    ("kafka", "words"),
    [
        ({"password_file": "/no/such/file"}, ["transport.kafka.password_file", "/no/such/file"]),
        ({"password_file": "/dev/null"}, ["transport.kafka.password_file", "empty"]),
        ({"ca_file": "/no/such/file"}, ["transport.kafka.ca_file"]),
        ({"ca_file": "/dev/null"}, ["transport.kafka.ca_file"]),
        ({"certificate_file": "/no/such/file"}, ["transport.kafka.certificate_file"]),
    ],
)
async def test_files_that_cannot_be_used(
    kafka_secrets: Secrets, kafka: dict[str, Any], words: list[str]
) -> None:
    text = await refusal("kafka://127.0.0.1:1/p", kafka_secrets.settings("SECURE", **kafka))
    assert [word for word in words if word not in text] == [], text


async def test_settings_that_do_not_go_together() -> None:
    for kafka, words in (
        ({"security_protocol": "SASL_SSL"}, ["kafka.username", "kafka.password_file"]),
        ({"ca_file": "/x"}, ["kafka.ca_file", "no effect"]),
        ({"security_protocol": "SSL", "key_file": "/x"}, ["kafka.certificate_file"]),
    ):
        with pytest.raises(ConfigError) as caught:
            make("kafka://127.0.0.1:1/p", kafka)
        assert [word for word in words if word not in str(caught.value)] == []


# -- topics that are not as they must be ------------------------------------------------------

Admin = Callable[[AIOKafkaAdminClient], Awaitable[Any]]


async def with_admin(broker: KafkaBroker, work: Admin) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await work(admin)
    finally:
        await admin.close()


async def test_a_topic_with_more_partitions(broker: KafkaBroker) -> None:
    prefix = fresh_prefix()
    topic = topic_of(prefix, NODE, Lane.DATA)
    await with_admin(broker, lambda admin: admin.create_topics([NewTopic(topic, 3, 1)]))
    text = await refusal(f"kafka://{broker.bootstrap}/{prefix}")
    assert "3 partitions" in text
    assert "transport.url" in text


async def test_a_topic_for_smaller_messages(broker: KafkaBroker) -> None:
    prefix = fresh_prefix()
    topic = topic_of(prefix, NODE, Lane.DATA)
    small = NewTopic(topic, 1, 1, topic_configs={"max.message.bytes": "100000"})
    await with_admin(broker, lambda admin: admin.create_topics([small]))
    text = await refusal(f"kafka://{broker.bootstrap}/{prefix}")
    assert "transport.max_frame_bytes" in text
    assert "max.message.bytes" in text


async def test_a_broker_for_smaller_requests(broker: KafkaBroker) -> None:
    size = MOST_REQUEST_BYTES * 2
    text = await refusal(
        f"kafka://{broker.bootstrap}/{fresh_prefix()}",
        max_frame_bytes=size,
        send_queue_bytes=size,
        receive_queue_bytes=size,
    )
    assert "transport.max_frame_bytes" in text
    assert "socket.request.max.bytes" in text


async def test_more_copies_than_brokers(broker: KafkaBroker) -> None:
    url = f"kafka://{broker.bootstrap}/{fresh_prefix()}"
    text = await refusal(url, {"replication_factor": 5})
    assert "transport.kafka.replication_factor" in text


async def test_a_prefix_of_another_application(broker: KafkaBroker) -> None:
    prefix = fresh_prefix()
    topic = topic_of(prefix, NODE, Lane.CONTROL)
    await with_admin(broker, lambda admin: admin.create_topics([NewTopic(topic, 1, 1)]))
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
    await producer.start()
    await producer.send_and_wait(topic, b"a bill")
    await producer.stop()
    text = await refusal(f"kafka://{broker.bootstrap}/{prefix}", max_frame_bytes=1000 * 1000)
    assert "another application" in text
    assert "transport.url" in text


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("kafka:///p", "is not kafka://"),
        ("kafka://h:1/a/b", "the prefix"),
        ("kafka://h:1/_x", "the prefix"),
        ("kafka://h:1/p?acks=1", "nothing belongs after"),
        (f"kafka://h:1/{'x' * 248}", "249"),
    ],
)
async def test_urls_that_make_no_sense(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make(url)


# -- a broker that is too old -----------------------------------------------------------------


async def test_an_old_broker(tmp_path: Path) -> None:
    """It knows Metadata and Produce in their first versions, and no creation of topics."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (size,) = struct.unpack("!i", await reader.readexactly(4))
        request = await reader.readexactly(size)
        (correlation,) = struct.unpack_from("!i", request, 4)
        keys = [(0, 0, 1), (1, 0, 1), (3, 0, 0), (18, 0, 0)]
        answer = struct.pack("!ihi", correlation, 0, len(keys))
        answer += b"".join(struct.pack("!hhh", *key) for key in keys)
        writer.write(struct.pack("!i", len(answer)) + answer)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        text = await refusal(f"kafka://127.0.0.1:{port}/p")
    assert "too old" in text
    assert "3.3" in text
