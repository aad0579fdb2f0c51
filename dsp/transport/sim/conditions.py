"""What can happen to a frame on a simulated link: conditions of links, and rules by users."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dsp.core.types import Lane, NodeId
from dsp.errors import ConfigError

__all__ = ["LinkConditions", "Packet", "Verdict", "PASS", "DROP", "Deliver", "Rule"]


@dataclass(frozen=True, slots=True)
class LinkConditions:
    """How a link treats the frames on it. The default is a good local network.

    Attributes:
        latency: seconds from one end to the other.
        jitter: up to this many seconds more, uniformly; does not reorder.
        loss: share of frames that vanish, 0 to 1.
        duplicate: share of frames that arrive twice, 0 to 1.
        reorder: share of frames that are held back, by up to ``reorder_delay``, 0 to 1.
        reorder_delay: seconds.
        bandwidth: bytes per second and lane; None is unlimited.
    """

    latency: float = 0.001
    jitter: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_delay: float = 0.01
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        for name in ("latency", "jitter", "reorder_delay"):
            value = getattr(self, name)
            if not 0 <= value < float("inf"):
                raise ConfigError(f"link {name} is {value!r}: seconds, 0 or more")
        for name in ("loss", "duplicate", "reorder"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise ConfigError(f"link {name} is {value!r}: a share, from 0 to 1")
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise ConfigError(f"link bandwidth is {self.bandwidth!r}: bytes per second, over 0")

    def but(self, **changes: Any) -> "LinkConditions":  # noqa: ANN401
        """Give the same conditions with some of them changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Packet:
    """A frame that is about to go onto a link; what a rule decides about."""

    time: float
    source: NodeId
    destination: NodeId
    lane: Lane
    payload: bytes


class Verdict(Enum):
    """What a rule says, besides ``Deliver``."""

    PASS = "pass"
    DROP = "drop"


PASS = Verdict.PASS
DROP = Verdict.DROP


@dataclass(frozen=True, slots=True)
class Deliver:
    """Deliver the frame after this many seconds, whatever the link's conditions say.

    Frames with a delay of their own may overtake others.
    """

    delay: float


Rule = Callable[[Packet], Verdict | Deliver]
"""A user's say in each frame. The first rule that does not say ``PASS`` decides."""
