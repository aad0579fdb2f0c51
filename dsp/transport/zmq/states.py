"""The states of a link of the mesh."""

from enum import Enum, auto

__all__ = ["Bye", "LinkState"]


class Bye(Enum):
    """How far the parting of a link is."""

    NONE = auto()
    DUE = auto()
    SENT = auto()
    RECEIVED = auto()


class LinkState(Enum):
    """Where a link is with its connection."""

    AWAY = auto()
    DIALLING = auto()
    OPEN = auto()
    CLOSED = auto()
