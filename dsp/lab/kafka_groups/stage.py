"""One operator in the arrangement of the thesis: a data topic, and replicas that share it."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

from dsp.stream.batch import Batch
from dsp.stream.codecs import Codec
from dsp.stream.graph import Kind, Operator
from dsp.stream.steps import Outcome, Step

__all__ = ["GroupSettings", "Stage"]


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How topics and groups are set up.

    Attributes:
        partitions: of each data topic.
        heartbeat: seconds between two heartbeats of a member. Members learn of a rebalance by
            them; Kafka's default is 3.
        session: seconds without heartbeats after which a member is dead.
        sample: seconds between two points of a send rate.
        patience: seconds without any progress after which records are given up for lost.
    """

    partitions: int = 16
    heartbeat: float = 3.0
    session: float = 10.0
    sample: float = 0.25
    patience: float = 60.0


@dataclass(slots=True)
class Stage:
    """An operator and what its replicas did together.

    Attributes:
        operator: whose body it runs.
        codec: of the records that come.
        topic: where they come from; all replicas are one consumer group on it.
        target: topic of the next stage; None for the sink.
        seen: identities of records that were processed.
        made: identities of records that were sent on.
        repeats: records that came again.
        failed: records on which the body failed for good.
        instances: how many replicas there were, at each change.
        rates: records per second of each replica.
        rebalances: (begin, end) of each rebalance, as its oldest replica saw it.
        joins: seconds that each replica waited for its first partitions.
    """

    operator: Operator
    codec: Codec
    topic: str
    target: str | None
    target_codec: Codec
    retries: int
    seen: set[int] = field(default_factory=set)
    made: set[int] = field(default_factory=set)
    repeats: int = 0
    failed: int = 0
    instances: list[tuple[float, float]] = field(default_factory=list)
    rates: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    rebalances: list[tuple[float, float]] = field(default_factory=list)
    joins: list[float] = field(default_factory=list)
    oldest: str | None = None
    step: Step = field(init=False)

    def __post_init__(self) -> None:
        self.step = Step(self.operator, self.retries)

    async def process(self, value: bytes, identity: int) -> list[tuple[int, bytes]]:
        """Call the body on one record; give what comes out, as identities and bytes."""
        batch = Batch(self.codec.decode(value), [identity], time.time())
        outcome = await self._outcome(batch)
        self.failed += len(outcome.failures)
        self.repeats += identity in self.seen
        self.seen.add(identity)
        made = [
            (each, self.target_codec.encode([one]))
            for batch in outcome.batches
            for one, each in zip(batch.values, batch.ids, strict=True)
        ]
        self.made.update(each for each, _ in made)
        return made

    async def _outcome(self, batch: Batch) -> Outcome:
        if self.step.is_async:
            return await self.step.run_async(batch)
        is_sink = self.operator.kind is Kind.SINK
        if is_sink and not self.operator.body.blocking:
            return self.step.run(batch)
        return await asyncio.to_thread(self.step.run, batch)

    def changed(self, by: int) -> None:
        """A replica came or went."""
        count = self.instances[-1][1] if self.instances else 0.0
        self.instances.append((time.monotonic(), count + by))


def header_of(record: Any) -> int:  # noqa: ANN401 - aiokafka has no types
    """Give the identity of a record of a topic."""
    return int(dict(record.headers)["dsp-id"], 16)
