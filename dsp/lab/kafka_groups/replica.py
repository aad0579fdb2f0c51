"""A replica of an operator, as in thesis chapter 4: a member of a consumer group."""

import asyncio
import logging
import time
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from dsp.lab.kafka_groups.stage import GroupSettings, Stage, header_of

__all__ = ["Replica"]

logger = logging.getLogger(__name__)

POLL_MS = 100
COMMIT_EVERY = 0.5


class Replica(ConsumerRebalanceListener):  # type: ignore[misc]
    """Takes records of its partitions, one at a time, and sends on what comes out.

    Before partitions are taken away it ends the record that it is at and commits: a rebalance in
    good order costs time and nothing else.

    Args:
        stage: the operator.
        number: of this replica.
        bootstrap: the brokers.
        settings: of the group.

    Attributes:
        joined: set once it was given partitions for the first time.
        processed: records so far.
    """

    def __init__(self, stage: Stage, number: int, bootstrap: str, settings: GroupSettings) -> None:
        self.name = f"{stage.operator.name}-{number}"
        self.joined = asyncio.Event()
        self.processed = 0
        self._stage = stage
        self._settings = settings
        self._lock = asyncio.Lock()
        self._leaving = False
        self._done: dict[Any, int] = {}
        self._sending: list[asyncio.Future[Any]] = []
        self._turn = number
        self._revoked: float | None = None
        self._born = time.monotonic()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=stage.topic,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=int(1000 * settings.heartbeat),
            session_timeout_ms=int(1000 * settings.session),
        )
        self._producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=0
        )
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    async def leave(self) -> None:
        """End the record that it is at, commit, leave the group."""
        self._leaving = True
        await self._task

    def check(self) -> None:
        """Raise what ended the replica, if something did."""
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def abort(self) -> None:
        """End at once."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        stage = self._stage
        self._consumer.subscribe([stage.topic], listener=self)
        try:
            await self._producer.start()
            await self._consumer.start()
            async with asyncio.TaskGroup() as group:
                sampler = group.create_task(self._sample())
                await self._work()
                sampler.cancel()
        finally:
            await self._consumer.stop()
            await self._producer.stop()
            if stage.oldest == self.name:
                stage.oldest = None
            if self.joined.is_set():
                stage.changed(-1)
                stage.rates.setdefault(self.name, []).append((time.monotonic(), 0.0))

    async def _work(self) -> None:
        commit_at = time.monotonic() + COMMIT_EVERY
        while not self._leaving:
            found = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=1)
            # Nothing is awaited between the record and the lock: it cannot be taken away there.
            async with self._lock:
                for place, records in found.items():
                    for record in records:
                        await self._process(record)
                        self._done[place] = record.offset + 1
                if time.monotonic() >= commit_at:
                    await self._commit()
                    commit_at = time.monotonic() + COMMIT_EVERY
        async with self._lock:
            await self._commit()

    async def _process(self, record: Any) -> None:  # noqa: ANN401
        stage = self._stage
        for identity, value in await stage.process(record.value, header_of(record)):
            self._turn = (self._turn + 1) % self._settings.partitions
            headers = [("dsp-id", f"{identity:x}".encode())]
            sent = await self._producer.send(
                stage.target, value, partition=self._turn, headers=headers
            )
            self._sending.append(sent)
        self.processed += 1

    async def _commit(self) -> None:
        """Say how far it is, once what came of it is on the next topic."""
        sending, self._sending = self._sending, []
        await asyncio.gather(*sending)
        done, self._done = self._done, {}
        if not done:
            return
        try:
            await self._consumer.commit(done)
        except KafkaError as error:
            # Somebody else has the partitions now, and does these records again: counted there.
            logger.warning("%s: not committed: %r", self.name, error)

    async def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ANN401
        """The group shares out its partitions anew."""
        self._revoked = time.monotonic()
        async with self._lock:
            await self._commit()

    async def on_partitions_assigned(self, assigned: Any) -> None:  # noqa: ANN401
        """It has partitions again."""
        now, stage = time.monotonic(), self._stage
        if not self.joined.is_set():
            self.joined.set()
            stage.changed(1)
            stage.joins.append(now - self._born)
            stage.oldest = stage.oldest or self.name
        elif stage.oldest == self.name and self._revoked is not None:
            stage.rebalances.append((self._revoked, now))

    async def _sample(self) -> None:
        line = self._stage.rates.setdefault(self.name, [])
        before, since = self.processed, time.monotonic()
        while True:
            await asyncio.sleep(self._settings.sample)
            now = time.monotonic()
            line.append((now, (self.processed - before) / (now - since)))
            before, since = self.processed, now
