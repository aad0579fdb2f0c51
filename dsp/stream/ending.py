"""How a stream that is over ends, without anyone who knows the whole graph.

An instance has *ended* when every instance before it has told it so, nothing waits or is under way,
and it is busy with no operation of the scale protocol. It then tells every instance after it, and
goes when all of them have acknowledged that.

An end is acknowledged only while no operation is under way, and whoever heard of one begins none.
So an instance that duplicates keeps those before it alive until its newcomers are known to them,
and they tell the newcomers too; one that leaves is forgotten by those before it, who then wait for
it no longer.
"""

from collections.abc import Callable, Iterable

from dsp.core.types import NodeId

__all__ = ["Ending"]


class Ending:
    """One instance's part of the end.

    Args:
        tell: sends an end to an instance after this one.
        acknowledge: answers an end.
        over: called once, when this instance may go.
    """

    def __init__(
        self,
        tell: Callable[[NodeId], None],
        acknowledge: Callable[[NodeId], None],
        over: Callable[[], None],
    ) -> None:
        self._tell = tell
        self._acknowledge = acknowledge
        self._over = over
        self._heard: set[NodeId] = set()
        self._owed: list[NodeId] = []
        self._told: set[NodeId] = set()
        self._waiting: set[NodeId] = set()
        self._is_over = False
        self.ended = False

    @property
    def begun(self) -> bool:
        """Whether anyone before this instance has ended: nothing new is begun then."""
        return bool(self._heard) or self.ended

    def heard(self, sender: NodeId) -> None:
        """An instance before this one has ended."""
        self._heard.add(sender)
        self._owed.append(sender)

    def acknowledged(self, sender: NodeId) -> None:
        """An instance after this one has taken the end."""
        self._waiting.discard(sender)

    def step(
        self,
        *,
        settled: bool,
        quiet: bool,
        before: Iterable[NodeId],
        after: Iterable[NodeId],
    ) -> None:
        """Look what is due, after anything happened.

        Args:
            settled: active, and busy with no operation.
            quiet: nothing waits or is under way, and nothing is read.
            before: the instances before this one.
            after: those after it.
        """
        if self._is_over:
            return
        if settled:
            owed, self._owed = self._owed, []
            for sender in owed:
                self._acknowledge(sender)
            if quiet and not self.ended and all(name in self._heard for name in before):
                self.ended = True
        if not self.ended:
            return
        after = list(after)
        for name in after:
            if name not in self._told:
                self._told.add(name)
                self._waiting.add(name)
                self._tell(name)
        self._waiting.intersection_update(after)
        if not self._waiting and settled:
            self._is_over = True
            self._over()
