"""An inbox that keeps nothing: what comes in goes straight to the layer above.

With it a session takes a frame in the step in which its adapter got it. A queue and a task between
the two would cost a turn of the event loop for each, which is most of the latency of a round trip.
"""

from collections.abc import Callable
from typing import NoReturn, Protocol

from dsp.errors import BusyError
from dsp.transport.base import Inbound

__all__ = ["Inbox", "Passage", "Halves"]


class Halves:
    """A payload that came in two parts and was not put together, which would copy it."""

    __slots__ = ("rest", "start")

    def __init__(self, start: bytes, rest: bytes) -> None:
        self.start = start
        self.rest = rest

    def __len__(self) -> int:
        return len(self.start) + len(self.rest)


class Inbox(Protocol):
    """Where an adapter puts what comes in on a lane."""

    @property
    def takes_views(self) -> bool:
        """Whether payloads may be views of memory that the adapter's library owns, or halves."""
        ...

    def __len__(self) -> int:
        """How many wait to be received."""
        ...

    @property
    def bytes(self) -> int:
        """Bytes of those."""
        ...

    def has_room(self, size: int) -> bool:
        """Tell whether one more of this size would be within the bound."""
        ...

    def notify(self) -> None:
        """Tell the adapter when one is taken, as if ``has_room`` had said no."""
        ...

    def force(self, item: Inbound, size: int) -> None:
        """Put one in, whatever the bound."""
        ...

    def get_nowait(self) -> Inbound | None:
        """Take the first, or None if there is none."""
        ...

    async def get(self) -> Inbound:
        """Take the first; wait for one."""
        ...

    def drain(self) -> list[Inbound]:
        """Take everything."""
        ...

    def end(self, error: Callable[[], Exception]) -> None:
        """Nothing more will come; whoever waits, or comes, gets the error."""
        ...


class Passage:
    """The inbox of an adapter under a session.

    Args:
        above: the inbox that what is put in here ends in; its bound is ours. None: always room.
        take: gets what comes in.
        ended: told when nothing more will come, and how the adapter explains it.
    """

    # A session takes payloads out of a segment at once, so a view spares it a copy.
    takes_views = True

    def __init__(
        self,
        above: Inbox | None,
        take: Callable[[Inbound], None],
        ended: Callable[[Exception], None],
    ) -> None:
        self._above = above
        self._take = take
        self._ended = ended

    def __len__(self) -> int:
        return 0 if self._above is None else len(self._above)

    @property
    def bytes(self) -> int:
        """Bytes of what waits above."""
        return 0 if self._above is None else self._above.bytes

    def has_room(self, size: int) -> bool:
        """Tell whether there is room above."""
        return self._above is None or self._above.has_room(size)

    def notify(self) -> None:
        """Tell when one is taken above."""
        if self._above is not None:
            self._above.notify()

    def force(self, item: Inbound, size: int) -> None:
        """Hand it on."""
        self._take(item)

    def get_nowait(self) -> NoReturn:
        """Refuse: the session receives here."""
        raise BusyError("a session receives what comes in here")

    async def get(self) -> NoReturn:
        """Refuse: the session receives here."""
        self.get_nowait()

    def drain(self) -> list[Inbound]:
        """Nothing waits here."""
        return []

    def end(self, error: Callable[[], Exception]) -> None:
        """Tell the session."""
        self._ended(error())
