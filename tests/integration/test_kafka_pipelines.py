"""Pipelines from and to topics while the broker is killed and comes back: records are counted."""

import asyncio
from collections import Counter
from collections.abc import Iterator

import orjson
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

import dsp
from dsp.config import Config
from dsp.errors import ConnectError
from dsp.stream.sinks import KafkaSink
from dsp.stream.sources import KafkaSource
from dsp.stream.sources.base import IterableSource
from dsp.testing.kafka import KafkaBroker, start_broker
from tests.contract.kafka_contract import fresh_prefix
from tests.integration.test_kafka_topics import make_topic

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(200)]

RECORDS = 4000
PARTITIONS = 3


@pytest.fixture(scope="module")
def broker(kafka_broker: object) -> Iterator[KafkaBroker]:
    """A broker of our own, since we kill it; where the session has none, there is none for us."""
    with start_broker() as own:
        yield own


async def all_of(bootstrap: str, topic: str) -> list[tuple[int, str]]:
    """Read a topic with a plain client: numbers, and the identities beside them."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    try:
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        left = sum(ends.values())
        found: list[tuple[int, str]] = []
        async with asyncio.timeout(60):
            while len(found) < left:
                for records in (await consumer.getmany(timeout_ms=500)).values():
                    for record in records:
                        number = orjson.loads(record.value)["n"]
                        found.append((number, dict(record.headers)["dsp-id"].decode()))
    finally:
        await consumer.stop()
    return found


async def kill_and_return(broker: KafkaBroker) -> None:
    await asyncio.to_thread(broker.kill)
    await asyncio.sleep(1)
    await asyncio.to_thread(broker.start)


async def until(app: dsp.App, operator: str, records: int) -> None:
    """Wait until an operator has had so many records."""
    async with asyncio.timeout(100):
        while app.summary.operators[operator].records_in < records:
            assert app.running, app.summary.faults
            await asyncio.sleep(0.02)


async def test_a_broker_is_killed_while_a_sink_writes_and_while_a_source_reads(
    broker: KafkaBroker,
) -> None:
    topic = await make_topic(broker.bootstrap, PARTITIONS)
    url = f"kafka://{broker.bootstrap}/{topic}"
    config = Config.model_validate({"stream": {"report_every": 0.05, "batch_records": 50}})

    writing = dsp.Pipeline("writing")
    numbers = IterableSource(({"n": n} for n in range(RECORDS)), rate=2000.0)
    writing.source(numbers, name="numbers").sink(KafkaSink(url), name="topic")
    async with dsp.run(writing, config) as app:
        await until(app, "topic", 500)
        await kill_and_return(broker)
        summary = await app.join()
    assert (summary.records_in, summary.lost, summary.dead_letters) == (RECORDS, 0, 0)
    written = await all_of(broker.bootstrap, topic)
    # What was under way when the broker died may be there twice, under the same identity.
    assert {number for number, _ in written} == {*range(RECORDS)}
    assert {int(each, 16) for _, each in written} == {*range(RECORDS)}
    assert all(int(each, 16) == number for number, each in written)

    collector = dsp.Collector()
    reading = dsp.Pipeline("reading")
    source = KafkaSource(url, until_end=True)

    async def slowly(value: dict[str, int]) -> dict[str, int]:
        await asyncio.sleep(0.0005)
        return value

    reading.source(source, name="topic").map(slowly, threads=4).sink(collector, name="out")
    async with dsp.run(reading, config) as app:
        await until(app, "out", 300)
        await kill_and_return(broker)
        summary = await app.join()
    assert (summary.records_in, summary.lost) == (len(written), 0)
    # A source gives what the topic has, each record of it once.
    assert Counter(value["n"] for value in collector.values) == Counter(n for n, _ in written)
    assert collector.repeats == 0


async def test_a_broker_that_is_away_at_the_start_is_told(broker: KafkaBroker) -> None:
    topic = fresh_prefix()
    await asyncio.to_thread(broker.stop)
    try:
        pipeline = dsp.Pipeline("away")
        url = f"kafka://{broker.bootstrap}/{topic}"
        pipeline.source(KafkaSource(url)).sink(dsp.Collector())
        with pytest.raises(ConnectError, match=broker.bootstrap.replace(".", r"\.")):
            async with dsp.run(pipeline) as app:
                await app.join()
    finally:
        await asyncio.to_thread(broker.start)
