"""A guard for what must only happen inside: it refuses what comes under a superseded number."""

from dsp.errors import LeaseLost

__all__ = ["Fence"]


class Fence:
    """What a resource remembers so that a former holder cannot touch it.

    Mutual exclusion among processes that can be stopped and continued is a matter of belief: one
    that was stopped inside still believes to be inside when it goes on. The resource, however, can
    tell: it has seen a higher number of the other group. Numbers of the same group may come in any
    order, since its members are inside together.

    Keep one beside the resource itself, where all its users pass, and write ``highest`` down with
    the resource if it outlives the process.

    Args:
        highest: what ``highest`` was before.
    """

    def __init__(self, highest: tuple[int, int] = (0, 0)) -> None:
        self._highest = [*highest]

    @property
    def highest(self) -> tuple[int, int]:
        """The highest number of each group so far."""
        return self._highest[0], self._highest[1]

    def accept(self, number: int) -> None:
        """Let an effect pass, or refuse it. Remembers the number.

        Raises:
            LeaseLost: a higher number of the other group has passed.
        """
        group = number & 1
        seen = self._highest[1 - group]
        if number < seen:
            raise LeaseLost(number, seen)
        if number > self._highest[group]:
            self._highest[group] = number
