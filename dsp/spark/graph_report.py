"""What a run on Spark reports, in the form of the mesh: an operator as one instance of it."""

import time
from collections.abc import Mapping
from typing import Any

from dsp.spark.graph_batch import Counts
from dsp.stream.graph import Graph, Kind

__all__ = ["Reporter"]

# Seconds over which rates are taken: batches are seconds apart.
RATE_TIME = 3.0


class Reporter:
    """Makes reports for ``Summary`` and ``History``.

    Args:
        graph: the application.
        counts: of the batches that are done.
    """

    def __init__(self, graph: Graph, counts: Counts) -> None:
        self._graph = graph
        self._counts = counts
        self._rates: dict[str, float] = {}
        self._marks: list[tuple[float, dict[str, int]]] = []
        self._last: list[dict[str, Any]] = []

    def report(self, read: Mapping[str, int], repeats: Mapping[str, int]) -> dict[str, Any]:
        """Give figures.

        Args:
            read: records that the driver read of each source.
            repeats: records that sinks left out.
        """
        now = time.monotonic()
        done = {name: self._done(name) for name in self._graph.operators}
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[1][0] >= RATE_TIME:
            self._marks.pop(0)
        then, before = self._marks[0]
        self._last = [
            self._figures(
                name,
                (done[name] - before[name]) / (now - then) if now > then else 0.0,
                read.get(name, 0),
                repeats.get(name, 0),
            )
            for name in self._graph.operators
        ]
        return self._of(now, self._last, [])

    def last_report(self) -> dict[str, Any]:
        """Say that all of it is over."""
        return self._of(time.monotonic(), [], self._last)

    def _of(self, now: float, living: list[Any], over: list[Any]) -> dict[str, Any]:
        return {
            "host": "spark",
            "time": now,
            "instances": living,
            "over": over,
            "events": [],
            "steps": [],
            "faults": [],
        }

    def _done(self, name: str) -> int:
        is_source = self._graph.operators[name].kind is Kind.SOURCE
        return self._counts.given[name] if is_source else self._counts.taken[name]

    def _figures(self, name: str, rate: float, read: int, repeats: int) -> dict[str, Any]:
        counts = self._counts
        is_source = self._graph.operators[name].kind is Kind.SOURCE
        dealt_with = counts.given[name] + counts.letters[name]
        return {
            "name": f"{name}.spark",
            "operator": name,
            "status": "RUNNING",
            "in": dealt_with if is_source else counts.taken[name],
            "out": counts.given[name],
            "dead_letters": counts.letters[name],
            "repeats": repeats,
            "unacknowledged": max(0, read - dealt_with) if is_source else 0,
            "again": 0,
            "hanging": 0,
            "active_since": None,
            "scale_messages": 0,
            "coordination_messages": 0,
            "refused": 0,
            "unfinished": 0,
            "processed": rate,
            "arrivals": rate,
            "queue": 0,
            "capacity": None,
            "load": 0.0,
            "latencies": {},
        }
