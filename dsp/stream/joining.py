"""Batches that wait, put together for a body that is dear to call.

What comes out of them holds the tokens of all of them, so each is done when everything is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsp.errors import CodecError
from dsp.stream.batch import Batch, put_together
from dsp.stream.inlet import Arrival
from dsp.stream.tokens import Token

__all__ = ["Joined", "join"]


@dataclass(frozen=True, slots=True)
class Joined:
    """Arrivals that are processed as one, and their records; or one that cannot be read."""

    arrival: Arrival
    batch: Batch | CodecError


def join(arrivals: list[Arrival], read: Callable[[Arrival], Batch]) -> list[Joined]:
    """Put arrivals together as far as their columns are the same. Meant for a worker thread.

    Args:
        read: gives the records of an arrival, or raises CodecError.
    """
    made: list[Joined] = []
    alike: dict[Any, list[tuple[Arrival, Batch]]] = {}
    for arrival in arrivals:
        try:
            batch = read(arrival)
        except CodecError as error:
            made.append(Joined(arrival, error))
            continue
        # Rows become columns later, all of them together.
        kind = None if isinstance(batch.values, list) else batch.values.schema
        alike.setdefault(kind, []).append((arrival, batch))
    return made + [_one(members) for members in alike.values()]


def _one(members: list[tuple[Arrival, Batch]]) -> Joined:
    first, batch = members[0]
    if len(members) == 1:
        return Joined(first, batch)
    tokens = [arrival.token for arrival, _ in members]

    def done() -> None:
        for token in tokens:
            token.release()

    whole = Arrival(
        first.sender,
        first.operator,
        first.sequence,
        sum(arrival.records for arrival, _ in members),
        sum(arrival.size for arrival, _ in members),
        min(arrival.born for arrival, _ in members),
    )
    whole.token = Token(done)
    for arrival, _ in members:
        arrival.forget()
    return Joined(whole, put_together([batch for _, batch in members]))
