"""What an instance measures about itself (the metric collector of paper 000, figure 4.1)."""

from collections import deque
from dataclasses import dataclass

__all__ = ["Figures", "MetricCollector", "Demand", "uncensored"]

# What a call tells of the time that records take counts for so much after each further call. The
# sums fade, not the quotients: where records cost differently, the mean of the last quotients jumps
# with every cheap record, and with it the room that an instance gives to those that send to it.
FADING = 0.9
# A predecessor that could send nothing says little about how much it would send: at most twice as
# much as it did is believed. More would create instances that are sent away again at once.
MOST_BLOCKED = 0.5
DEMAND_PERIODS = 4


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one period.

    Attributes:
        arrivals: records per second that came.
        processed: records per second that the body took.
        growth: records per second by which the queue grew.
        capacity: records per second that the instance can process; None before it is known.
        blocked: share of the time in which outputs waited for room at a successor.
        queue: records that wait.
        busy: share of the time in which the body worked.
    """

    arrivals: float
    processed: float
    growth: float
    capacity: float | None
    blocked: float
    queue: int
    busy: float = 0.0

    @property
    def load(self) -> float:
        """Records per second that the instance would have to process to keep up.

        What the queue grew by is among the arrivals. What it holds from earlier is not counted: the
        reserve that the target load leaves works it off, and instances that were created for it
        would leave as soon as it is gone.
        """
        return self.arrivals


class MetricCollector:
    """Counts, and makes figures of counts.

    Args:
        threads: calls of the body at the same time.
        capacity: records per second where that is known beforehand.
        now: the present time.
    """

    def __init__(self, threads: int, capacity: float | None, now: float) -> None:
        self._threads = threads
        self._declared = capacity
        self._recent_seconds = self._recent_records = 0.0
        self._rated: float | None = None
        self._since = now
        self._arrived = self._processed = 0
        self._busy = 0.0
        self._blocked = 0.0
        self._blocked_since: float | None = None
        self._queue_before = 0
        self.latencies: deque[float] = deque(maxlen=10_000)
        self.total_in = self.total_worked = self.total_out = self.failed = 0

    def arrived(self, records: int) -> None:
        """Records came."""
        self._arrived += records
        self.total_in += records

    def worked(self, records: int, seconds: float) -> None:
        """The body took records, and so much time for them."""
        self._processed += records
        self._busy += seconds
        self.total_worked += records
        if records:
            self._recent_seconds = FADING * self._recent_seconds + seconds
            self._recent_records = FADING * self._recent_records + records

    def rated(self, capacity: float | None) -> None:
        """The body says how many records per second a thread can take; None if it cannot tell."""
        self._rated = capacity

    def gave(self, records: int) -> None:
        """Records came out."""
        self.total_out += records

    def blocked(self, now: float) -> None:
        """Outputs begin to wait for room."""
        if self._blocked_since is None:
            self._blocked_since = now

    def unblocked(self, now: float) -> None:
        """Outputs wait no longer."""
        if self._blocked_since is not None:
            self._blocked += now - max(self._blocked_since, self._since)
            self._blocked_since = None

    @property
    def capacity(self) -> float | None:
        """Records per second that the instance can process, as far as is known."""
        if self._declared is not None:
            return self._declared
        if self._rated is not None:
            return self._rated * self._threads
        if not self._recent_seconds:
            return None
        return self._threads * self._recent_records / self._recent_seconds

    def period(self, now: float, queue: int) -> Figures:
        """End a period; give its figures and begin the next."""
        span = max(now - self._since, 1e-9)
        waiting = self._blocked_since is not None
        if waiting:
            self.unblocked(now)
        figures = Figures(
            arrivals=self._arrived / span,
            processed=self._processed / span,
            growth=(queue - self._queue_before) / span,
            capacity=self.capacity,
            blocked=min(1.0, self._blocked / span),
            queue=queue,
            busy=min(1.0, self._busy / (span * self._threads)),
        )
        self._since, self._queue_before = now, queue
        self._arrived = self._processed = 0
        self._busy = 0.0
        self._blocked = 0.0
        if waiting:
            self.blocked(now)
        return figures


class Demand:
    """How much an instance would send to an operator, over the last few periods.

    Over several, because a moment's rate says little: a source that was held up for a moment sends
    what it missed in one go.
    """

    def __init__(self) -> None:
        self._periods: deque[tuple[float, float, float]] = deque(maxlen=DEMAND_PERIODS)

    def add(self, sent: float, blocked: float, seconds: float) -> None:
        """A period is over: so many records were sent, and so much of it outputs waited."""
        self._periods.append((sent, blocked * seconds, seconds))

    @property
    def rate(self) -> float:
        """Records per second, those included that are held back for want of room."""
        sent, blocked, seconds = (sum(each) for each in zip(*self._periods, strict=True))
        return uncensored(sent / seconds, blocked / seconds)


def uncensored(sent: float, blocked: float) -> float:
    """Estimate what a sender would send per second if it never had to wait."""
    return sent / (1.0 - min(blocked, MOST_BLOCKED))
