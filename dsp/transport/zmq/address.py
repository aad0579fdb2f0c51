"""Addresses of the mesh: one names both lanes of an endpoint, and its public key if it has one.

``zmq+tcp://HOST:PORT?data=PORT&curve=KEY``
    CONTROL is at the first port, DATA at the second. Without ``data`` it is the next port.
``zmq+ipc:///PATH?curve=KEY``
    CONTROL is at ``PATH.control``, DATA at ``PATH.data``.

``curve`` is the endpoint's public key in hexadecimal; it is there if and only if CURVE is on.
"""

import ipaddress
import os
import re
from dataclasses import dataclass, replace
from typing import Final, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from dsp.core.types import Lane

__all__ = ["Address", "ANY_PORT", "MAX_IPC_PATH"]

ANY_PORT: Final = 0
MAX_PORT: Final = 65535
# What a socket's address can hold on Linux, less the zero byte at its end.
MAX_IPC_PATH: Final = 107

_SUFFIXES: Final = {Lane.CONTROL: ".control", Lane.DATA: ".data"}
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_HOST: Final = re.compile(r"[A-Za-z0-9._-]{1,253}")
_TCP_SHAPE: Final = "write zmq+tcp://HOST:PORT or zmq+tcp://HOST:PORT?data=PORT"
_IPC_SHAPE: Final = "write zmq+ipc:///ABSOLUTE/PATH"


@dataclass(frozen=True, slots=True)
class Address:
    """Where an endpoint is.

    Attributes:
        kind: which kind of sockets.
        host: name or number of the host, without brackets; for ipc the path without suffix.
        ports: the ports of the lanes; nothing for ipc.
        key: public key in hexadecimal, if the endpoint has one.
    """

    kind: Literal["tcp", "ipc"]
    host: str
    ports: tuple[int, int] = (ANY_PORT, ANY_PORT)
    key: str | None = None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read an address.

        Raises:
            ValueError: it is none; the message says what one looks like.
        """
        parts = urlsplit(url)
        match parts.scheme:
            case "zmq" | "zmq+tcp":
                shape, known = _TCP_SHAPE, {"data", "curve"}
            case "zmq+ipc":
                shape, known = _IPC_SHAPE, {"curve"}
            case _:
                raise ValueError(f"{url!r} is not an address of the ZeroMQ mesh; {_TCP_SHAPE}")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if unknown := sorted(query.keys() - known):
            raise ValueError(f"{url!r} has the unknown parameter {unknown[0]!r}; {shape}")
        key = query.get("curve")
        if key is not None and not _KEY.fullmatch(key):
            raise ValueError(f"{url!r}: 'curve' is a public key of 64 hexadecimal digits")
        if parts.fragment or (parts.scheme == "zmq+ipc") == bool(parts.netloc):
            raise ValueError(f"{url!r} is malformed; {shape}")
        if parts.scheme == "zmq+ipc":
            return cls("ipc", _path(url, parts.path), key=key)
        if parts.path not in ("", "/"):
            raise ValueError(f"{url!r} has a path; {shape}")
        host, colon, port = parts.netloc.rpartition(":")
        if not colon:
            raise ValueError(f"{url!r} has no port; {shape}")
        control = _port(url, port)
        return cls("tcp", _host(url, host), (control, _data_port(url, control, query)), key)

    @property
    def is_numeric(self) -> bool:
        """Whether the host need not be looked up."""
        return self.kind == "ipc" or _is_number(self.host)

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for all addresses of the machine, which nobody can connect to."""
        return self.kind == "tcp" and (
            self.host == "*" or (_is_number(self.host) and _number(self.host).is_unspecified)
        )

    @property
    def is_ipv6(self) -> bool:
        """Whether the host is a number of IPv6."""
        return self.kind == "tcp" and ":" in self.host

    def check_reachable(self) -> None:
        """Check that one can connect to it.

        Raises:
            ValueError: it is a wildcard, or has port 0.
        """
        if self.is_wildcard:
            raise ValueError(f"{self} is a wildcard, not the address of a host")
        if self.kind == "tcp" and ANY_PORT in self.ports:
            raise ValueError(f"{self} has port 0, which is for listening only")

    def with_host(self, host: str) -> Self:
        """Give the same address on another host."""
        return replace(self, host=host)

    def path(self, lane: Lane) -> str:
        """The path of a lane's socket; ipc only."""
        return self.host + _SUFFIXES[lane]

    def endpoint(self, lane: Lane) -> str:
        """The address of a lane as libzmq writes it; port 0 becomes its wildcard."""
        if self.kind == "ipc":
            return f"ipc://{self.path(lane)}"
        port = self.ports[lane is Lane.DATA]
        return f"tcp://{_bracketed(self.host)}:{'*' if port == ANY_PORT else port}"

    def __str__(self) -> str:
        curve = f"curve={self.key}" if self.key else ""
        if self.kind == "ipc":
            return f"zmq+ipc://{self.host}" + (f"?{curve}" if curve else "")
        text = f"zmq+tcp://{_bracketed(self.host)}:{self.ports[0]}?data={self.ports[1]}"
        return text + (f"&{curve}" if curve else "")


def _path(url: str, path: str) -> str:
    longest = max(len(suffix) for suffix in _SUFFIXES.values())
    if len(os.fsencode(path)) + longest > MAX_IPC_PATH:
        raise ValueError(
            f"{url!r}: the path has {len(os.fsencode(path))} bytes, at most "
            f"{MAX_IPC_PATH - longest} fit into the address of a socket; use a shorter directory"
        )
    if path.endswith("/"):
        raise ValueError(f"{url!r} names a directory; {_IPC_SHAPE}")
    return path


def _host(url: str, host: str) -> str:
    if host.startswith("[") and host.endswith("]") and _is_number(host[1:-1]):
        return host[1:-1]
    if host == "*" or _HOST.fullmatch(host):
        return host
    raise ValueError(f"{url!r} has a malformed host; {_TCP_SHAPE}")


def _port(url: str, text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= MAX_PORT:
        return int(text)
    raise ValueError(f"{url!r}: a port is a number from 0 to {MAX_PORT}")


def _data_port(url: str, control: int, query: dict[str, str]) -> int:
    if "data" in query:
        data = _port(url, query["data"])
        if data == control != ANY_PORT:
            raise ValueError(f"{url!r}: CONTROL and DATA need a port each")
        return data
    if control == MAX_PORT:
        raise ValueError(f"{url!r}: there is no next port for DATA; name one, as in ?data=5556")
    return ANY_PORT if control == ANY_PORT else control + 1


def _is_number(host: str) -> bool:
    try:
        _number(host)
    except ValueError:
        return False
    return True


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(host)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
