"""aiokafka without dsp, for comparison: a frame is a record, some sends in flight, no linger."""

import asyncio
import sys
import time
import uuid
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from dsp.lab.transport.child import END, read_order, report
from dsp.lab.transport.load import pack, unpack

IN_FLIGHT = 256
MOST = 8 * 1024 * 1024
# As the transport has it: with aiokafka's own 16 KiB each frame would be a request.
BATCH = 1024 * 1024


async def sink(order: dict[str, Any]) -> None:
    """Count what comes out of a topic of its own."""
    topic = f"raw-{uuid.uuid4().hex}"
    async with AIOKafkaConsumer(
        bootstrap_servers=order["bootstrap"],
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=MOST,
        enable_auto_commit=False,
    ) as consumer:
        admin = AIOKafkaAdminClient(bootstrap_servers=order["bootstrap"])
        await admin.start()
        limit = {"max.message.bytes": str(MOST)}
        await admin.create_topics([NewTopic(topic, 1, 1, topic_configs=limit)])
        await admin.close()
        consumer.assign([TopicPartition(topic, 0)])
        report(address=topic)
        count, first, ended = 0, 0.0, False
        while not ended:
            for records in (await consumer.getmany(timeout_ms=100)).values():
                first = first or time.perf_counter()
                for record in records:
                    if record.value == END:
                        ended = True
                    else:
                        count += len(unpack(record.value)) if order["batch"] > 1 else 1
        report(records=count, seconds=time.perf_counter() - first)
        await asyncio.to_thread(sys.stdin.buffer.readline)


async def source(order: dict[str, Any]) -> None:
    """Send with some futures in flight."""
    topic = order["address"]
    record, sent = bytes([1]) * order["record_bytes"], 0
    records = [record] * order["batch"]
    async with AIOKafkaProducer(
        bootstrap_servers=order["bootstrap"],
        acks="all",
        enable_idempotence=True,
        max_request_size=MOST,
        max_batch_size=BATCH,
    ) as producer:
        room = asyncio.Semaphore(IN_FLIGHT)
        until = time.perf_counter() + order["seconds"]
        while time.perf_counter() < until:
            payload = pack(records) if order["batch"] > 1 else record
            await room.acquire()
            logged = await producer.send(topic, payload, partition=0)
            logged.add_done_callback(lambda _: room.release())
            sent += order["batch"]
        await producer.send_and_wait(topic, END, partition=0)
        report(sent=sent)


def main() -> None:
    """Do what the first line of the input says."""
    order = read_order()
    asyncio.run(sink(order) if order["role"] == "sink" else source(order))


if __name__ == "__main__":
    main()
