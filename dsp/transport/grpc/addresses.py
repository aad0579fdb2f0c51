"""Addresses of gRPC endpoints: ``grpc://host:port`` and ``grpcs://host:port``."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["Address", "parse_address", "parse_advertised"]

_WILDCARDS = ("0.0.0.0", "::")
_MAX_PORT = 65535


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port.

    Attributes:
        host: a name or an address, IPv6 without brackets.
        port: 0 only for an endpoint that is not open yet.
    """

    host: str
    port: int

    @property
    def is_wildcard(self) -> bool:
        """Whether it means every address of a machine, and so none that peers could use."""
        return self.host in _WILDCARDS

    @property
    def text(self) -> str:
        """As in a URL, after the scheme."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def target(self) -> str:
        """As gRPC wants to be told where to dial; numbers are not looked up."""
        try:
            version = ipaddress.ip_address(self.host).version
        except ValueError:
            return f"dns:///{self.text}"
        return f"ipv{version}:{self.text}"


def parse_address(url: str, scheme: str, lowest_port: int = 1) -> Address:
    """Split ``scheme://host:port``.

    Raises:
        ValueError: it is not such a URL.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port
    if parts.scheme != scheme or not host or port is None or port < lowest_port:
        raise ValueError(f"{url!r} is not {scheme}://host:port")
    if parts.path or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{url!r}: give the host and the port, and no more")
    return Address(host, port)


def parse_advertised(text: str, port: int) -> Address:
    """Read ``host`` or ``host:port``; without a port it is the one given.

    Raises:
        ValueError: it is neither, or a wildcard.
    """
    parts = urlsplit(f"//{text}")
    host = parts.hostname
    if not host or parts.path or parts.query or parts.fragment or parts.username is not None:
        raise ValueError(f"{text!r} is not host or host:port")
    address = Address(host, port if parts.port is None else parts.port)
    if address.is_wildcard or parts.port == 0:
        raise ValueError(f"{text!r} is nothing that a peer could dial")
    return address
