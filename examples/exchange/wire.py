"""How the exchange's messages and batches become bytes.

Every frame names the run that it belongs to: a durable transport may still hold frames of an
earlier one that was broken off, and their numbers mean nothing in this one.
"""

import json
from collections.abc import Hashable
from dataclasses import dataclass

from dsp.core.envelope import Custom, Envelope, decode_envelope, encode_envelope
from dsp.errors import CodecError
from examples.exchange.counting import Answer, Ask, Finished, Message

__all__ = ["Batch", "Codec"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some words, and which batch of this sender to this receiver they are, from 0."""

    number: int
    words: tuple[str, ...]


class Codec:
    """Reads and writes the frames of one run.

    Args:
        run: name of the run; frames of other runs are refused.
    """

    def __init__(self, run: str) -> None:
        self._run = run

    def encode(self, message: Message | Batch) -> bytes:
        """Give the bytes of a message or a batch."""
        match message:
            case Batch(number, words):
                body: list[object] = ["batch", number, words]
            case Finished(batches):
                body = ["finished", batches]
            case Ask():
                body = ["ask"]
            case Answer(rows):
                body = ["answer", rows]
        custom = Custom(type="examples.exchange", payload=json.dumps([self._run, *body]).encode())
        return encode_envelope(Envelope(custom=custom))

    def decode(self, data: bytes) -> Hashable:
        """Read a message or a batch, or raise ``CodecError``."""
        try:
            body = json.loads(decode_envelope(data).custom.payload)
        except (ValueError, RecursionError) as error:
            raise CodecError(f"not a message of the exchange: {error}") from error
        match body:
            case [str(run), *_] if run != self._run:
                raise CodecError(f"it belongs to another run, {run}")
            case [_, "batch", int(number), [*words]] if all(isinstance(one, str) for one in words):
                return Batch(number, tuple(words))
            case [_, "finished", int(batches)]:
                return Finished(batches)
            case [_, "ask"]:
                return Ask()
            case [_, "answer", [*rows]] if all(map(_is_row, rows)):
                return Answer(tuple((sender, word, count) for sender, word, count in rows))
        raise CodecError("not a message of the exchange")


def _is_row(row: object) -> bool:
    match row:
        case [str(), str(), int()]:
            return True
    return False
