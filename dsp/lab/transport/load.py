"""What is sent: loads, the records of a frame, and the figures of a run."""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["Figures", "Load", "LoadKind", "pack", "percentile", "unpack"]

_COUNT: Final = struct.Struct("!I")


class LoadKind(Enum):
    """What a load is for."""

    FLOW = "flow"
    """As many records as possible, in frames of ``batch`` records."""
    ANSWERS = "answers"
    """Round trips, one after the other, with nothing else going on."""
    LOADED_ANSWERS = "loaded answers"
    """Round trips on CONTROL while DATA is full."""
    SHARED_ANSWERS = "shared answers"
    """Round trips on DATA while DATA is full: what happens without lanes."""
    CLOG = "clog"
    """A reader that never reads: how much memory both ends take."""


@dataclass(frozen=True, slots=True)
class Load:
    """One thing to measure.

    Attributes:
        record_bytes: size of a record.
        batch: records in a frame; 1 sends records as they are, one call each.
        seconds: how long.
    """

    kind: LoadKind
    record_bytes: int = 100
    batch: int = 256
    seconds: float = 1.0

    @property
    def name(self) -> str:
        """For tables."""
        if self.kind is LoadKind.FLOW:
            return f"{self.batch} x {self.record_bytes} B"
        return str(self.kind.value)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run of a load gave; None where it does not apply.

    Attributes:
        rate: records per second, counted where they arrive.
        p50: median of the round trips in seconds.
        p99: the round trip that 99 of 100 are not longer than.
        resident_mib: most memory that the two processes held, each.
    """

    rate: float | None = None
    p50: float | None = None
    p99: float | None = None
    resident_mib: tuple[float, float] | None = None


def pack(records: list[bytes]) -> bytes:
    """Put records into a frame: count, lengths, contents."""
    count = len(records)
    return b"".join([struct.pack(f"!I{count}I", count, *map(len, records)), *records])


def unpack(frame: bytes) -> list[bytes]:
    """Take the records out of a frame."""
    (count,) = _COUNT.unpack_from(frame)
    lengths = struct.unpack_from(f"!{count}I", frame, _COUNT.size)
    start = _COUNT.size * (count + 1)
    records = []
    for length in lengths:
        records.append(frame[start : start + length])
        start += length
    return records


def percentile(values: list[float], share: float) -> float:
    """Give the value that a share of all values is not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
