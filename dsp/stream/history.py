"""How a run went: the reports of its processes as lines over time, for plots and judgements."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from dsp.stream.graph import Graph

__all__ = ["History", "Line"]

Line = list[tuple[float, float]]
"""Points (seconds since the beginning, value), in the order of time."""


@dataclass(slots=True)
class _Life:
    """What one instance did."""

    operator: str
    born: float
    died: float | None = None
    processed: Line = field(default_factory=list)
    load: Line = field(default_factory=list)
    queue: Line = field(default_factory=list)


class History:
    """Remembers what reports say.

    Args:
        graph: the application.
        began: when the run began, on the clock of the reports; the first report's time without it.
    """

    def __init__(self, graph: Graph, began: float | None = None) -> None:
        self._graph = graph
        self._began = began
        self._lives: dict[str, _Life] = {}
        self.actions: list[tuple[float, str, str, int]] = []
        self.last = 0.0

    def add(self, report: dict[str, Any]) -> None:
        """Take in the report of a process."""
        if self._began is None:
            self._began = report["time"]
        now = report["time"] - self._began
        self.last = max(self.last, now)
        for each in report["instances"]:
            life = self._lives.get(each["name"])
            if life is None:
                # One that idles has not begun yet: it counts from its activation on.
                if each["status"] == "IDLE":
                    continue
                life = self._lives[each["name"]] = _Life(each["operator"], now)
            life.processed.append((now, each["processed"] or each["arrivals"]))
            life.queue.append((now, float(each["queue"])))
            if each["capacity"]:
                life.load.append((now, each["load"] / each["capacity"]))
        for final in report["over"]:
            if (life := self._lives.get(final["name"])) is not None:
                life.died = now
                life.processed.append((now, 0.0))
        self.actions += [
            (time - self._began, name, what, count) for time, name, what, count in report["events"]
        ]

    def instances(self, operator: str) -> Line:
        """How many instances an operator had, at each change."""
        changes = [(life.born, 1) for life in self._of(operator)]
        changes += [(life.died, -1) for life in self._of(operator) if life.died is not None]
        line: Line = []
        count = 0
        for time, change in sorted(changes):
            count += change
            line.append((time, float(count)))
        return line

    def rates(self, operator: str) -> dict[str, Line]:
        """Records per second that each instance processed."""
        return {n: life.processed for n, life in self._lives.items() if life.operator == operator}

    def loads(self, operator: str) -> dict[str, Line]:
        """Load of each instance, as a share of its capacity."""
        return {n: life.load for n, life in self._lives.items() if life.operator == operator}

    def queues(self, operator: str) -> dict[str, Line]:
        """Records that waited at each instance."""
        return {n: life.queue for n, life in self._lives.items() if life.operator == operator}

    def input_rate(self) -> Line:
        """Records per second that all sources gave."""
        names = {source.name for source in self._graph.sources()}
        points: dict[float, float] = {}
        for life in self._lives.values():
            if life.operator in names:
                for time, rate in life.processed:
                    points[time] = points.get(time, 0.0) + rate
        return sorted(points.items())

    def settled(self, operator: str, start: float, end: float) -> float:
        """The number of instances that an operator had most of the time between two moments."""
        line = self.instances(operator)
        moments = [start + (end - start) * step / 200 for step in range(201)]
        return median(_at(line, moment) for moment in moments)

    def extremes(self, operator: str, start: float, end: float) -> tuple[float, float]:
        """The least and the most instances that an operator had between two moments."""
        line = self.instances(operator)
        counts = [_at(line, start), *(count for time, count in line if start < time < end)]
        return min(counts), max(counts)

    def _of(self, operator: str) -> list[_Life]:
        return [life for life in self._lives.values() if life.operator == operator]


def _at(line: Line, moment: float) -> float:
    value = 0.0
    for time, each in line:
        if time > moment:
            break
        value = each
    return value
