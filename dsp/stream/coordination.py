"""When an instance may take a scaling step: at once, or while no neighbouring operator takes one.

The scale protocol needs no permission: it is explored with neighbours that scale at any moment, and
that is ``coordination = "ack"``. With ``"2fgme"`` (chapter 5 of paper 000) an instance asks before
it begins, and says when it is done; ``dsp.stream.exclusion`` has that. What is here is the seam
between the two and an instance.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.scaling.events import LeaveRequested, Member
from dsp.scaling.service import ScaleRequest

__all__ = ["Coordinator", "ScalingStep", "Wish"]


@dataclass(frozen=True, slots=True)
class ScalingStep:
    """A scaling step that is over.

    Attributes:
        instance: whose it was.
        kind: ``"duplicate"`` or ``"leave"``.
        asked: when it was decided on; seconds, as all times here on the clock of the host.
        begun: when it was allowed to begin.
        over: when the newcomers were told to start, or the leaver was gone.
        newcomers: who was created.
    """

    instance: str
    kind: str
    asked: float
    begun: float
    over: float
    newcomers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wish:
    """A scaling step that somebody wants.

    Attributes:
        request: what to begin.
        asked: when it was decided on.
        stands: whether it is still wanted, asked when it may begin.
    """

    request: ScaleRequest
    asked: float
    stands: Callable[[], bool] = lambda: True

    @property
    def kind(self) -> str:
        """In a word."""
        return "leave" if isinstance(self.request, LeaveRequested) else "duplicate"


class Coordinator:
    """Says when one instance may take a scaling step. This one: at once.

    Args:
        begin: begins a step; False if it cannot begin any more.

    Attributes:
        messages: sent for coordination alone.
        refused: wishes that were dropped when their turn came.
    """

    def __init__(self, begin: Callable[[Wish], bool]) -> None:
        self._begin = begin
        self.messages = 0
        self.refused = 0

    @property
    def waiting(self) -> bool:
        """Whether a wish waits for its turn."""
        return False

    def ask(self, wish: Wish) -> None:
        """Begin a step, now or later. One that waits already is replaced."""
        if not self._begin(wish):
            self.refused += 1

    def withdraw(self) -> None:
        """Drop the wish that waits, if there is one."""

    def over(self) -> None:
        """The step that was begun is over."""

    def hear(self, sender: NodeId, kind: str, envelope: Envelope) -> None:
        """A message of coordination came."""

    def keeper_is(self, keeper: Member) -> None:
        """A predecessor tells who the keeper of this instance's operator is."""

    def look(self) -> None:
        """A message of the scale protocol was dealt with: this instance may be keeper now."""

    def lose(self, name: NodeId) -> None:
        """An instance is dead."""

    def close(self) -> None:
        """This instance is over."""
