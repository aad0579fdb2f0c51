"""A stream of numbered frames, and what one may say about those that arrived."""

import asyncio
from collections.abc import Sequence

from dsp.core.types import Lane, Peer
from dsp.testing.contract.harness import numbered
from dsp.transport.base import Guarantees, Transport

__all__ = ["FRAME", "FINAL", "Stream", "check_sequence"]

FRAME = bytes(1024)
FINAL = 200


class Stream:
    """Numbered frames to one peer, as fast as they are accepted, until told to end.

    Attributes:
        accepted: how many ``send`` has taken.
    """

    def __init__(self) -> None:
        self.accepted = 0
        self._ending = False
        self._ended = asyncio.Event()

    async def run(self, sender: Transport, to: Peer) -> None:
        """Send until told to end, and a few more."""
        left = FINAL
        while left > 0:
            await sender.send(to, numbered(self.accepted, FRAME), lane=Lane.DATA)
            self.accepted += 1
            left -= self._ending
        self._ended.set()

    async def end(self) -> None:
        """Let it send its final frames, and wait until they are accepted."""
        self._ending = True
        await self._ended.wait()


def check_sequence(
    got: Sequence[int], guarantees: Guarantees, what: str, first: int | None = None
) -> None:
    """Check what one incarnation received: order, repeats and gaps, as far as it is promised."""
    fresh = list(dict.fromkeys(got))
    if not guarantees.duplicates:
        assert len(fresh) == len(got), f"{what}: {len(got) - len(fresh)} frames came twice"
    if guarantees.ordered:
        assert fresh == sorted(fresh), f"{what}: frames out of order"
    if guarantees.ordered and guarantees.reliable and fresh:
        start = fresh[0] if first is None else first
        expected = range(start, start + len(fresh))
        gap = next((n for n, m in zip(expected, fresh, strict=True) if n != m), None)
        assert gap is None, f"{what}: {gap} is missing, later ones came"
