"""What happened in a simulated network, in order, and a digest that two runs can be compared by."""

import hashlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["TraceEntry", "Trace"]

KEPT_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One thing that happened."""

    time: float
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.time:14.9f}  {self.kind:<10} {self.detail}"


class Trace:
    """The latest entries of a run, and a digest over all of them.

    Iterating gives the kept entries, oldest first. ``count`` and ``digest`` cover every entry
    ever made, so long runs stay in bounded memory and can still be compared.
    """

    def __init__(self, keep: int = KEPT_ENTRIES) -> None:
        self._entries: deque[TraceEntry] = deque(maxlen=keep)
        self._hash = hashlib.blake2b(digest_size=16)
        self.count = 0

    def add(self, time: float, kind: str, detail: str) -> None:
        """Append an entry."""
        entry = TraceEntry(time, kind, detail)
        self._entries.append(entry)
        self._hash.update(f"{entry}\n".encode())
        self.count += 1

    @property
    def digest(self) -> str:
        """A fingerprint of everything so far: equal for equal runs."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[TraceEntry]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def tail(self, count: int) -> str:
        """The last entries as text, one per line."""
        return "\n".join(str(entry) for entry in list(self._entries)[-count:])
