"""Seeded randomness: one seed for a run, independent streams for its parts.

Python's ``hash`` changes from process to process, so streams are derived with a fixed hash
function. Two parts with different labels never disturb each other: a new link in a simulated
network does not change what happens on the others.
"""

import hashlib
from random import Random

__all__ = ["derive_seed", "derive_random"]


def derive_seed(seed: int, *labels: str | int) -> int:
    """Give a 64-bit seed that depends on ``seed`` and on every label, the same in any process."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in (seed, *labels))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def derive_random(seed: int, *labels: str | int) -> Random:
    """Give a generator of its own for the part of a run that the labels name."""
    return Random(derive_seed(seed, *labels))
