"""The graph of an application as values: what each operator is, and how edges group records.

A ``Pipeline`` is how users say it; this is what the engine runs. Everything here is checked before
anything starts, and every fault is reported at once.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any
from zlib import crc32

from dsp.errors import ConfigError
from dsp.stream.batch import MAX_SOURCES
from dsp.stream.codecs import ArrowCodec, Codec
from dsp.stream.signatures import body_fault, is_async

__all__ = ["Kind", "Operator", "Grouping", "Edge", "Graph", "DEAD_LETTERS"]

DEAD_LETTERS = "dead-letters"
"""Name of the sink that takes the records on which bodies fail, where a pipeline has one."""


class Kind(Enum):
    """What an operator does with records."""

    SOURCE = "source"
    MAP = "map"
    FILTER = "filter"
    FLAT_MAP = "flat_map"
    BATCHES = "batches"
    COLUMNS = "columns"
    SINK = "sink"


class Grouping(Enum):
    """Which instance of the next operator gets a record."""

    SHUFFLE = "shuffle"
    """Any of them: the configuration says how it is chosen."""
    ROUND_ROBIN = "round-robin"
    ADAPTIVE = "adaptive"
    OSG = "osg"
    KEY = "key"
    PARTIAL_KEY = "partial-key"
    BROADCAST = "broadcast"


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the graph.

    Attributes:
        name: unique in the graph.
        kind: what it does with records.
        body: the user's function, or the source or sink.
        codec: of the records that it gives.
        elastic: whether instances may come and go; one that is not stays at one instance.
        instances: how many it starts with.
        threads: worker threads of each instance; for an async body, calls at the same time.
        minimum: instances, at least.
        maximum: instances, at most; None for the bound of the configuration.
        capacity: records per second of one instance, where it is known beforehand; else measured.
        service_time: seconds of work per record, in a world, where bodies cost no time; or a
            function that gives them for a value.
        number: position in the graph, which decides identities.
    """

    name: str
    kind: Kind
    body: Any
    codec: Codec
    elastic: bool = True
    instances: int = 1
    threads: int = 1
    minimum: int = 1
    maximum: int | None = None
    capacity: float | None = None
    service_time: float | Callable[[Any], float] = 0.0
    number: int = 0

    @property
    def columnar(self) -> bool:
        """Whether it takes and gives columns."""
        if self.kind in (Kind.SOURCE, Kind.SINK):
            return bool(getattr(self.body, "columnar", False))
        return self.kind is Kind.COLUMNS

    @property
    def workers(self) -> int:
        """Batches that an instance works on at the same time.

        An async body has one: what ``threads`` asks for is done within it.
        """
        return 1 if callable(self.body) and is_async(self.body) else self.threads

    @property
    def salt(self) -> int:
        """What the operator adds to the identities of records that it makes several of."""
        return crc32(self.name.encode()) << 20


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one operator to another.

    Attributes:
        key: gives the key of a record, where records are grouped by it.
        codec: of the records on it; columns if either end has columns.
        tag: what it adds to identities, where records of one origin may come on several edges
            to the same operator; 0 where they cannot.
    """

    source: str
    target: str
    grouping: Grouping
    codec: Codec
    key: Callable[[Any], Any] | None = None
    tag: int = 0


@dataclass(frozen=True, slots=True)
class Graph:
    """Operators and edges that were found to make sense.

    Attributes:
        name: of the application.
        operators: by name, each after those that send to it.
        edges: by (source, target).
    """

    name: str
    operators: dict[str, Operator]
    edges: dict[tuple[str, str], Edge] = field(default_factory=dict)

    def upstream(self, name: str) -> tuple[str, ...]:
        """The operators that send to one."""
        return tuple(edge.source for edge in self.edges.values() if edge.target == name)

    def downstream(self, name: str) -> tuple[str, ...]:
        """The operators that one sends to."""
        return tuple(edge.target for edge in self.edges.values() if edge.source == name)

    def sources(self) -> list[Operator]:
        """The operators that records come from."""
        return [each for each in self.operators.values() if each.kind is Kind.SOURCE]

    def sinks(self) -> list[Operator]:
        """The operators that records go to."""
        return [each for each in self.operators.values() if each.kind is Kind.SINK]

    @classmethod
    def check(cls, name: str, operators: Iterable[Operator], edges: Iterable[Edge]) -> "Graph":
        """Make a graph, or tell everything that is wrong with it.

        Raises:
            ConfigError: one line per fault.
        """
        operators, edges = list(operators), list(edges)
        faults = [*_name_faults(operators), *_edge_faults(operators, edges)]
        known = {operator.name: operator for operator in operators}
        for operator in operators:
            faults += _operator_faults(operator, edges)
        order = _sorted(list(known), edges)
        if len(order) < len(known):
            ring = ", ".join(name for name in known if name not in order)
            faults.append(f"{ring}: these operators form a cycle, or come after one")
        if not any(operator.kind is Kind.SOURCE for operator in operators):
            faults.append("there is no source: call pipeline.source(...)")
        if faults:
            raise ConfigError("\n".join(f"pipeline {name!r}: {fault}" for fault in faults))
        numbered = {n: replace(known[n], number=i) for i, n in enumerate(order)}
        origins = _origins(order, numbered, edges)
        finished = [
            _with_tag(_with_codec(edge, numbered), numbered, edges, origins) for edge in edges
        ]
        return cls(name, numbered, {(edge.source, edge.target): edge for edge in finished})


def _name_faults(operators: list[Operator]) -> Iterable[str]:
    names = [operator.name for operator in operators]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"{name}: {names.count(name)} operators have this name; give them name=..."
        if not name or len(name) > 64 or not all(c.isalnum() or c in "_-" for c in name):
            yield f"{name!r}: a name has 1 to 64 letters, digits, '_' and '-'"
    if sum(operator.kind is Kind.SOURCE for operator in operators) > MAX_SOURCES:
        yield f"more than {MAX_SOURCES} sources"


def _edge_faults(operators: list[Operator], edges: list[Edge]) -> Iterable[str]:
    known = {operator.name for operator in operators}
    seen: set[tuple[str, str]] = set()
    for edge in edges:
        missing = [end for end in (edge.source, edge.target) if end not in known]
        if missing:
            yield f"{edge.source} -> {edge.target}: there is no operator {missing[0]!r}"
        if (edge.source, edge.target) in seen:
            yield f"{edge.source} -> {edge.target}: connected twice"
        seen.add((edge.source, edge.target))
        if edge.key is not None and (fault := body_fault(edge.key, 1)):
            yield f"{edge.source} -> {edge.target}: the key function {fault}"


def _operator_faults(operator: Operator, edges: list[Edge]) -> Iterable[str]:
    name = operator.name
    before = any(edge.target == name for edge in edges)
    after = any(edge.source == name and edge.target != DEAD_LETTERS for edge in edges)
    if operator.kind is Kind.SOURCE and before:
        yield f"{name}: nothing can be sent to a source"
    if operator.kind is Kind.SINK and after:
        yield f"{name}: nothing comes out of a sink"
    if operator.kind is not Kind.SOURCE and not before and name != DEAD_LETTERS:
        yield f"{name}: nothing is sent to it"
    if operator.kind is not Kind.SINK and not after:
        yield f"{name}: what it gives goes nowhere; end it with .sink(...)"
    if operator.kind not in (Kind.SOURCE, Kind.SINK) and (fault := body_fault(operator.body, 1)):
        yield f"{name}: the body {fault}"
    for what, value in (
        ("instances", operator.instances),
        ("threads", operator.threads),
        ("minimum", operator.minimum),
    ):
        if value < 1:
            yield f"{name}: {what} is {value}, at least 1 is needed"
    if operator.maximum is not None and operator.maximum < operator.minimum:
        yield f"{name}: maximum {operator.maximum} is below minimum {operator.minimum}"
    if not operator.elastic and operator.instances != 1:
        yield f"{name}: it is not elastic, so it has one instance, not {operator.instances}"


def _sorted(names: list[str], edges: list[Edge]) -> list[str]:
    """Order operators so that each comes after those that send to it; leave out those on a ring."""
    order: list[str] = []
    while True:
        ready = [
            name
            for name in names
            if name not in order
            and all(e.source in order or e.source not in names for e in edges if e.target == name)
        ]
        if not ready:
            return order
        order += ready


def _with_codec(edge: Edge, operators: dict[str, Operator]) -> Edge:
    ends = operators[edge.source], operators[edge.target]
    if edge.target == DEAD_LETTERS:
        return edge
    if any(end.columnar for end in ends) and not edge.codec.columnar:
        return replace(edge, codec=ArrowCodec())
    return edge


def _origins(
    order: list[str], operators: dict[str, Operator], edges: list[Edge]
) -> dict[str, set[str]]:
    """The sources that each operator gets records of."""
    origins: dict[str, set[str]] = {}
    for name in order:
        before = [origins[edge.source] for edge in edges if edge.target == name]
        own = {name} if operators[name].kind is Kind.SOURCE else set()
        origins[name] = own.union(*before)
    return origins


def _with_tag(
    edge: Edge, operators: dict[str, Operator], edges: list[Edge], origins: dict[str, set[str]]
) -> Edge:
    others = [e.source for e in edges if e.target == edge.target and e.source != edge.source]
    if any(origins[edge.source] & origins[other] for other in others):
        return replace(edge, tag=operators[edge.source].salt)
    return edge
