"""A broker's empty storage: made by Kafka's own tool once per machine, then copied.

The tool is a Java program that takes longer to start than many a test. What it writes differs from
broker to broker in one small text file alone.
"""

import base64
import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

from dsp.testing.kafka.jars import alone, kafka_folder

__all__ = ["copy_storage", "new_id"]

_IDENTITY = "meta.properties"


def new_id() -> str:
    """Make an id as Kafka has them."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # The storage tool takes a leading dash for an option.
    return text.replace("-", "a").replace("_", "b")


def copy_storage(folder: Path, cluster: str, node: int, make: Callable[[Path], None]) -> None:
    """Make the storage of a new broker.

    Args:
        folder: is created.
        cluster: id of the cluster.
        node: number of the broker.
        make: runs the storage tool on a file of settings; called if no storage is in the cache.
    """
    cached = kafka_folder() / "storage"
    with alone(kafka_folder()):
        if not cached.exists():
            with tempfile.TemporaryDirectory(dir=kafka_folder()) as scratch:
                settings, fresh = Path(scratch, "server.properties"), Path(scratch, "storage")
                settings.write_text(_plain(fresh))
                make(settings)
                fresh.rename(cached)
    shutil.copytree(cached, folder)
    identity = folder / _IDENTITY
    own = {"cluster.id": cluster, "node.id": str(node), "directory.id": new_id()}
    lines = (line.partition("=") for line in identity.read_text().splitlines())
    identity.write_text(
        "".join(f"{key}{mark}{own.get(key, value)}\n" for key, mark, value in lines)
    )


def _plain(folder: Path) -> str:
    return (
        "process.roles=broker,controller\n"
        "node.id=1\n"
        "controller.quorum.voters=1@127.0.0.1:1\n"
        "controller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://127.0.0.1:2,CONTROLLER://127.0.0.1:1\n"
        f"log.dirs={folder}\n"
    )
