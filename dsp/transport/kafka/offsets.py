"""Which frames of an inbox are done with, and up to where that can be committed."""

from collections import deque

__all__ = ["Offsets"]


class Offsets:
    """Follows the records of one inbox: frames are done in any order, commits are not.

    Args:
        position: where reading starts.
    """

    def __init__(self, position: int) -> None:
        self._committed = position
        self._next = position
        self._open: deque[int] = deque()
        self._done: set[int] = set()

    def __len__(self) -> int:
        """How many frames were handed out and hold back the commit."""
        return len(self._open)

    def took(self, offset: int, *, done: bool = False) -> None:
        """A record was read; ``done`` if nobody above will see it."""
        self._next = offset + 1
        self._open.append(offset)
        if done:
            self.done(offset)

    def done(self, offset: int) -> None:
        """A record is dealt with. Saying so twice is saying so once."""
        opened = self._open
        if not opened or offset < opened[0]:
            return
        self._done.add(offset)
        while opened and opened[0] in self._done:
            self._done.discard(opened.popleft())

    def to_commit(self) -> int | None:
        """Give the position after the last record of the finished start; None if it is known."""
        position = self._open[0] if self._open else self._next
        return position if position > self._committed else None

    def committed(self, position: int) -> None:
        """The brokers have this position."""
        self._committed = max(self._committed, position)
