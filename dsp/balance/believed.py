"""What records are believed to cost, remembered by key until somebody tells more.

Reading estimates one by one costs far more than reading many at once, and the same keys come again
and again. So after a change all that is remembered is read anew together, as soon as it is asked
for; unless that is much, and most of it may never come again: then it is forgotten.
"""

from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

__all__ = ["Believed"]

T = TypeVar("T")

# Keys that are remembered at most, and those that are read anew after a change.
REMEMBERED: Final = 1 << 15
RENEWED: Final = 1 << 11


class Believed(Generic[T]):
    """Remembers estimates.

    Args:
        read: gives the estimate of each key.
    """

    def __init__(self, read: Callable[[list[bytes]], Sequence[T]]) -> None:
        self._read = read
        self._known: dict[bytes, T] = {}
        self._is_stale = False

    def change(self) -> None:
        """Estimates are others than they were."""
        self._is_stale = True

    def of(self, keys: Sequence[bytes]) -> list[T]:
        """Give the estimate of each key."""
        known = self._known
        if self._is_stale:
            self._renew()
        try:
            return list(map(known.__getitem__, keys))
        except KeyError:
            fresh = list(dict.fromkeys([key for key in keys if key not in known]))
        if len(known) + len(fresh) > REMEMBERED:
            known.clear()
            fresh = list(dict.fromkeys(keys))
        known.update(zip(fresh, self._read(fresh), strict=True))
        return list(map(known.__getitem__, keys))

    def _renew(self) -> None:
        known, self._is_stale = self._known, False
        if len(known) > RENEWED:
            known.clear()
        elif known:
            keys = list(known)
            known.update(zip(keys, self._read(keys), strict=True))
