"""Random applications whose output is known: graphs, loads, and deciders that never rest."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dsp.scaling.deciders import STAY, Decider, Decision, Duplicate, Leave, Observation
from dsp.stream.deciding import Deciders
from dsp.stream.pipeline import Pipeline, Stream
from dsp.stream.sinks.base import Collector
from dsp.stream.sources.base import IterableSource

__all__ = ["RandomApplication", "restless"]

Values = list[int]


class Restless:
    """Duplicates and leaves at random, whatever the load."""

    def __init__(self, random: Random, most: int) -> None:
        self._random = random
        self._most = most

    def decide(self, observation: Observation) -> Decision:
        present = len(observation.report.siblings) if observation.report else 1
        dice = self._random.random()
        if dice < 0.4 and present < self._most:
            return Duplicate(self._random.randint(1, 2))
        if dice > 0.5 and not observation.keeper:
            return Leave()
        return STAY


def restless(period: float = 0.2, most: int = 4) -> Deciders:
    """Give deciders that scale at every opportunity."""

    def make(operator: str, random: Random) -> tuple[Decider, float]:
        return Restless(random, most), period

    return make


@dataclass
class RandomApplication:
    """A random graph with random load.

    Attributes:
        pipeline: the description.
        sinks: what comes out, by name.
        expected: what has to come out of each sink for a source's value.
        quick: whether some bodies take no time at all.
    """

    random: Random
    records: int = 60
    quick: bool = False
    pipeline: Pipeline = field(init=False)
    sinks: dict[str, Collector] = field(default_factory=dict)
    expected: dict[str, Callable[[int], Values]] = field(default_factory=dict)
    sources: int = field(init=False)

    def __post_init__(self) -> None:
        chance = self.random
        self.pipeline = Pipeline("random")
        self.sources = chance.randint(1, 2)
        streams: list[tuple[Stream, Callable[[int], Values]]] = []
        for number in range(self.sources):
            # Values of different sources never meet: each has numbers of its own.
            values = range(number * 10**6, number * 10**6 + self.records)
            source = IterableSource(values, rate=chance.uniform(30, 120))
            stream = self.pipeline.source(source, name=f"source{number}")
            streams.append((stream, _only(number)))
        for number in range(chance.randint(1, 4)):
            chosen = chance.sample(range(len(streams)), chance.randint(1, min(2, len(streams))))
            stream = self.pipeline.merge(*(streams[i][0] for i in chosen))
            before = [streams[i][1] for i in chosen]
            streams.append(self._operator(number, stream, _all_of(before)))
        used = {name for edge in self.pipeline._edges for name in (edge.source,)}
        loose = [s for s in streams if s[0].operators[0] not in used]
        for number, (stream, values_of) in enumerate(loose):
            sink = self.sinks[f"sink{number}"] = Collector()
            _grouped(chance, stream, 7).sink(sink, name=f"sink{number}")
            self.expected[f"sink{number}"] = values_of

    def _operator(
        self, number: int, stream: Stream, before: Callable[[int], Values]
    ) -> tuple[Stream, Callable[[int], Values]]:
        chance = self.random
        options: dict[str, Any] = {
            "name": f"op{number}",
            "instances": chance.randint(1, 2),
            "threads": chance.randint(1, 2),
            "service_time": chance.uniform(0.001, 0.015),
        }
        if chance.random() < 0.3:  # the value decides what it costs
            least = chance.uniform(0.001, 0.005)
            options["service_time"] = lambda value: least * (1 + value % 5)
        if self.quick and chance.random() < 0.7:
            options["service_time"] = 0.0
        stream = _grouped(chance, stream, 11)
        match chance.choice(["map", "filter", "flat_map", "batches"]):
            case "map":
                return stream.map(_plus, **options), lambda v: [_plus(x) for x in before(v)]
            case "filter":
                return stream.filter(_odd, **options), lambda v: [x for x in before(v) if _odd(x)]
            case "flat_map":
                return stream.flat_map(_twice, **options), lambda v: [
                    y for x in before(v) for y in _twice(x)
                ]
            case _:
                return stream.batches(_plus_all, **options), lambda v: _plus_all(before(v))

    def missing(self, accepted: dict[str, int]) -> dict[str, tuple[Counter[int], Counter[int]]]:
        """What lacks and what is too much in each sink, for so many values of each source."""
        wrong = {}
        for name, sink in self.sinks.items():
            wanted: Counter[int] = Counter()
            for number in range(self.sources):
                for offset in range(accepted[f"source{number}"]):
                    wanted.update(self.expected[name](number * 10**6 + offset))
            got = Counter(sink.values)
            if wanted != got:
                wrong[name] = (wanted - got, got - wanted)
        return wrong


GROUPINGS = ("shuffle", "round-robin", "key", "partial-key", "osg", "adaptive")


def _grouped(chance: Random, stream: Stream, keys: int) -> Stream:
    grouping = chance.choice(GROUPINGS)
    if grouping in ("shuffle", "round-robin"):
        return stream.grouped(grouping)
    return stream.grouped(grouping, key=lambda value: value % keys)


def _only(number: int) -> Callable[[int], Values]:
    return lambda value: [value] if value // 10**6 == number else []


def _all_of(before: list[Callable[[int], Values]]) -> Callable[[int], Values]:
    return lambda value: [x for each in before for x in each(value)]


def _plus(value: int) -> int:
    return value + 1


def _plus_all(values: Values) -> Values:
    return [value + 1 for value in values]


def _odd(value: int) -> bool:
    return value % 2 == 1


def _twice(value: int) -> Values:
    return [value, value + 3]
