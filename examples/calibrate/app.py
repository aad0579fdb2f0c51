"""Messages that are digested by C code, and by Python code.

``dsp calibrate examples.calibrate.app:pipeline digest checksum lookup`` shows what threads are
worth: ``digest`` uses as many cores as it has threads, ``checksum`` one, and ``lookup`` none, so
that every thread counts.
"""

import hashlib
import time

from dsp import Collector, Pipeline

__all__ = ["pipeline", "digest", "checksum", "lookup"]

BLOCK = bytes(4 << 20)


def digest(message: str) -> str:
    """Hash some megabytes. hashlib releases the lock while it does."""
    return hashlib.sha256(message.encode() + BLOCK).hexdigest()


def checksum(message: str) -> int:
    """Add up numbers, in Python: one thread at a time has the lock."""
    total = len(message)
    for number in range(60_000):
        total = (total * 31 + number) & 0xFFFFFFFF
    return total


def lookup(message: str) -> str:
    """Wait, as for the answer of a database."""
    time.sleep(0.01)
    return message.upper()


def pipeline() -> Pipeline:
    """Every message goes to each of the three bodies."""
    job = Pipeline("calibrate")
    messages = job.source([f"message {number}" for number in range(100)], name="messages")
    job.merge(messages.map(digest), messages.map(checksum), messages.map(lookup)).sink(Collector())
    return job
