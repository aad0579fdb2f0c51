"""From a graph to sections for Spark; and what of a graph Spark cannot run.

Operators that are joined by edges without keys make one section: a function of Spark in which
records go from body to body as objects. So a diamond is inside of one function, and its bodies run
once. An edge with a key ends a section: Spark moves the records there.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dsp.errors import ConfigError
from dsp.spark.address import Address
from dsp.spark.graph_flow import Section, address
from dsp.spark.graph_readers import ChunkReader, PartReader, Reader, TopicReader
from dsp.spark.graph_stages import StagePart, is_stage
from dsp.spark.stage_schema import arrow_schema, as_struct
from dsp.stream.graph import DEAD_LETTERS, Edge, Graph, Grouping, Kind, Operator
from dsp.stream.signatures import name_of
from dsp.stream.sources.base import Source
from dsp.stream.sources.parts import Divisible

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["Plan", "check_plan", "plan_for", "is_topic", "by_parts", "chunk_codec"]


@dataclass(frozen=True)
class Plan:
    """A graph as sections that follow each other.

    Attributes:
        graph: what it was made of.
        sections: each gets records of those before it.
        stages: the stages on Spark that go beside each section.
        level: the section of each operator that is no sink.
        arriving: the edges to sinks, by address.
    """

    graph: Graph
    sections: tuple[Section, ...]
    stages: "tuple[tuple[StagePart, ...], ...]"
    level: dict[str, int]
    arriving: dict[str, Edge]


def check_plan(graph: Graph, master: Address) -> None:
    """Look whether Spark can run a graph; needs no Spark.

    Raises:
        ConfigError: it cannot; one line per operator or edge that is in the way.
    """
    if faults := [*_faults(graph, master)]:
        raise ConfigError("\n".join(f"pipeline {graph.name!r} on Spark: {f}" for f in faults))


def plan_for(graph: Graph, session: "SparkSession", *, retries: int, partitions: int) -> Plan:
    """Compile a graph that was checked.

    Args:
        graph: see ``check_plan``.
        session: reads the schemas of stages.
        retries: how often a record is tried again on which a body raises.
        partitions: over which records are spread by key.

    Raises:
        SchemaMismatch: a stage takes or gives columns that Spark does not know.
    """
    level: dict[str, int] = {}
    for operator in graph.operators.values():  # each comes after those that send to it
        before = [e for e in graph.edges.values() if e.target == operator.name]
        steps = (level[e.source] + _is_cut(graph, e) for e in before)
        level[operator.name] = max(steps, default=0)
    inner = {name: at for name, at in level.items() if graph.operators[name].kind is not Kind.SINK}
    stages = {name: at for name, at in inner.items() if is_stage(graph.operators[name])}
    takes = {name: as_struct(graph.operators[name].body.recipe.takes, session) for name in stages}
    taken = {name: arrow_schema(struct) for name, struct in takes.items()}
    plain = {name: at for name, at in inner.items() if name not in stages}

    def section(names: list[str], *, after: bool = False) -> Section:
        return _section(graph, names, retries, partitions, taken, after=after)

    levels = range(max(inner.values()) + 1)
    sections = tuple(section([n for n, at in plain.items() if at == number]) for number in levels)
    parts = tuple(
        tuple(
            _stage(graph, name, takes[name], section([name], after=True), session)
            for name, at in stages.items()
            if at == number
        )
        for number in levels
    )
    sinks = {sink.name for sink in graph.sinks()}
    arriving = {address(e): e for e in graph.edges.values() if e.target in sinks}
    return Plan(graph, sections, parts, inner, arriving)


def _is_cut(graph: Graph, edge: Edge) -> bool:
    """Whether an edge ends a section."""
    ends = (graph.operators[edge.source], graph.operators[edge.target])
    return edge.key is not None or any(map(is_stage, ends))


def _stage(
    graph: Graph, name: str, takes: "StructType", after: Section, session: "SparkSession"
) -> StagePart:
    recipe = graph.operators[name].body.recipe
    gives = as_struct(recipe.gives, session) if recipe.gives is not None else None
    incoming = {address(e): e for e in graph.edges.values() if e.target == name}
    return StagePart(name, recipe.function, takes, gives, incoming, after)


def _section(
    graph: Graph,
    names: list[str],
    retries: int,
    partitions: int,
    taken: "dict[str, pa.Schema]",
    *,
    after: bool,
) -> Section:
    operators = {name: _sendable(graph.operators[name], source=after) for name in names}
    edges = tuple(edge for edge in graph.edges.values() if edge.source in operators)
    incoming = {
        address(edge): edge
        for edge in graph.edges.values()
        if edge.target in operators and (edge.source not in operators or edge.key is not None)
    }
    readers = {
        name: _reader(graph.operators[name])
        for name in names
        if graph.operators[name].kind is Kind.SOURCE
    }
    targets = {edge.target for edge in edges}
    shapes = {name: schema for name, schema in taken.items() if name in targets}
    return Section(operators, edges, incoming, readers, retries, partitions, shapes)


def _sendable(operator: Operator, *, source: bool) -> Operator:
    # A source may hold what cannot be sent, and stays with the driver. To what comes after a stage
    # the stage is a source.
    if operator.kind is Kind.SOURCE or source:
        return replace(operator, kind=Kind.SOURCE, body=None)
    return operator


def _reader(operator: Operator) -> Reader:
    source = operator.body
    if is_topic(source):
        return TopicReader(operator.number, source.topic.url, source.load)
    if by_parts(source):
        source = copy(source)
        source.path = source.path.absolute()  # workers may be started elsewhere
        return PartReader(operator.number, source)
    return ChunkReader(chunk_codec(operator))


def chunk_codec(operator: Operator) -> Any:  # noqa: ANN401 - a Codec
    """Give the codec of records of a source that the driver puts into rows."""
    from dsp.stream.codecs import ArrowCodec

    return ArrowCodec() if operator.columnar else operator.codec


def is_topic(end: object) -> bool:
    """Whether a source or sink is a Kafka topic, which Spark's own connector reads and writes."""
    return type(end).__name__ in ("KafkaSource", "KafkaSink") and hasattr(end, "topic")


def by_parts(source: Source) -> bool:
    """Whether workers read a source themselves."""
    return isinstance(source, Divisible) and source.divisible


# -- what is in the way -------------------------------------------------------------------------


def _faults(graph: Graph, master: Address) -> Iterator[str]:
    if master.connect:
        yield (
            f"{master.text} is a Spark Connect server: sources and sinks stay with the driver, and "
            "it has none here; give the master itself, as spark://host:7077 or local[*]"
        )
    for operator in graph.operators.values():
        match operator.kind:
            case Kind.SOURCE:
                yield from _source_faults(operator)
            case Kind.SINK:
                yield from _sink_faults(operator)
            case _:
                yield from _body_faults(operator)
    for edge in graph.edges.values():
        yield from _edge_faults(edge)


def _source_faults(operator: Operator) -> Iterator[str]:
    source = operator.body
    if not source.replayable:
        yield (
            f"{operator.name}: {type(source).__name__} gives its records once, and Spark may ask "
            "for them again; put it into Journaled(source, path), or pass a list, or a function "
            "that makes the iterable, to IterableSource"
        )
    elif by_parts(source) and (error := _unsendable(source)):
        yield f"{operator.name}: the source cannot be sent to workers: {error}"


def _sink_faults(operator: Operator) -> Iterator[str]:
    sink = operator.body
    if is_topic(sink) and (error := _unsendable((sink.dump, sink.key))):
        yield f"{operator.name}: the key of the sink cannot be sent to workers: {error}"


def _body_faults(operator: Operator) -> Iterator[str]:
    if is_stage(operator):
        if operator.body.recipe.takes is None:
            yield (
                f"{operator.name}: Spark has to know the columns that go into the stage before it "
                "starts: name them, as takes='id long, fare double'"
            )
        return
    if not operator.elastic:
        yield (
            f"{operator.name}: it is not elastic, so it may keep state from record to record, and "
            "workers of Spark share none; if it keeps none, say maximum=1 instead of elastic=False"
        )
    if error := _unsendable(operator.body):
        yield (
            f"{operator.name}: the body {name_of(operator.body)} cannot be sent to workers: "
            f"{error}; let it make or import inside of the call what cannot be pickled"
        )
    if error := _unsendable(operator.codec):
        yield f"{operator.name}: its codec cannot be sent to workers: {error}"


def _edge_faults(edge: Edge) -> Iterator[str]:
    where = f"{edge.source} -> {edge.target}"
    if edge.grouping is Grouping.BROADCAST:
        yield (
            f"{where}: broadcast() sends every record to all instances, and Spark has tasks "
            "instead, which come and go; leave it out, or use key_by"
        )
    if edge.target != DEAD_LETTERS and edge.key is not None and (error := _unsendable(edge.key)):
        yield f"{where}: the key function cannot be sent to workers: {error}"


def _unsendable(what: object) -> str:
    """Say why something cannot be pickled; empty if it can."""
    from pyspark import cloudpickle

    try:
        cloudpickle.dumps(what)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever the parts of it raise
        return f"{type(error).__name__}: {error}"
    return ""
