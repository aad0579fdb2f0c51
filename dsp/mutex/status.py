"""What a member of either group does, as a table."""

from enum import Enum, auto

__all__ = ["Status", "TRANSITIONS", "Phase"]


class Status(Enum):
    """Whether a member wants to get in, and whether it is."""

    IDLE = auto()
    WAITING = auto()
    INSIDE = auto()

    # Members are singletons, and the explorer hashes states millions of times.
    __hash__ = object.__hash__


TRANSITIONS: dict[Status, tuple[Status, ...]] = {
    Status.IDLE: (Status.WAITING, Status.INSIDE),
    Status.WAITING: (Status.INSIDE, Status.IDLE),
    Status.INSIDE: (Status.IDLE,),
}
"""Where each status leads to; docs/design/mutex.md shows the same, and a test compares."""


class Phase(Enum):
    """Whether a member takes part."""

    JOINING = auto()
    MEMBER = auto()
    LEFT = auto()

    __hash__ = object.__hash__
