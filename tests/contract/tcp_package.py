"""The example transport ``tcp://`` as the contract suite uses it: installed, found, configured."""

import os
import socket
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dsp.config import TransportConfig
from dsp.core.types import Lane
from dsp.testing.contract import ContractHarness
from dsp.transport.base import Transport
from tests.contract.ports import free_port

PACKAGE = Path(__file__).parents[2] / "examples" / "tcp_transport"


def write_distribution(into: Path, name: str, entry_points: dict[str, dict[str, str]]) -> None:
    """Write what an installer leaves of a distribution: enough for its entry points to be found."""
    folder = into / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines: list[str] = []
    for group, points in entry_points.items():
        lines += [f"[{group}]", *(f"{point} = {target}" for point, target in points.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


@contextmanager
def tcp_installed(folder: Path) -> Iterator[None]:
    """Put the example on the path, with the entry points that its pyproject.toml declares."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    write_distribution(folder, project["name"], project["entry-points"])
    paths = [str(folder), str(PACKAGE)]
    sys.path[:0] = paths
    try:
        yield
    finally:
        for path in paths:
            sys.path.remove(path)


class TcpHarness(ContractHarness):
    """``tcp://`` on the loopback address, a port for each name."""

    grace = 0.3

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        ports: dict[str, int] = self.__dict__.setdefault("ports", {})
        if node not in ports:
            ports[node] = free_port()
        return TransportConfig(url=f"tcp://127.0.0.1:{ports[node]}", **settings)

    async def send_garbage(self, endpoint: Transport) -> None:
        host, _, port = endpoint.contact.address.removeprefix("tcp://").rpartition(":")
        names = b"\x00\x01\x00\x01" + b"xy"
        for wire in (
            b"\0",
            b"GET / HTTP/1.1\r\n\r\n",
            os.urandom(4096),
            b"dspT\x02\x00" + bytes(4) + names,
            b"dspT\x01\x07" + bytes(4) + names,
            b"dspT\x01\x00" + bytes(4) + b"\xff\xff\xff\xff",
            b"dspT\x01\x00" + bytes(4) + b"\x00\x01\x00\x01\xff\xff",
            *(hello(lane) + b"\xff\xff\xff\xff" for lane in range(len(Lane))),
        ):
            with socket.create_connection((host, int(port)), timeout=self.patience) as stranger:
                stranger.sendall(wire)


def hello(lane: int, name: bytes = b"stranger", address: bytes = b"tcp://127.0.0.1:9") -> bytes:
    """Give a sound hello, with which a stranger gets as far as sending frames."""
    sizes = len(name).to_bytes(2, "big") + len(address).to_bytes(2, "big")
    return b"dspT\x01" + bytes([lane]) + (1024).to_bytes(4, "big") + sizes + name + address
