"""The few words that every part of dsp shares."""

from dataclasses import dataclass
from enum import Enum
from typing import NewType

__all__ = ["NodeId", "Lane", "Peer"]

NodeId = NewType("NodeId", str)
"""Name of an endpoint (one per process), stable across its restarts."""


class Lane(Enum):
    """One of the two independent channels between two peers.

    FIFO inside a lane, nothing promised between lanes: a lane full of data never delays control.
    """

    CONTROL = "control"
    DATA = "data"

    # Members are singletons. Enum's own hash is a call of a Python function, and a lane is looked
    # up several times for every frame.
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, order=True)
class Peer:
    """An endpoint: who it is, and where it can be reached.

    Attributes:
        id: the endpoint's name; identity is by name, an address may change.
        address: URL of the endpoint, as other processes can use it.
    """

    id: NodeId
    address: str

    def __str__(self) -> str:
        return f"{self.id} <{self.address}>"
