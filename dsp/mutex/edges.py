"""The order in which a node with several neighbouring groups takes them (paper 000 section 5.1).

A pipeline has a pair of groups for each of its edges: the members of the operator before and of
the one after. A node takes the edges from its predecessors first, then those to its successors. In
a DAG with several of each that leaves a choice, which must not differ between nodes, or they could
wait for each other in a circle. So all edges stand in one order, by the place of their start, then
of their end, in a topological order of the operators, and everybody takes its own in that order.
An edge from a predecessor starts at an earlier operator than an edge to a successor does, hence
the rule of 5.1 holds as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from dsp.errors import ConfigError

__all__ = ["Edge", "edges_in_order", "edges_of"]


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Two neighbouring operators. The one before is group 0, the one after group 1."""

    before: str
    after: str

    @property
    def name(self) -> str:
        """As messages have it."""
        return f"{self.before}>{self.after}"


def edges_in_order(edges: Iterable[Edge]) -> list[Edge]:
    """Give all edges of a DAG in the order in which everybody takes its own.

    Raises:
        ConfigError: there is a cycle.
    """
    known = sorted({*edges})
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for edge in known:
        sorter.add(edge.after, edge.before)
    place: dict[str, int] = {}
    try:
        sorter.prepare()
    except CycleError as error:
        raise ConfigError(f"operators in a circle: {' > '.join(error.args[1])}") from error
    while sorter.is_active():
        ready = sorted(sorter.get_ready())  # by name, so that all nodes find the same order
        for operator in ready:
            place[operator] = len(place)
        sorter.done(*ready)
    return sorted(known, key=lambda edge: (place[edge.before], place[edge.after]))


def edges_of(operator: str, edges: Iterable[Edge]) -> list[Edge]:
    """Give the edges at an operator, in the order in which its members take them."""
    ordered = edges_in_order(edges)
    return [edge for edge in ordered if operator in (edge.before, edge.after)]
