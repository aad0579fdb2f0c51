"""PySpark and a Java that it can use: found, or explained."""

import hashlib
import os
import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

from dsp.cache import cache_folder
from dsp.errors import MissingExtraError
from dsp.java import JavaUnavailable, search_java
from dsp.spark.errors import SparkUnavailable

__all__ = ["OLDEST_JAVA", "check_pyspark", "java_home", "prepare"]

OLDEST_JAVA = 17
"""Spark 4 runs on this version and later ones."""

VERSIONS = (4, 0), (5, 0)
# Spark's launcher asks for a module that small runtimes lack, and that Spark can do without.
_WANTED = "--add-modules=jdk.incubator.vector"

_WRAPPER = f"""#!/bin/sh
# Runs a Java that lacks a module which Spark's launcher asks for, and which Spark can do without.
for argument do
  shift
  [ "$argument" = "{_WANTED}" ] || set -- "$@" "$argument"
done
exec '{{java}}' "$@"
"""


def check_pyspark() -> tuple[int, int]:
    """Give the version of PySpark.

    Raises:
        MissingExtraError: it is not installed.
        SparkUnavailable: it is of a version that dsp does not know.
    """
    try:
        import pyspark
    except ModuleNotFoundError as error:
        raise MissingExtraError("spark", "Spark") from error
    for needed in ("pandas", "pyarrow"):
        try:
            metadata.version(needed)
        except metadata.PackageNotFoundError as error:
            raise MissingExtraError("spark", f"Spark (its Arrow paths take {needed})") from error
    version = str(pyspark.__version__)
    match = re.match(r"(\d+)\.(\d+)", version)
    found = (int(match[1]), int(match[2])) if match else (0, 0)
    lowest, highest = VERSIONS
    if not lowest <= found < highest:
        raise SparkUnavailable(
            f"PySpark {version} is installed; dsp runs on {lowest[0]}.{lowest[1]} and newer, "
            f"below {highest[0]}",
            "pip install 'dsp[spark]'",
        )
    return found


@cache
def java_home() -> Path:
    """Give a ``JAVA_HOME`` for Spark.

    That of ``dsp.java.search_java``; or, where it lacks a module that Spark's launcher asks for, a
    folder whose ``bin/java`` runs it without.

    Raises:
        SparkUnavailable: there is no Java 17 or newer; the message says what to install.
    """
    try:
        java = search_java(OLDEST_JAVA)
    except JavaUnavailable as error:
        raise SparkUnavailable(f"Spark needs Java: {error.missing}", error.remedy) from error
    java = java.resolve()
    if _takes_all(java):
        return java.parent.parent
    return _wrapped(java)


def _takes_all(java: Path) -> bool:
    done = subprocess.run(
        [str(java), _WANTED, "-version"], capture_output=True, timeout=60, check=False
    )
    return done.returncode == 0


def _wrapped(java: Path) -> Path:
    # Executors and daemons outlive whoever starts them: the folder stays.
    digest = hashlib.sha256(str(java).encode()).hexdigest()[:12]
    home = cache_folder() / "spark-java" / digest
    wrapper = home / "bin" / "java"
    text = _WRAPPER.format(java=java)
    try:
        if not wrapper.exists() or wrapper.read_text() != text:
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            new = wrapper.with_name(f"java.{os.getpid()}")
            new.write_text(text)
            new.chmod(0o755)
            new.rename(wrapper)  # others may be at it too
    except OSError as error:
        raise SparkUnavailable(
            f"Spark needs a wrapper around {java}, and {home} cannot be written: {error}",
            "set DSP_CACHE to a folder that can be written, or install a full JRE",
        ) from error
    return home


def prepare(*, java: bool = True) -> None:
    """Make this process ready to start Spark: checks PySpark, finds Java, sets what Spark reads.

    Args:
        java: whether a Java of this machine is needed; Spark Connect does without.

    Raises:
        MissingExtraError: PySpark is not installed.
        SparkUnavailable: PySpark or Java is missing or of a wrong version.
    """
    check_pyspark()
    # Workers run what this interpreter pickled: they have to be of the same version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if java:
        os.environ["JAVA_HOME"] = str(java_home())
