"""How the contract suite makes endpoints of the ZeroMQ mesh."""

import os
import socket
import tempfile
from pathlib import Path
from typing import Any
from zlib import crc32

from dsp.config import TransportConfig, ZmqConfig
from dsp.testing.contract import ContractHarness
from dsp.transport.base import Transport
from dsp.transport.zmq.address import Address
from dsp.transport.zmq.keys import write_key_pair
from tests.contract.ports import free_port

KEYS = 5
GARBAGE = (
    b"\0",
    b"GET / HTTP/1.1\r\n\r\n",
    os.urandom(4096),
    # A sound greeting of ZeroMQ's, then nothing of dsp's.
    b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)
    + b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"
    + b"\x00\x05hello",
)  # fmt: skip


class ZmqHarness(ContractHarness):
    """``zmq+tcp://`` on the loopback address, two ports for each name."""

    grace = 0.3

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        ports: dict[str, tuple[int, int]] = self.__dict__.setdefault("ports", {})
        if node not in ports:
            ports[node] = (free_port(), free_port())
        control, data = ports[node]
        return TransportConfig(url=f"zmq+tcp://127.0.0.1:{control}?data={data}", **settings)

    async def send_garbage(self, endpoint: Transport) -> None:
        for port in Address.parse(endpoint.contact.address).ports:
            for wire in GARBAGE:
                with socket.create_connection(("127.0.0.1", port), self.patience) as stranger:
                    stranger.sendall(wire)


class ZmqIpcHarness(ZmqHarness):
    """``zmq+ipc://`` in a folder of its own."""

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        # Kept until the suite ends: an endpoint that was killed leaves its sockets behind.
        folder: str = self.__dict__.setdefault("folder", tempfile.mkdtemp(prefix="dsp-"))
        return TransportConfig(url=f"zmq+ipc://{folder}/{node}", **settings)

    async def send_garbage(self, endpoint: Transport) -> None:
        base = Address.parse(endpoint.contact.address).host
        for suffix in (".control", ".data"):
            for wire in GARBAGE:
                with socket.socket(socket.AF_UNIX) as stranger:
                    stranger.connect(base + suffix)
                    stranger.sendall(wire)


class CurveHarness(ZmqHarness):
    """``zmq+tcp://`` with CURVE on: some key pairs for all names, all of them on the list."""

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        folder = Path(self.__dict__.setdefault("keys", tempfile.mkdtemp(prefix="dsp-")))
        if not any(folder.iterdir()):
            for number in range(KEYS):
                write_key_pair(folder / f"key-{number}")
        settings["zmq"] = ZmqConfig(
            curve_secret_key_file=str(folder / f"key-{crc32(node.encode()) % KEYS}"),
            allowed_keys_directory=str(folder),
        )
        return super().config(node, **settings)
