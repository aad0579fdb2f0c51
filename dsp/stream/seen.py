"""Which records were here before, by their identities."""

from collections.abc import Sequence

__all__ = ["Seen"]

ENOUGH = 1 << 17


class Seen:
    """Remembers identities: the last ``enough`` of them at least, twice as many at most."""

    def __init__(self, enough: int = ENOUGH) -> None:
        self._enough = enough
        self._new: set[int] = set()
        self._old: set[int] = set()

    def fresh(self, ids: Sequence[int]) -> list[bool] | None:
        """Tell for each identity whether it is new; None if all are. Remembers nothing."""
        if self._new.isdisjoint(ids) and self._old.isdisjoint(ids):
            return None
        return [each not in self._new and each not in self._old for each in ids]

    def add(self, ids: Sequence[int]) -> None:
        """Remember identities."""
        self._new.update(ids)
        if len(self._new) >= self._enough:
            self._old, self._new = self._new, set()
