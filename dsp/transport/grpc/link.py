"""The sending side of a lane to one peer: what waits, and what the peer has not confirmed yet."""

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from dsp.core.types import Lane, Peer
from dsp.errors import CodecError
from dsp.transport.adapter import Link
from dsp.transport.grpc.wire import PACK_BYTES, PACK_OVERHEAD

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["GrpcLink"]

# Below this a small queue would make the sender wait for confirmations all the time.
_LEAST_WINDOW_BYTES = 1024 * 1024
_LEAST_WINDOW_FRAMES = 1024


class GrpcLink(Link):
    """A queue, the frames that were written and not confirmed, and how to continue after a cut.

    Frames are numbered silently: both ends count. After a cut the receiver says how many it has, so
    exactly those that it lacks are written again.
    """

    def __init__(self, peer: Peer, lane: Lane, config: "TransportConfig") -> None:
        super().__init__(peer, lane, config)
        self.wanted = asyncio.Event()  # frames came, were confirmed, or the stream is over
        self.connected_before = False
        self.reported: str | None = None  # the fault that was told last
        self.closed_early = 0  # attempts in a row in which the peer closed without a word
        self._attempt: asyncio.Task[None] | None = None
        self.window_bytes = max(config.send_queue_bytes, _LEAST_WINDOW_BYTES)
        self.window_frames = max(config.send_queue_frames, _LEAST_WINDOW_FRAMES)
        self.sequence_id = secrets.randbits(64)
        self.confirmed = 0
        self._confirmed_before = 0  # to other processes
        self._sent: deque[bytes] = deque()
        self._sent_bytes = 0
        self._rewrite = 0  # of those, how many to write again: the newest

    # -- what the shared half asks --------------------------------------------------------

    def pending(self) -> list[bytes]:
        """Take what was accepted and not confirmed, oldest first."""
        return self._forget() + self.queue.drain()

    def waiting(self) -> bool:
        return bool(self._sent) or len(self.queue) > 0

    def moved(self) -> int:
        return self.queue.taken + self._confirmed_before + self.confirmed

    def unacknowledged(self) -> int:
        return len(self._sent)

    # -- connections ----------------------------------------------------------------------

    def attempt(self, task: "asyncio.Task[None]") -> None:
        """Remember the task that serves the connection which the link has just now."""
        self._attempt = task

    def cut(self) -> None:
        """Use the connection no more."""
        if self._attempt is not None:
            self._attempt.cancel()

    def move(self, to: Peer) -> list[bytes]:
        """Go to another address from now on; give what the process at the old one may lack.

        With a number of its own, since the old process may be met again and counts on.
        """
        self.peer = to
        self.sequence_id = secrets.randbits(64)
        return self._forget()

    def resume(self, *, resumed: bool, received: int) -> list[bytes]:
        """Continue after the peer has said what it has; give what went to nobody.

        Args:
            resumed: whether the peer took earlier frames of this link. If not it is another process
                than before: what the former one did not confirm is given back.
            received: how many it took.

        Raises:
            CodecError: it claims to have frames that were never sent, or to have lost some.
        """
        if not resumed:
            return self._forget()
        news = received - self.confirmed
        if not 0 <= news <= len(self._sent):
            raise CodecError(f"claims {received} frames, and {self.confirmed} were confirmed")
        self._confirm(news)
        self._rewrite = len(self._sent)
        return []

    # -- frames ---------------------------------------------------------------------------

    def take_pack(self, most: int) -> list[bytes]:
        """Take the frames to write next; none if there are none, or too many are not confirmed.

        A frame over ``most`` bytes, which the peer would not take, is left where it is.
        """
        if self._rewrite:
            start = len(self._sent) - self._rewrite
            payloads = _first_of(islice(self._sent, start, None))
            self._rewrite -= len(payloads)
            return payloads
        payloads, size = [], 0
        if self._sent_bytes >= self.window_bytes or len(self._sent) >= self.window_frames:
            return payloads
        while (payload := self.queue.peek()) is not None and len(payload) <= most:
            size += len(payload) + PACK_OVERHEAD
            if payloads and size > PACK_BYTES:
                break
            self.queue.get_nowait()
            payloads.append(payload)
        # Before they are written, since the peer may confirm them before we hear of the write.
        self._sent.extend(payloads)
        self._sent_bytes += sum(map(len, payloads))
        return payloads

    def take_too_large(self, most: int) -> bytes | None:
        """Take the next frame if the peer would not take it."""
        payload = self.queue.peek()
        if self._rewrite or payload is None or len(payload) <= most:
            return None
        return self.queue.get_nowait()

    def progress(self, received: int) -> None:
        """The peer has this many frames.

        Raises:
            CodecError: it cannot have as many.
        """
        news = received - self.confirmed
        if not 0 <= news <= len(self._sent) - self._rewrite:
            raise CodecError(f"claims {received} frames, and {self.confirmed} were confirmed")
        self._confirm(news)
        self.wanted.set()

    def _confirm(self, count: int) -> None:
        for _ in range(count):
            self._sent_bytes -= len(self._sent.popleft())
        self.confirmed += count

    def _forget(self) -> list[bytes]:
        frames = list(self._sent)
        self._sent.clear()
        self._sent_bytes = self._rewrite = 0
        self._confirmed_before += self.confirmed
        self.confirmed = 0
        return frames


def _first_of(payloads: Iterable[bytes]) -> list[bytes]:
    """Give as many as fit into a pack, one at least."""
    found: list[bytes] = []
    size = 0
    for payload in payloads:
        size += len(payload) + PACK_OVERHEAD
        if found and size > PACK_BYTES:
            break
        found.append(payload)
    return found
