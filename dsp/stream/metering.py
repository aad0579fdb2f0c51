"""What records cost, told to those who choose among instances by it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from dsp._pb.balance_pb2 import BalanceFrame
from dsp.core.machine import Machine, PeerLost, Send
from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.graph import Edge, Grouping
from dsp.stream.groupings.making import Groupings, is_measured
from dsp.stream.groupings.owners import keys_of
from dsp.stream.inlet import Arrival

if TYPE_CHECKING:
    from dsp.balance.events import BalanceMessage, MeterEffect, MeterEvent

__all__ = ["Metering", "make_metering"]

logger = logging.getLogger(__name__)


def make_metering(
    operator: str,
    incoming: Mapping[str, Edge],
    groupings: Groupings,
    send: Callable[[NodeId, BalanceFrame], None],
    clock: Callable[[], float],
) -> "Metering | None":
    """Make what measures the edges that are shared out by cost; None if there are none."""
    edges = {name: edge for name, edge in incoming.items() if is_measured(edge)}
    return Metering(operator, edges, groupings, send, clock) if edges else None


class Metering:
    """A meter for each edge that is shared out by what its records cost.

    Args:
        operator: of the instance.
        edges: to it, by the operator that they come from.
        groupings: what the configuration says.
        send: sends a frame to an instance of another operator.
        clock: gives the time.
    """

    def __init__(
        self,
        operator: str,
        edges: Mapping[str, Edge],
        groupings: Groupings,
        send: Callable[[NodeId, BalanceFrame], None],
        clock: Callable[[], float],
    ) -> None:
        from dsp.balance.machine_adaptive_meter import AdaptiveMeter
        from dsp.balance.machine_osg_meter import OsgMeter
        from dsp.balance.shares import Shares

        self._operator = operator
        self._edges = edges
        self._send = send
        self._clock = clock
        settings = groupings.balance
        self._shares = {name: Shares(settings) for name in edges}
        self._meters: dict[str, Machine[MeterEvent, MeterEffect]] = {
            name: (OsgMeter if edge.grouping is Grouping.OSG else AdaptiveMeter)(settings)
            for name, edge in edges.items()
        }

    def keys(self, arrival: Arrival, batch: Batch) -> list[bytes] | None:
        """Give the keys of records by whose costs somebody chooses; None if nobody does."""
        edge = self._edges.get(arrival.operator)
        return None if edge is None else keys_of(batch, cast("Callable[..., object]", edge.key))

    def executed(
        self, arrival: Arrival, keys: Sequence[bytes], seconds: Sequence[float], total: float
    ) -> None:
        """Records went through the body.

        Args:
            arrival: which they came with.
            keys: theirs.
            seconds: what each took; empty if only the sum is known.
            total: the sum.
        """
        from dsp.balance.events import Executed
        from dsp.balance.wire import from_request

        if len(seconds) != len(keys):
            seconds = self._shares[arrival.operator].of(keys, total)
        request = None if arrival.request is None else from_request(arrival.request)
        self._step(arrival.operator, Executed(arrival.sender, keys, seconds, request))

    def lost(self, name: NodeId) -> None:
        """An instance is gone, whatever it was."""
        for operator in self._meters:
            self._step(operator, PeerLost(name))

    def _step(self, operator: str, event: "MeterEvent") -> None:
        from dsp.balance.wire import to_frame

        for effect in self._meters[operator].handle(event, self._clock()):
            if isinstance(effect, Send):
                message = cast("BalanceMessage", effect.message)
                self._send(effect.to, to_frame(message, self._operator))
