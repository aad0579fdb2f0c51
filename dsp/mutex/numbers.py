"""Fencing numbers: a term, a count, and the group, in one integer that grows.

Numbers of different groups are never equal. A number of a later term is above all of earlier ones, so
whoever takes a dead member's permissions back need not know how far that member had counted.
"""

__all__ = ["next_number", "next_term", "explain"]

_COUNT_BITS = 40


def next_number(high: int, group: int) -> int:
    """Give the number of an entry that follows all that is known."""
    return (high >> 1) + 1 << 1 | group


def next_term(high: int) -> int:
    """Give the number below all those of a new term."""
    return (high >> _COUNT_BITS + 1) + 1 << _COUNT_BITS + 1


def explain(number: int) -> str:
    """Give term, count and group in words, for logs."""
    count = (number >> 1) & ((1 << _COUNT_BITS) - 1)
    return f"term {number >> _COUNT_BITS + 1}, count {count}, group {number & 1}"
