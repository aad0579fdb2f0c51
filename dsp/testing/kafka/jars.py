"""Kafka's own jars, resolved by the package ``jgo`` into a cache folder, once per machine."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dsp.cache import cache_folder
from dsp.testing.kafka.errors import KafkaUnavailable

__all__ = ["KAFKA_VERSION", "alone", "cache_folder", "class_path", "kafka_folder"]

KAFKA_VERSION = "4.3.1"

# Without a binding for SLF4J the broker has no log.
_ARTIFACTS = f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}+org.slf4j:slf4j-simple:1.7.36"


def kafka_folder() -> Path:
    """Give the part of the cache folder that is for this version of Kafka."""
    return cache_folder() / "kafka" / KAFKA_VERSION


def class_path(say: Callable[[str], None]) -> str:
    """Give the class path of Kafka; download the jars if they are not in the cache.

    Args:
        say: is told what takes time.

    Raises:
        KafkaUnavailable: they are not there and cannot be downloaded.
    """
    folder = kafka_folder()
    # The list is written last, so a download that was cut short is not taken for whole.
    listed = folder / "jars.txt"
    with alone(folder):
        jars = listed.read_text().splitlines() if listed.exists() else []
        if not jars or not all(Path(jar).exists() for jar in jars):
            say(f"downloading Apache Kafka {KAFKA_VERSION} with jgo into {folder} (once, ~40 MB)")
            jars = [str(jar) for jar in _resolve(folder)]
            listed.write_text("\n".join(jars) + "\n")
    return os.pathsep.join(jars)


def _resolve(folder: Path) -> list[Path]:
    try:
        import jgo
    except ModuleNotFoundError as error:
        raise KafkaUnavailable(
            "Kafka's jars need the package jgo", "pip install 'dsp[testing]'"
        ) from error
    try:
        jars = jgo.build(_ARTIFACTS, cache_dir=folder).all_jars
    # jgo lets through whatever its resolver and its HTTP library raise, with no base of its own.
    except Exception as error:
        raise KafkaUnavailable(
            f"Kafka's jars ({_ARTIFACTS}) cannot be resolved: {error!r}",
            "check the network and the proxy; or set DSP_KAFKA_BOOTSTRAP=host:port to a broker "
            "that runs; or copy the cache folder (DSP_CACHE) from a machine that has it",
        ) from error
    if not any(jar.name.startswith("kafka_2.13") for jar in jars):
        raise KafkaUnavailable(f"jgo gave {len(jars)} jars and no Kafka", f"remove {folder}")
    return sorted(jars)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other test runs of this machine out while the folder is filled."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise KafkaUnavailable(
            f"the cache folder {folder} cannot be written: {error}", "set DSP_CACHE to another one"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
