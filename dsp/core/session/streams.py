"""One lane of a session: the sending half and the receiving half."""

from collections import deque
from collections.abc import Hashable
from typing import Any

from dsp.core.session.segments import SessionLimits, Window
from dsp.errors import InvariantError

__all__ = ["SendStream", "ReceiveStream"]


class SendStream:
    """Segments that were sent and are not acknowledged, and how much more may be sent."""

    __slots__ = (
        "limit_items",
        "limit_size",
        "recover_to",
        "resent_to",
        "sent",
        "sent_items",
        "sent_size",
        "unacknowledged",
    )

    def __init__(self) -> None:
        self.sent = 0
        self.sent_items = 0
        self.sent_size = 0
        self.limit_items = 0
        self.limit_size = 0
        self.unacknowledged: deque[tuple[int, tuple[bytes, ...]]] = deque()
        # While segments up to recover_to are missing after a time-out, those up to resent_to were
        # sent again already.
        self.recover_to = 0
        self.resent_to = 0

    def has_room(self, items: int, size: int) -> bool:
        """Tell whether the receiver has promised room for this much more."""
        return (
            self.sent_items + items <= self.limit_items and self.sent_size + size <= self.limit_size
        )

    def room(self) -> tuple[int, int]:
        """How many payloads and bytes more the receiver has promised room for."""
        return self.limit_items - self.sent_items, self.limit_size - self.sent_size

    def push(self, payloads: tuple[bytes, ...], size: int) -> int:
        """Note a segment as sent and give its number."""
        self.sent += 1
        self.sent_items += len(payloads)
        self.sent_size += size
        self.unacknowledged.append((self.sent, payloads))
        return self.sent

    def acknowledge(self, window: Window) -> bool:
        """Take in what the receiver has; tell whether that is news."""
        news = False
        while self.unacknowledged and self.unacknowledged[0][0] <= window.received:
            self.unacknowledged.popleft()
            news = True
        # Windows only grow: an older status that was overtaken must not take room back.
        self.limit_items = max(self.limit_items, window.items)
        self.limit_size = max(self.limit_size, window.size)
        return news

    def again(self, burst: int, *, restart: bool) -> list[tuple[int, tuple[bytes, ...]]]:
        """Choose what to send again: after a time-out from the start, else what comes next."""
        if restart:
            self.recover_to = self.sent
            self.resent_to = 0
        if not self.unacknowledged or self.unacknowledged[0][0] > self.recover_to:
            return []
        first = self.unacknowledged[0][0]
        if not restart and self.resent_to >= first:
            return []
        chosen: list[tuple[int, tuple[bytes, ...]]] = []
        for number, payloads in self.unacknowledged:
            if number > self.recover_to or len(chosen) == burst:
                break
            chosen.append((number, payloads))
            self.resent_to = number
        return chosen

    def check(self) -> None:
        """Raise ``InvariantError`` if the numbers contradict each other."""
        numbers = [number for number, _ in self.unacknowledged]
        if numbers != list(range(self.sent - len(numbers) + 1, self.sent + 1)):
            raise InvariantError(f"unacknowledged segments {numbers} of {self.sent}")
        if self.sent_items > self.limit_items or self.sent_size > self.limit_size:
            raise InvariantError("more was sent than there was room for")

    def state(self) -> Hashable:
        """The whole state as a value."""
        return (
            self.sent,
            self.sent_items,
            self.sent_size,
            self.limit_items,
            self.limit_size,
            tuple(self.unacknowledged),
            self.recover_to,
            self.resent_to,
        )

    def restore(self, state: Any) -> None:  # noqa: ANN401 - what state() gave
        """Return to a value of ``state``."""
        (
            self.sent,
            self.sent_items,
            self.sent_size,
            self.limit_items,
            self.limit_size,
            unacknowledged,
            self.recover_to,
            self.resent_to,
        ) = state
        self.unacknowledged = deque(unacknowledged)


class ReceiveStream:
    """What arrived, in order and ahead of order, and what the application has taken."""

    __slots__ = (
        "ahead",
        "ahead_items",
        "ahead_size",
        "consumed_items",
        "consumed_size",
        "received",
        "received_items",
        "received_size",
        "told",
    )

    def __init__(self) -> None:
        self.received = 0
        self.received_items = 0
        self.received_size = 0
        self.consumed_items = 0
        self.consumed_size = 0
        self.ahead: dict[int, tuple[bytes, ...]] = {}
        self.ahead_items = 0
        self.ahead_size = 0
        self.told = Window(0, 0, 0)

    def accept(
        self, sequence: int, payloads: tuple[bytes, ...], limits: SessionLimits
    ) -> list[tuple[bytes, ...]] | None:
        """Take a segment; give what can be delivered now, in order.

        Returns:
            None if the sender was not promised the room for it, which no correct one sends.
        """
        if sequence <= self.received or sequence in self.ahead:
            return []
        items, size = len(payloads), sum(map(len, payloads))
        received_items = self.received_items + items
        received_size = self.received_size + size
        if (
            received_items + self.ahead_items > self.consumed_items + limits.window_items
            or received_size + self.ahead_size > self.consumed_size + limits.window_bytes
            or sequence > self.received + limits.window_items
        ):
            return None
        if sequence > self.received + 1:
            self.ahead[sequence] = payloads
            self.ahead_items += items
            self.ahead_size += size
            return []
        self.received = sequence
        self.received_items = received_items
        self.received_size = received_size
        if not self.ahead:
            return [payloads]
        return [payloads, *self._follow()]

    def _follow(self) -> list[tuple[bytes, ...]]:
        """Take what came ahead and is in order now."""
        following: list[tuple[bytes, ...]] = []
        while (payloads := self.ahead.pop(self.received + 1, None)) is not None:
            items, size = len(payloads), sum(map(len, payloads))
            self.received += 1
            self.received_items += items
            self.received_size += size
            self.ahead_items -= items
            self.ahead_size -= size
            following.append(payloads)
        return following

    def window(self, limits: SessionLimits) -> Window:
        """What to tell the sender now."""
        return Window(
            self.received,
            self.consumed_items + limits.window_items,
            self.consumed_size + limits.window_bytes,
        )

    def owes(self, limits: SessionLimits) -> bool:
        """Tell whether the sender must hear of progress soon."""
        return (
            self.received - self.told.received >= limits.acknowledge_every
            or self.consumed_items + limits.window_items - self.told.items
            >= limits.window_items // 2
            or self.consumed_size + limits.window_bytes - self.told.size >= limits.window_bytes // 2
        )

    def has_news(self, limits: SessionLimits) -> bool:
        """Tell whether there is anything that the sender was not told."""
        return self.window(limits) != self.told

    def check(self, limits: SessionLimits) -> None:
        """Raise ``InvariantError`` if more is held than there is room for."""
        if any(number <= self.received + 1 for number in self.ahead):
            raise InvariantError(f"segments {sorted(self.ahead)} wait though {self.received} came")
        if (
            self.received_items + self.ahead_items - self.consumed_items > limits.window_items
            or self.received_size + self.ahead_size - self.consumed_size > limits.window_bytes
        ):
            raise InvariantError("more was received than there is room for")
        if self.consumed_items > self.received_items:
            raise InvariantError("more was consumed than received")

    def state(self) -> Hashable:
        """The whole state as a value."""
        return (
            self.received,
            self.received_items,
            self.received_size,
            self.consumed_items,
            self.consumed_size,
            tuple(sorted(self.ahead.items())),
            self.ahead_items,
            self.ahead_size,
            self.told,
        )

    def restore(self, state: Any) -> None:  # noqa: ANN401 - what state() gave
        """Return to a value of ``state``."""
        (
            self.received,
            self.received_items,
            self.received_size,
            self.consumed_items,
            self.consumed_size,
            ahead,
            self.ahead_items,
            self.ahead_size,
            self.told,
        ) = state
        self.ahead = dict(ahead)
