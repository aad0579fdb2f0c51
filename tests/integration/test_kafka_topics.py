"""A Kafka topic as source and as sink, on a real broker."""

import asyncio
from pathlib import Path

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import dsp
from dsp.errors import ConfigError, ConnectError
from dsp.stream.sinks import KafkaSink
from dsp.stream.sources import KafkaSource
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from tests.contract.kafka_contract import fresh_prefix
from tests.stream.runs import copied

pytestmark = pytest.mark.asyncio


@pytest.fixture
def bootstrap(kafka_broker: KafkaBroker | ExternalBroker) -> str:
    return kafka_broker.bootstrap


async def make_topic(bootstrap: str, partitions: int) -> str:
    name = fresh_prefix()
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1)])
    finally:
        await admin.close()
    return name


async def test_to_a_topic_and_back(bootstrap: str, tmp_path: Path) -> None:
    topic = await make_topic(bootstrap, 3)
    url = f"kafka://{bootstrap}/{topic}"
    values = [{"n": n} for n in range(3000)]
    sink = KafkaSink(url, key=lambda value: str(value["n"]))
    async with asyncio.timeout(100):
        for _ in range(20):  # a new topic may have no leader yet
            try:
                assert await copied(values, sink) == []
                break
            except ConnectError:
                await asyncio.sleep(0.5)
        state = str(tmp_path)
        out = dsp.Collector()
        source = KafkaSource(url, until_end=True)
        assert await copied(source, out, state_directory=state) == []
        assert sorted(value["n"] for value in out.values) == list(range(3000))
        assert out.repeats == 0

        # What comes later is read from where the first run ended; what is no JSON is told.
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
        await producer.start()
        await producer.send_and_wait(topic, b'{"n": -1}', partition=1)
        await producer.send_and_wait(topic, b"no JSON", partition=2)
        await producer.stop()
        later = dsp.Collector()
        letters = await copied(KafkaSource(url, until_end=True), later, state_directory=state)
        assert later.values == [{"n": -1}]
        assert [letter["value"] for letter in letters] == ["no JSON"]
        # Identities are those of partition and offset, whoever reads.
        again = dsp.Collector()
        await copied(KafkaSource(url, until_end=True), again)
        assert {*again.ids} == {*out.ids, *later.ids}

    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        record = await asyncio.wait_for(consumer.getone(), 50)
        headers = dict(record.headers)
        assert int(headers["dsp-id"], 16) == orjson.loads(record.value)["n"]
    finally:
        await consumer.stop()


async def test_what_is_wrong_with_a_topic_is_told(bootstrap: str) -> None:
    url = f"kafka://{bootstrap}/{fresh_prefix()}"
    with pytest.raises(ConnectError, match="there is no topic"):
        await copied(KafkaSource(url, until_end=True), dsp.Collector())
    with pytest.raises(ConnectError, match="there is no topic"):
        await copied([1], KafkaSink(url))
    with pytest.raises(ConfigError, match="names no topic"):
        KafkaSource(f"kafka://{bootstrap}")
    with pytest.raises(ConfigError, match="values='xml'"):
        KafkaSink(url, values="xml")
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1"):
        await copied([1], KafkaSink("kafka://127.0.0.1:1/topic"))
