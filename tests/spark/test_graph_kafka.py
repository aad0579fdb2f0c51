"""Topics of a real Apache Kafka in a pipeline on Spark, by Spark's own connector."""

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

import dsp
from dsp.config import Config
from dsp.stream.sinks import KafkaSink
from dsp.stream.sources import KafkaSource
from dsp.testing.kafka import ExternalBroker, KafkaBroker
from tests.contract.kafka_contract import fresh_prefix
from tests.spark.graphs import on_spark

RECORDS = 300


async def make_topic(bootstrap: str) -> str:
    name = fresh_prefix()
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 3, 1)])
    finally:
        await admin.close()
    return name


async def send(bootstrap: str, topic: str, values: list[bytes | None]) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    try:
        for number, value in enumerate(values):
            await producer.send_and_wait(topic, value, key=b"k", partition=number % 3)
    finally:
        await producer.stop()


async def read(bootstrap: str, topic: str, count: int) -> list[Any]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    found: list[Any] = []
    try:
        async with asyncio.timeout(60):
            while len(found) < count:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    found += records
    finally:
        await consumer.stop()
    return found


def doubled(value: dict[str, int]) -> dict[str, int]:
    return {"n": value["n"] * 2}


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("spark_connector", "spark_session")
def test_from_topic_to_topic(kafka_broker: KafkaBroker | ExternalBroker, tmp_path: Path) -> None:
    bootstrap = kafka_broker.bootstrap
    source = asyncio.run(make_topic(bootstrap))
    target = asyncio.run(make_topic(bootstrap))
    config = Config.model_validate({"stream": {"state_directory": str(tmp_path)}})
    letters, seen = dsp.Collector(), dsp.Collector()

    def run() -> tuple[int, int]:
        job = dsp.Pipeline("topics")
        job.dead_letters(letters)
        numbers = job.source(
            KafkaSource(f"kafka://{bootstrap}/{source}", until_end=True), name="topic"
        )
        made = numbers.filter(bool, name="some").map(doubled)
        made.sink(KafkaSink(f"kafka://{bootstrap}/{target}", key=lambda v: str(v["n"])), name="out")
        made.sink(seen, name="seen")
        summary = on_spark(job, config)
        return summary.records_in, summary.operators["out"].records_out

    values: list[bytes | None] = [orjson.dumps({"n": n}) for n in range(RECORDS)]
    asyncio.run(send(bootstrap, source, [*values, b"no JSON", None]))
    assert run() == (RECORDS + 1, RECORDS)
    assert [letter["value"] for letter in letters.values] == ["no JSON"]
    # The next run goes on behind that.
    asyncio.run(send(bootstrap, source, [b'{"n": -1}']))
    assert run() == (1, 1)
    records = asyncio.run(read(bootstrap, target, RECORDS + 1))
    found = sorted(orjson.loads(record.value)["n"] for record in records)
    assert found == [-2, *range(0, 2 * RECORDS, 2)]
    told = {int(dict(record.headers)["dsp-id"], 16) for record in records}
    assert told == {*seen.ids}
    assert all(record.key.decode() == str(orjson.loads(record.value)["n"]) for record in records)
