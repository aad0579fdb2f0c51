"""The life of an endpoint, from one state to the next and never back."""

from enum import Enum, auto
from typing import Final

from dsp.transport.base import HealthState

__all__ = ["HEALTH", "State"]


class State(Enum):
    """Where an endpoint is in its life."""

    NEW = auto()
    OPEN = auto()
    CLOSING = auto()
    CLOSED = auto()
    ABORTED = auto()


HEALTH: Final = {
    State.NEW: HealthState.NEW,
    State.OPEN: HealthState.OK,
    State.CLOSING: HealthState.OK,
    State.CLOSED: HealthState.CLOSED,
    State.ABORTED: HealthState.CLOSED,
}
"""What ``health`` says of each, if there is nothing worse."""
