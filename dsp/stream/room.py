"""How many records may be under way to an instance: what it grants, and what is assumed first."""

from typing import TYPE_CHECKING

from dsp.stream.bodies import BulkBody
from dsp.stream.graph import Operator
from dsp.stream.metrics import MetricCollector
from dsp.stream.parcels import Limits

if TYPE_CHECKING:
    from dsp.config.stream import StreamConfig

__all__ = ["Room", "limits_to", "room_for"]

# Capacities that differ by no more grant the same room.
SAME_CAPACITY = 0.05
# Room at an instance of which it is not known yet how fast it is.
FIRST_ROOM = 128, 16
# What an instance says of its room meanwhile: as before.
NO_NEWS = 0, 0
# Room for so many times the records that an instance is known to have been through with.
SLOW_START = 4


class Room:
    """What one instance grants those that send to it.

    Args:
        config: bounds.
        operator: of the instance.
        metrics: tell how fast it is.
    """

    def __init__(
        self, config: "StreamConfig", operator: Operator, metrics: MetricCollector
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._is_declared = operator.capacity is not None
        body = operator.body
        self._most = body.most_records if isinstance(body, BulkBody) else 0
        self._senders = 0
        # At which capacity, and what: asked for every few batches, so it is remembered.
        self._granted: tuple[float, tuple[int, int]] | None = None

    @property
    def senders(self) -> int:
        """How many share the room."""
        return self._senders

    @senders.setter
    def senders(self, count: int) -> None:
        self._senders = count
        self._granted = None

    def grant(self) -> tuple[int, int]:
        """Give how many records each sender may have under way, and how many in one batch."""
        capacity, granted = self._metrics.capacity, self._granted
        if granted is not None and capacity is not None:
            before, room = granted
            if abs(capacity - before) <= SAME_CAPACITY * before:
                return room
        worked = None if self._is_declared else self._metrics.total_worked
        senders = max(1, self._senders)
        room = room_for(self._config, capacity, senders, NO_NEWS, worked, self._most)
        # Room grows with what was worked on, until that bounds it no more.
        most = max(self._config.window_records, 2 * self._most)
        grown = worked is None or SLOW_START * worked >= most
        self._granted = (capacity, room) if capacity is not None and grown else None
        return room


def limits_to(config: "StreamConfig", operator: Operator) -> Limits:
    """Give what may be under way to an instance of an operator before it says anything."""
    window, batch = room_for(config, operator.capacity, 1, FIRST_ROOM)
    enough = min(config.batch_records, config.window_records)
    return Limits(window, batch, config.window_bytes, enough, config.linger)


def room_for(
    config: "StreamConfig",
    capacity: float | None,
    senders: int,
    unknown: tuple[int, int],
    worked: int | None = None,
    most: int = 0,
) -> tuple[int, int]:
    """Records that each sender may have under way to an instance, and in one batch.

    Args:
        config: bounds.
        capacity: records per second of the instance; None if it is not known.
        senders: how many share the room.
        unknown: the answer then.
        worked: records that this knowledge comes from; None if it was declared. What an instance
            was quick with at first says little about what comes next, so room grows with it.
        most: records of a call, for a body that takes many; room is kept for the next call too.
    """
    if capacity is None:
        return unknown
    batch = max(1, min(config.batch_records, int(capacity * config.batch_time)))
    bound = max(config.window_records, 2 * most // senders)
    window = min(bound, int(capacity * config.window_time) // senders)
    if worked is not None:
        window = min(window, SLOW_START * worked)
    return max(batch + 1, window), batch
