"""What will come to an operator: a sliding window of what came, and when to believe it.

Paper 002, 4.1. The window holds samples of one operator's input, for the operator as a whole: its
predecessors tell every instance the same figures, so all of them come to the same estimate without
asking each other.

While the system settles after siblings came or went, nothing is sampled. The window stays as it
was at that moment: siblings whose turn is still to come decide by the figures, and the row, by
which the first one decided. So all of them take part in the same step from k to k' instances.
"""

from collections import deque
from dataclasses import dataclass

from dsp.core.types import NodeId
from dsp.errors import ConfigError
from dsp.scaling.regression import Model, best_model

__all__ = ["Sample", "Forecast"]

# A regression of a sudden jump goes through the roof. In the next iteration at most so many times
# the most that was seen in the window is expected.
MOST_GROWTH = 2.0
# Share of the window that has to be seen before it says anything.
ENOUGH = 0.4


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen of an operator at one moment.

    Attributes:
        time: seconds.
        load: records per second that came to the operator.
        row: its instances, sorted by name; empty where nobody knows them.
        pending: records that wait for it.
        expected: records per second that its parents expect to send it; None if they do not tell.
        capacity: records per second of one instance, by the CPU that is usable (equation 9).
        reserved: the same by the CPU that is reserved (equation 13).
    """

    time: float
    load: float
    row: tuple[NodeId, ...] = ()
    pending: float = 0.0
    expected: float | None = None
    capacity: float = 0.0
    reserved: float = 0.0


class Forecast:
    """Estimates the input of an operator in the next iteration.

    Args:
        iteration: seconds of an iteration, the paper's Delta.
        window: seconds that are looked back on.
        settle: seconds after the last change of the row in which nothing is sampled. Never less
            than an iteration passes after the first change, so that every sibling has its turn.
        newcomer: whether the instance came by a change, so that the system settles when it begins.

    Attributes:
        last: the last sample that was taken.
    """

    def __init__(
        self, iteration: float, window: float, settle: float, *, newcomer: bool = False
    ) -> None:
        for name, value in (("iteration", iteration), ("window", window)):
            if not value > 0:
                raise ConfigError(f"{name} is {value:g}: seconds, over 0")
        if settle < 0:
            raise ConfigError(f"settle is {settle:g}: seconds, 0 or more")
        self.last: Sample | None = None
        self._iteration = iteration
        self._window = window
        self._settle = settle
        self._samples: deque[Sample] = deque()
        # No row has nobody in it: the first one is a change for a newcomer.
        self._row: tuple[NodeId, ...] | None = () if newcomer else None
        self._since: float | None = None
        self._until = 0.0
        self._model: Model | None = None

    @property
    def paused(self) -> bool:
        """Whether the system settles, and nothing is sampled."""
        return self._since is not None

    @property
    def ready(self) -> bool:
        """Whether enough was seen to estimate."""
        samples = self._samples
        return len(samples) > 1 and samples[-1].time - samples[0].time >= ENOUGH * self._window

    def note(self, sample: Sample) -> None:
        """Take a sample, unless the system settles."""
        now = sample.time
        if self._row is not None and sample.row != self._row:
            if self._since is None:
                self._since = now
            self._until = max(self._since + self._iteration, now + self._settle)
        self._row = sample.row
        if self._since is not None:
            if now < self._until:
                return
            self._since = None
            self._samples.clear()
        samples = self._samples
        if samples and now <= samples[-1].time:
            return
        samples.append(sample)
        self.last = sample
        self._model = None
        while now - samples[0].time > self._window:
            samples.popleft()

    def input_rate(self) -> float | None:
        """Records per second in the iteration after the last sample (equation 3); None if unknown.

        With too few samples it is what the last one saw.
        """
        if self.last is None:
            return None
        if not self.ready:
            return self.last.load
        values = [sample.load for sample in self._samples]
        model = self._fitted(values)
        now = self.last.time
        rate = model.mean(now, now + self._iteration)
        return min(max(rate, 0.0), MOST_GROWTH * max(values))

    @property
    def model(self) -> str | None:
        """Which kind of model fits best at present; None without enough samples."""
        return self._fitted([sample.load for sample in self._samples]).kind if self.ready else None

    def _fitted(self, values: list[float]) -> Model:
        if self._model is None:
            self._model = best_model([sample.time for sample in self._samples], values)
        return self._model
