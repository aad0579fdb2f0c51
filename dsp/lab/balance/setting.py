"""What an experiment on load balancing is made of."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from dsp.core.randomness import derive_random

__all__ = ["OPEN_PARAMETERS", "Record", "Setting", "Stream", "make_stream"]

OPEN_PARAMETERS = {
    "values": "1,024 values, each of a cost that is drawn evenly from 1, 2, ... 64 ms",
    "arrivals": "a Poisson stream: as many as the load says of what all instances can do",
    "hop": "records, acknowledgements, matrices and replies take 1 ms",
    "omniscient": "gives a record to who will be through with it first, and knows every cost",
}
"""What the paper and the issue of such a comparison leave open, and how it is settled here."""

Record = tuple[float, int, float]
"""When a record comes, its value, and the seconds that it takes an instance."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run.

    Attributes:
        instances: k.
        skew: exponent of the zipf distribution of values.
        load: share of what all instances can do.
        records: in the stream.
        values: how many different ones there are.
        most_cost: of a record, in milliseconds; the least is 1.
        hop: seconds that anything takes from an instance to another.
        changes: whether every value has a new cost from the middle of the stream on.
        slows: how many times slower the first instance is from the middle on; 1 for not.
    """

    instances: int = 5
    skew: float = 1.0
    load: float = 0.95
    records: int = 16_384
    values: int = 1024
    most_cost: int = 64
    hop: float = 0.001
    changes: bool = False
    slows: float = 1.0


@dataclass(frozen=True, slots=True)
class Stream:
    """The records of a run.

    Attributes:
        records: in the order in which they come.
        middle: number of the first record after the change.
    """

    records: tuple[Record, ...]
    middle: int


def make_stream(setting: Setting, seed: int) -> Stream:
    """Draw a stream, the same for every strategy that is compared."""
    random = derive_random(seed, "balance", repr(setting))
    weights = [1.0 / rank**setting.skew for rank in range(1, setting.values + 1)]
    total = sum(weights)
    sums = [each / total for each in accumulate(weights)]
    costs = [_costs(random, setting) for _ in range(2)]
    middle = setting.records // 2
    rates = [_rate(setting, weights, total, each) for each in costs]
    now = 0.0
    records: list[Record] = []
    for number in range(setting.records):
        late = int(setting.changes and number >= middle)
        now += random.expovariate(rates[late])
        value = min(bisect_left(sums, random.random()), setting.values - 1)
        records.append((now, value, costs[late][value]))
    return Stream(tuple(records), middle)


def _costs(random: Random, setting: Setting) -> list[float]:
    return [random.randint(1, setting.most_cost) / 1000 for _ in range(setting.values)]


def _rate(
    setting: Setting, weights: Sequence[float], total: float, costs: Sequence[float]
) -> float:
    """Records per second that make the load, whatever a frequent value happens to cost."""
    mean = sum(w * c for w, c in zip(weights, costs, strict=True)) / total
    return setting.load * setting.instances / mean
