"""What a run counted, put together from the reports of its processes."""

from dataclasses import dataclass, field
from typing import Any

from dsp.stream.coordination import ScalingStep
from dsp.stream.graph import Graph, Kind

__all__ = ["OperatorSummary", "Summary"]


@dataclass(slots=True)
class OperatorSummary:
    """What an operator did, over all its instances, those that are gone included."""

    name: str
    kind: Kind
    instances: int = 0
    most_instances: int = 0
    records_in: int = 0
    records_out: int = 0
    dead_letters: int = 0
    repeats: int = 0
    unacknowledged: int = 0
    sent_again: int = 0
    created: int = 0
    left: int = 0
    rate: float = 0.0
    load: float = 0.0
    queue: int = 0


@dataclass(slots=True)
class Summary:
    """What a run counted.

    Attributes:
        operators: by name.
        actions: scaling actions: (time, instance, what, how many).
        steps: scaling steps that are over, with when they were asked for, begun and over.
        active_since: when each instance began to work, by name.
        refused: steps that were decided on and could not begin any more when their turn came.
        messages: sent for scaling steps and for their coordination, over all instances.
        latencies: seconds from source to sink, as percentiles.
        faults: instances that failed.
    """

    graph: Graph
    operators: dict[str, OperatorSummary] = field(default_factory=dict)
    actions: list[tuple[float, str, str, int]] = field(default_factory=list)
    steps: list[ScalingStep] = field(default_factory=list)
    active_since: dict[str, float] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    refused: int = 0
    latencies: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    _hosts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _over: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, operator in self.graph.operators.items():
            self.operators[name] = OperatorSummary(name, operator.kind)

    @property
    def records_in(self) -> int:
        """Records that sources gave."""
        return sum(each.records_out for each in self._of(Kind.SOURCE))

    @property
    def records_out(self) -> int:
        """Records that sinks took."""
        return sum(each.records_out for each in self._of(Kind.SINK))

    @property
    def repeats(self) -> int:
        """Records that came to a sink again."""
        return sum(each.repeats for each in self._of(Kind.SINK))

    @property
    def lost(self) -> int:
        """Records that were read, and of which nobody knows that they are dealt with.

        While the run lasts they are under way. After one that ended in good order there are none;
        after one that was broken off, a replayable source gives them again.
        """
        return sum(each.unacknowledged for each in self._of(Kind.SOURCE))

    @property
    def dead_letters(self) -> int:
        """Records on which a body failed for good."""
        return sum(each.dead_letters for each in self.operators.values())

    def _of(self, kind: Kind) -> list[OperatorSummary]:
        return [each for each in self.operators.values() if each.kind is kind]

    def add(self, report: dict[str, Any]) -> None:
        """Take in the report of a process."""
        self._hosts[report["host"]] = report["instances"]
        for final in report["over"]:
            self._over[final["name"]] = final
        self.actions += [tuple(event) for event in report["events"]]
        for name, kind, asked, begun, over, newcomers in report["steps"]:
            step = ScalingStep(name, kind, asked, begun, over, tuple(newcomers))
            self.steps.append(step)
        self.faults += [fault for fault in report["faults"] if fault not in self.faults]
        self._count()

    @property
    def living(self) -> list[str]:
        """Instances of which no last report has come."""
        return [each["name"] for each in self._living()]

    def forget_living(self) -> None:
        """Expect no more reports."""
        self._hosts.clear()

    def _living(self) -> list[dict[str, Any]]:
        return [
            each
            for instances in self._hosts.values()
            for each in instances
            if each["name"] not in self._over
        ]

    def _count(self) -> None:
        living = self._living()
        every = (*living, *self._over.values())
        self.messages = {
            name: sum(each[f"{name}_messages"] for each in every)
            for name in ("scale", "coordination")
        }
        self.refused = sum(each["refused"] for each in every)
        self.active_since |= {
            each["name"]: each["active_since"] for each in every if each["active_since"] is not None
        }
        for operator in self.operators.values():
            here = [each for each in living if each["operator"] == operator.name]
            gone = [each for each in self._over.values() if each["operator"] == operator.name]
            operator.instances = sum(each["status"] != "IDLE" for each in here)
            operator.most_instances = max(operator.most_instances, operator.instances)
            operator.records_in = sum(each["in"] for each in (*here, *gone))
            operator.records_out = sum(each["out"] for each in (*here, *gone))
            operator.dead_letters = sum(each["dead_letters"] for each in (*here, *gone))
            operator.repeats = sum(each["repeats"] for each in (*here, *gone))
            operator.unacknowledged = sum(each["unacknowledged"] for each in (*here, *gone))
            operator.sent_again = sum(each["again"] for each in (*here, *gone))
            operator.rate = sum(each["processed"] or each["arrivals"] for each in here)
            operator.queue = sum(each["queue"] for each in here)
            known = [each for each in here if each["capacity"]]
            operator.load = (
                sum(each["load"] / each["capacity"] for each in known) / len(known)
                if known
                else 0.0
            )
            if operator.kind is Kind.SINK:
                for each in (*here, *gone):
                    self.latencies.update(each["latencies"])
        for operator in self.operators.values():
            prefix = f"{operator.name}."
            mine = [event for event in self.actions if event[1].startswith(prefix)]
            operator.created = sum(e[3] for e in mine if e[2] == "duplicated")
            operator.left = sum(e[3] for e in mine if e[2] == "left")
