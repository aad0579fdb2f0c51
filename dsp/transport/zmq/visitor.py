"""A connection that came in and said who it is."""

from dsp.core.types import Peer
from dsp.errors import CodecError

__all__ = ["Visitor"]


class Visitor:
    """Who is at the other end, and the pieces of a large frame that have come so far.

    Args:
        most: bytes of the largest frame; checked before a piece is kept.
    """

    __slots__ = ("_pieces", "_size", "_spoilt", "gone", "most", "peer")

    def __init__(self, peer: Peer, most: int) -> None:
        self.peer = peer
        self.most = most
        self.gone = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._spoilt = False

    def add(self, piece: bytes, *, last: bool) -> bytes | None:
        """Take a piece; give the frame if it is whole.

        Raises:
            CodecError: the frame is too large; its further pieces are passed over.
        """
        if self._spoilt:
            self._spoilt = not last
            return None
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self.most:
            size = self._size
            self._clear(spoilt=not last)
            raise CodecError(f"a frame of {size} bytes or more, over {self.most}")
        if not last:
            return None
        frame = b"".join(self._pieces)
        self._clear(spoilt=False)
        return frame

    def _clear(self, *, spoilt: bool) -> None:
        self._pieces = []
        self._size = 0
        self._spoilt = spoilt
