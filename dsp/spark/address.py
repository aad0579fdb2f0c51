"""Where a Spark is: addresses of masters and Connect servers, and whether somebody is there."""

import re
import socket
import time
from dataclasses import dataclass

from dsp.errors import ConfigError
from dsp.spark.errors import SparkUnreachable

__all__ = ["Address", "parse", "probe"]

MASTER_PORT, CONNECT_PORT = 7077, 15002
_LOCAL = re.compile(r"local(\[(\d+|\*)(,\s*\d+)?\]|-cluster\[\d+,\s*\d+,\s*\d+\])?")
_HOST = re.compile(r"(\[[^\]]+\]|[^:/;,\s]+)(?::(\d+))?")


@dataclass(frozen=True, slots=True)
class Address:
    """A Spark, by its address.

    Attributes:
        text: as the user wrote it.
        ends: host and port of everybody who may answer; none for one inside of this process.
    """

    text: str
    ends: tuple[tuple[str, int], ...] = ()

    @property
    def local(self) -> bool:
        """Whether all of it runs in this process and its children."""
        return self.text.startswith("local")

    @property
    def connect(self) -> bool:
        """Whether it is a Spark Connect server: no Java of ours is in it."""
        return self.text.startswith("sc://")

    @property
    def loopback(self) -> bool:
        """Whether it is on this machine."""
        return all(host in ("127.0.0.1", "localhost", "[::1]", "::1") for host, _ in self.ends)


def parse(text: str) -> Address:
    """Read an address.

    Raises:
        ConfigError: it is none that Spark knows; the message shows what is.
    """
    scheme, _, rest = text.partition("://")
    if _LOCAL.fullmatch(text) or scheme == "yarn" or scheme.startswith("k8s"):
        return Address(text)
    if scheme == "spark":
        return Address(text, tuple(_end(each, MASTER_PORT, text) for each in rest.split(",")))
    if scheme == "sc":
        return Address(text, (_end(re.split(r"[/;]", rest)[0], CONNECT_PORT, text),))
    raise _fault(text)


def _end(text: str, port: int, whole: str) -> tuple[str, int]:
    match = _HOST.fullmatch(text)
    if match is None:
        raise _fault(whole)
    return match[1], int(match[2] or port)


def _fault(text: str) -> ConfigError:
    return ConfigError(
        f"master {text!r}: Spark knows local, local[4], local[*], spark://host:7077, "
        "sc://host:15002, yarn and k8s://..."
    )


def probe(address: Address, patience: float) -> None:
    """See whether somebody listens there; Spark itself would try for a minute or more.

    Args:
        address: of a Spark.
        patience: seconds, for all of its ends together.

    Raises:
        SparkUnreachable: nobody does, at any of its ends; the message says what each said.
    """
    if not address.ends:
        return
    until = time.monotonic() + patience
    said = []
    for host, port in address.ends:
        try:
            left = max(0.1, until - time.monotonic())
            with socket.create_connection((host.strip("[]"), port), timeout=left):
                return
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
    what = "Spark Connect server" if address.connect else "Spark master"
    raise SparkUnreachable(
        f"no {what} at {address.text} ({'; '.join(said)}; tried for {patience:g} s). "
        "Is it started, and is this its address?"
    )
