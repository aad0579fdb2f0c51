"""When a batch is done: once everything that came out of it is.

An input holds a token. Whoever still has something to do for it holds the token once: the body
while it works, and each output until the next stage says that it is done. The last one to let go
makes the input done.
"""

from collections.abc import Callable, Sequence

__all__ = ["Token", "holding"]


class Token:
    """Counts what is still to be done for an input.

    Args:
        done: called once, when nothing is left.
    """

    __slots__ = ("_count", "_done")

    def __init__(self, done: Callable[[], None]) -> None:
        self._count = 1
        self._done = done

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to be done."""
        return self._count == 0

    def tell(self, done: Callable[[], None]) -> None:
        """Have another one called when nothing is left."""
        self._done = done

    def hold(self) -> "Token":
        """One thing more is to be done."""
        self._count += 1
        return self

    def release(self) -> None:
        """One thing is done."""
        self._count -= 1
        if self._count == 0:
            # Who is told may hold this token: kept, the two would wait for the collector of
            # garbage, which is rare in processes of the engine, and records with them.
            done, self._done = self._done, _nothing
            done()


def _nothing() -> None:
    """What is left to be told by a token that is done."""


def holding(tokens: Sequence[Token]) -> Token:
    """Hold several tokens as one."""
    held = [token.hold() for token in tokens]

    def release() -> None:
        for token in held:
            token.release()

    return Token(release)
