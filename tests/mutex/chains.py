"""Models of pipelines with one node for each operator, for the explorer."""

from collections.abc import Mapping, Sequence

from dsp.core.machine import Reject
from dsp.core.types import NodeId
from dsp.mutex.chain import Chain
from dsp.mutex.edges import Edge, edges_in_order, edges_of
from dsp.mutex.events import Admit, EnterRequested, ExitRequested
from dsp.mutex.member import Member
from dsp.mutex.seat import Seat
from dsp.mutex.status import Status
from dsp.testing.explorer import Model, Run, Script, View, tell

__all__ = ["ChainModel", "LINE", "DIAMOND"]

LINE = tuple(Edge(a, b) for a, b in ("ab", "bc", "cd"))
DIAMOND = tuple(Edge(a, b) for a, b in ("ab", "ac", "bd", "cd"))


class ChainModel(Model[Chain]):
    """One node for each operator, named like it; neighbours exclude each other.

    Args:
        edges: of the graph.
        entries: of each node.
        order: how a node takes its edges; None for the right way.
    """

    def __init__(
        self,
        edges: Sequence[Edge],
        *,
        entries: int = 1,
        order: Mapping[str, Sequence[Edge]] | None = None,
    ) -> None:
        self.edges = edges
        self.entries = entries
        self.order = order or {name: edges_of(name, edges) for name in self.operators()}

    def operators(self) -> list[str]:
        return sorted({name for edge in self.edges for name in (edge.before, edge.after)})

    def machines(self) -> Mapping[NodeId, Chain]:
        return {
            NodeId(name): Chain(
                Member(
                    Seat(NodeId(name), ((NodeId(edge.before),), (NodeId(edge.after),))),
                    founder=True,
                    edge=edge.name,
                )
                for edge in self.order[name]
            )
            for name in self.operators()
        }

    def scripts(self) -> Sequence[Script]:
        return [self.script(NodeId(name)) for name in self.operators()]

    def script(self, name: NodeId) -> Script:
        def inside(view: View[Chain]) -> bool:
            return view.machine(name).status is Status.INSIDE

        steps = (tell(name, EnterRequested()), tell(name, ExitRequested(), when=inside))
        return Script(name, steps * self.entries)

    def on_effect(self, run: Run, node: NodeId, effect: object) -> None:
        if isinstance(effect, Reject) or not isinstance(effect, Admit):
            run.violate(f"{node} gives {effect}")

    def invariant(self, view: View[Chain]) -> None:
        for edge in edges_in_order(self.edges):
            ends = (NodeId(edge.before), NodeId(edge.after))
            inside = [name for name in ends if view.machine(name).status is Status.INSIDE]
            assert len(inside) < 2, f"{inside} are inside"
