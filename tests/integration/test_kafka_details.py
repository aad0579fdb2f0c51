"""What is special about Kafka: ids, inboxes that go, producers that break, records of others."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from dsp.config import TransportConfig
from dsp.config.kafka import KafkaConfig
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, PeerUnreachable
from dsp.testing.contract.harness import numbered, numbers
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from dsp.transport.base import Frame, HealthState, Transport, Undelivered
from dsp.transport.kafka.endpoint import KafkaTransport
from dsp.transport.kafka.names import topic_of
from tests.contract.kafka_contract import fresh_prefix
from tests.integration.kafka_stream import endpoints

pytestmark = pytest.mark.asyncio


@pytest.fixture
def bootstrap(kafka_broker: KafkaBroker | ExternalBroker) -> str:
    return kafka_broker.bootstrap


@pytest.fixture
def url(bootstrap: str) -> str:
    return f"kafka://{bootstrap}/{fresh_prefix()}"


async def eventually(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"not soon: {what}")


async def receive(endpoint: Transport, count: int, lane: Lane = Lane.DATA) -> list[int]:
    got: list[int] = []
    async with asyncio.timeout(20):
        while len(got) < count:
            inbound = await endpoint.receive(lane)
            if isinstance(inbound, Frame):
                endpoint.done(inbound)
                got += numbers([inbound.payload])
    return got


def problems(endpoint: Transport) -> str:
    return " ".join(endpoint.health().problems)


async def test_the_later_of_two_with_one_id_has_the_inbox(url: str) -> None:
    async with endpoints("a", "b", url=url) as (earlier, b), endpoints("a", url=url) as (later,):
        with pytest.raises(ClosedError, match=r"another endpoint with the id 'a'.*node\.id"):
            async with asyncio.timeout(20):
                await earlier.receive(Lane.CONTROL)
        assert earlier.health().state is HealthState.FAILED
        await b.send(later.contact, numbered(1), lane=Lane.DATA)
        assert await receive(later, 1) == [1]
        assert later.epoch > earlier.epoch


async def test_peers_that_cannot_be_reached(url: str, bootstrap: str) -> None:
    async with endpoints("a", url=url) as (a,):
        for address, words in (
            (f"kafka://{bootstrap}/other", "'other'"),
            (url.replace(bootstrap, "kafka.example.org:9092"), "other brokers"),
            (url + "?cluster=elsewhere", "other brokers"),
            ("tcp://127.0.0.1:1", "is not kafka://"),
        ):
            with pytest.raises(PeerUnreachable, match=words):
                await a.send(Peer(NodeId("b"), address), b"", lane=Lane.DATA)
        with pytest.raises(PeerUnreachable, match="249"):
            await a.send(Peer(NodeId("b" * 250), url), b"", lane=Lane.DATA)


async def test_names_that_kafka_does_not_take(url: str) -> None:
    """Ids that differ only in what Kafka does not take, or takes for the same, do not meet."""
    names = ["x.y", "x_y", "x-y", "x y", "x/y", "ü", "X.y"]
    async with endpoints(*names, url=url) as found:
        for number, endpoint in enumerate(found):
            await found[0].send(endpoint.contact, numbered(number), lane=Lane.DATA)
        for number, endpoint in enumerate(found):
            assert await receive(endpoint, 1) == [number]


async def test_what_a_peer_does_not_take_is_reported(url: str) -> None:
    async with (
        endpoints("a", url=url) as (a,),
        endpoints("b", url=url, max_frame_bytes=10_000) as (b,),
    ):
        for number, size in enumerate((100, 20_000, 100)):
            await a.send(b.contact, numbered(number, bytes(size)), lane=Lane.DATA)
        assert await receive(b, 2) == [0, 2]
        assert await undelivered(a) == [1]


async def undelivered(endpoint: Transport) -> list[int]:
    async with asyncio.timeout(20):
        while True:
            inbound = await endpoint.receive(Lane.CONTROL)
            if isinstance(inbound, Undelivered):
                return numbers(inbound.payloads)


async def admin_of(bootstrap: str) -> AIOKafkaAdminClient:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    return admin


async def test_a_frame_over_the_limit_of_the_topic(url: str, bootstrap: str) -> None:
    """Somebody lowers the limit: the large frame comes back, those around it arrive in order."""
    async with endpoints("a", "b", url=url) as (a, b):
        await a.send(b.contact, numbered(0), lane=Lane.DATA)
        assert await receive(b, 1) == [0]
        admin = await admin_of(bootstrap)
        topic = topic_of(url.rpartition("/")[2], b.contact.id, Lane.DATA)
        limits = {"max.message.bytes": "50000"}
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, limits)])
        await admin.close()
        await asyncio.sleep(0.5)  # a broker takes a new setting in its own time
        for number in range(1, 10):
            size = 100_000 if number == 5 else 100
            await a.send(b.contact, numbered(number, bytes(size)), lane=Lane.DATA)
        assert await undelivered(a) == [5]
        got = await receive(b, 8)
        assert got == [1, 2, 3, 4, 6, 7, 8, 9]


async def test_a_producer_that_breaks_is_replaced(url: str) -> None:
    """The brokers refuse its numbers: a new one sends what is open again, in order."""
    async with endpoints("a", "b", url=url) as (a, b):
        inbox = TopicPartition(topic_of(url.rpartition("/")[2], b.contact.id, Lane.DATA), 0)
        got: list[int] = []
        for number in range(300):
            await a.send(b.contact, numbered(number), lane=Lane.DATA)
            if number in (50, 150):
                await asyncio.sleep(0.05)
                producer = a._outlets[Lane.DATA]._producer
                assert producer is not None
                producer._txn_manager.increment_sequence_number(inbox, 7)
        got = await receive(b, 300)
        fresh = list(dict.fromkeys(got))
        assert fresh == list(range(300))
        assert a._outlets[Lane.DATA]._generation >= 1
        assert a.health().state is HealthState.OK


async def test_records_of_others_are_counted_and_told(url: str, bootstrap: str) -> None:
    async with endpoints("a", url=url) as (a,):
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        topic = topic_of(url.rpartition("/")[2], a.contact.id, Lane.DATA)
        await producer.send_and_wait(topic, b"a bill")
        await producer.stop()
        await eventually(
            lambda: a.statistics().lanes[Lane.DATA].rejected_frames == 1, "it is counted"
        )
        assert "transport.url" in problems(a)
        assert a.health().state is HealthState.DEGRADED
        await a.send(a.contact, numbered(1), lane=Lane.DATA)
        assert await receive(a, 1) == [1]


async def test_retired_for_good(url: str) -> None:
    async with endpoints("a", url=url) as (a,):
        async with endpoints("b", url=url) as (b,):
            for number in range(3):
                await a.send(b.contact, numbered(number), lane=Lane.DATA)
            await receive(b, 2)
            to = b.contact
            await b.retire()
            await b.retire()
        await eventually(lambda: not a.health().unacknowledged_frames, "three acknowledgements")
        async with endpoints("c", url=url) as (c,):
            # A link that knew the inbox waits in the producer; a new one asks first.
            await c.send(to, numbered(7), lane=Lane.DATA)
            await eventually(lambda: "has no inbox" in problems(c), "a word about the inbox")
            # Back under its id, it starts with an empty inbox.
            async with endpoints("b", url=url) as (b,):
                assert await receive(b, 1) == [7]
                await eventually(lambda: c.health().state is HealthState.OK, "health again")


async def test_an_inbox_that_somebody_deletes(url: str, bootstrap: str) -> None:
    async with endpoints("a", url=url) as (a,):
        admin = await admin_of(bootstrap)
        topic = topic_of(url.rpartition("/")[2], a.contact.id, Lane.DATA)
        await admin.delete_topics([topic])
        await admin.close()
        await eventually(lambda: f"is gone from the brokers: {topic}" in problems(a), "a word")


async def test_records_that_were_not_kept_long_enough(url: str, bootstrap: str) -> None:
    """The log is cut before what comes next: that is told, and reading goes on."""
    async with endpoints("a", url=url) as (a,):
        async with endpoints("b", url=url) as (b,):
            to = b.contact
            for number in range(5):
                await a.send(to, numbered(number), lane=Lane.DATA)
            assert await receive(b, 2) == [0, 1]
        admin = await admin_of(bootstrap)
        inbox = TopicPartition(topic_of(url.rpartition("/")[2], to.id, Lane.DATA), 0)
        await admin.delete_records({inbox: RecordsToDelete(4)})
        await admin.close()
        async with endpoints("b", url=url) as (b,):
            assert await receive(b, 1) == [4]
            assert "transport.kafka.retention_ms" in problems(b)


async def test_offsets_are_committed_while_it_runs(url: str) -> None:
    """Aborted, with no chance to commit, it has lost no more than an interval."""
    async with endpoints("a", url=url) as (a,):
        (b,) = await started("b", url, {"commit_interval": 0.05})
        for number in range(20):
            await a.send(b.contact, numbered(number), lane=Lane.DATA)
        await receive(b, 20)
        await asyncio.sleep(1.0)
        b.abort()
        await b.aclose()
        await a.send(b.contact, numbered(20), lane=Lane.DATA)
        async with endpoints("b", url=url) as (b,):
            assert await receive(b, 1) == [20]


async def started(node: str, url: str, kafka: dict[str, Any]) -> list[KafkaTransport]:
    config = TransportConfig(url=url, kafka=KafkaConfig.model_validate(kafka))
    endpoint = KafkaTransport.from_config(config, NodeId(node))
    await endpoint.start()
    return [endpoint]


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
async def test_compression(url: str, compression: str) -> None:
    (a,) = await started("a", url, {"compression": compression})
    try:
        await a.send(a.contact, numbered(1, bytes(100_000)), lane=Lane.DATA)
        assert await receive(a, 1) == [1]
    finally:
        await a.aclose()
