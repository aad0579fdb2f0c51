"""The job that every contender does: lines of 100 B -> parse 4 fields -> filter -> map -> count.

Imported by all of them, so it needs nothing but Python. Lines end with a line feed, as in a file.
"""

import gc
from collections.abc import Iterator
from functools import lru_cache

LINE_BYTES = 100
BATCH = 1024
# What everybody with several processes reads at a time: a message costs the same, however long.
WIDE_BATCH = 4 * BATCH
DISTINCT = 16 * BATCH
# Speeds are 0 to 99.9 in turn, so half of the records are kept.
LIMIT = 50.0

Record = tuple[int, str, float, str]


def calm() -> None:
    """Let every contender collect garbage as seldom as the processes of the engine do."""
    gc.set_threshold(50_000, 20, 20)


@lru_cache(maxsize=1)
def distinct_lines() -> list[str]:
    """Make the lines that are given again and again: making them is not what is measured."""
    heads = (f"{n:08d},car-{n % 977},{(n * 37 % 1000) / 10}," for n in range(DISTINCT))
    return [head + "x" * (LINE_BYTES - 1 - len(head)) + "\n" for head in heads]


def batches(records: int, size: int = BATCH) -> Iterator[list[str]]:
    """Give so many lines, in batches."""
    lines = distinct_lines()
    at = 0
    while records > 0:
        batch = lines[at : at + min(size, records)]
        yield batch
        records -= len(batch)
        at = (at + len(batch)) % len(lines)


def parse(line: str) -> Record:
    """Read four fields."""
    number, name, speed, note = line[:-1].split(",")
    return int(number), name, float(speed), note


def keep(record: Record) -> bool:
    """Tell whether a record is of interest."""
    return record[2] < LIMIT


def convert(record: Record) -> tuple[str, float]:
    """Make metres per second of kilometres per hour."""
    return record[1], record[2] / 3.6


def parse_and_keep(lines: list[str]) -> list[Record]:
    """The first half of the job on a batch."""
    return list(filter(keep, map(parse, lines)))


def convert_and_count(records: list[Record]) -> int:
    """The second half of the job on a batch."""
    return len(list(map(convert, records)))


def expected(records: int) -> int:
    """How many of so many records are kept."""
    whole, rest = divmod(records, DISTINCT)
    lines = distinct_lines()
    return whole * len(parse_and_keep(lines)) + len(parse_and_keep(lines[:rest]))


def plain(records: int) -> int:
    """Do the job in a loop over batches, each body called through ``map`` as the engine does."""
    count = 0
    for batch in batches(records):
        parsed = list(map(parse, batch))
        kept = list(filter(keep, parsed))
        converted = list(map(convert, kept))
        count += len(converted)
    return count
