"""The life of an instance, as a table."""

from enum import Enum, auto

__all__ = ["Status", "TRANSITIONS", "WORKING"]


class Status(Enum):
    """Where an instance is in its life."""

    IDLE = auto()
    ACTIVE = auto()
    LEAVING = auto()
    DRAINING = auto()
    FAREWELL = auto()
    GONE = auto()


TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    Status.IDLE: (Status.ACTIVE, Status.GONE),
    Status.ACTIVE: (Status.LEAVING, Status.GONE),
    Status.LEAVING: (Status.DRAINING, Status.GONE),
    Status.DRAINING: (Status.FAREWELL, Status.GONE),
    Status.FAREWELL: (Status.GONE,),
    Status.GONE: (),
}
"""Where each status leads to; docs/design/scaling.md shows the same, and a test compares."""

WORKING = (Status.ACTIVE, Status.LEAVING, Status.DRAINING)
"""The statuses in which records are processed."""
