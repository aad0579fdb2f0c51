"""Whether the sources and sinks of a graph can work, before anything starts."""

from collections.abc import Iterator

from dsp.errors import ConfigError
from dsp.stream.graph import Graph

__all__ = ["check_ends"]


def check_ends(graph: Graph, delivery: str) -> None:
    """Ask every source and sink.

    Raises:
        ConfigError: one line per fault, all of them.
    """
    if faults := [*_faults(graph, delivery)]:
        raise ConfigError("\n".join(f"pipeline {graph.name!r}: {fault}" for fault in faults))


def _faults(graph: Graph, delivery: str) -> Iterator[str]:
    for operator in (*graph.sources(), *graph.sinks()):
        try:
            operator.body.check()
        except ConfigError as error:
            for line in str(error).splitlines():
                yield f"{operator.name}: {line}"
    if delivery != "effectively_once":
        return
    remembering = [sink.name for sink in graph.sinks() if sink.body.remembers]
    for source in graph.sources():
        if remembering and not source.body.replayable:
            # After a restart it would count from a number that others had: new records would be
            # taken for repeats.
            yield (
                f"{source.name}: it cannot be replayed, so {remembering[0]} could not tell its "
                "records apart after a restart: put it into Journaled(source, path), or set "
                "stream.delivery to at_least_once"
            )
