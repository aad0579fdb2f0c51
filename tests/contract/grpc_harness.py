"""``grpc://`` and ``grpcs://`` as the contract suite uses them, with certificates made here."""

import asyncio
import datetime
import functools
import itertools
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from dsp._pb.grpc_stream_pb2 import StreamHello
from dsp.config import TransportConfig
from dsp.testing.contract import ContractHarness
from dsp.transport.base import Transport
from dsp.transport.grpc.wire import METHOD, SERVICE
from tests.contract.ports import free_port

HOUR = datetime.timedelta(hours=1)
_NUMBERS = itertools.count()


class Authority:
    """Signs certificates, and keeps them as files."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._sign(self._name, self._key.public_key(), [], ca=True))

    def issue(
        self, name: str, names: Sequence[x509.GeneralName] = (), *, expired: bool = False
    ) -> dict[str, str]:
        """Make a certificate for a name; give the settings that use it."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        certificate = self._sign(
            subject, key.public_key(), names or [x509.DNSName(name)], expired=expired
        )
        return self._settings(f"{name}.{next(_NUMBERS)}", certificate, key)

    def itself(self) -> dict[str, str]:
        """Give the settings that use the authority's own certificate, which signs itself."""
        return self._settings("itself", self.file.read_bytes(), self._key)

    def _settings(
        self, stem: str, certificate: bytes, key: ec.EllipticCurvePrivateKey
    ) -> dict[str, str]:
        certificate_file, key_file = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        certificate_file.write_bytes(certificate)
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return {
            "certificate_file": str(certificate_file),
            "private_key_file": str(key_file),
            "ca_file": str(self.file),
        }

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        names: Sequence[x509.GeneralName],
        *,
        ca: bool = False,
        expired: bool = False,
    ) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 48 * HOUR)
            .not_valid_after(now - HOUR if expired else now + 48 * HOUR)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)


@functools.cache
def common_authority() -> Authority:
    """The authority of all endpoints that trust each other."""
    return Authority(Path(tempfile.mkdtemp(prefix="dsp-certificates-")))


@functools.cache
def certificate_of(node: str) -> dict[str, str]:
    """The certificate of a node, as settings."""
    return common_authority().issue(node)


def host_and_port(endpoint: Transport) -> tuple[str, int]:
    """Where an endpoint listens."""
    host, _, port = endpoint.contact.address.partition("://")[2].rpartition(":")
    return host, int(port)


def hello(lane: int = 2, **fields: Any) -> bytes:  # noqa: ANN401
    """Give a sound hello of a stranger, with some fields changed."""
    values: dict[str, Any] = {
        "version": 1,
        "node": "stranger",
        "address": "grpc://127.0.0.1:9",
        "max_frame_bytes": 1024,
        "sequence_id": 1,
    }
    return StreamHello(lane=lane, **(values | fields)).SerializeToString()  # type: ignore[arg-type]


GARBAGE = (
    [b"\xff" * 100],
    [b""],
    [hello(version=99)],
    [hello(lane=0)],
    [hello(node="")],
    [hello(node="x" * 2000)],
    [hello(), b"\0"],
    [hello(), b"\xff\xff\xff\xff"],
    [hello(), b"\0\0\0\x09abc"],
)
"""Messages that strangers send."""


class GrpcHarness(ContractHarness):
    """``grpc://`` on the loopback address, a port for each name."""

    scheme = "grpc"
    grace = 0.3

    def config(self, node: str, **settings: Any) -> TransportConfig:  # noqa: ANN401
        ports: dict[str, int] = self.__dict__.setdefault("ports", {})
        if node not in ports:
            ports[node] = free_port()
        url = f"{self.scheme}://127.0.0.1:{ports[node]}"
        # An endpoint that closes waits this long for a peer of its check that is closed already.
        settings = {"drain_timeout": 2.0} | self.section(node) | settings
        return TransportConfig(url=url, **settings)

    def section(self, node: str) -> dict[str, Any]:
        """The settings of a node that only this transport has."""
        return {}

    def channel(self, endpoint: Transport) -> grpc.aio.Channel:
        """A channel of a stranger to an endpoint."""
        host, port = host_and_port(endpoint)
        return grpc.aio.insecure_channel(f"{host}:{port}")

    async def send_garbage(self, endpoint: Transport) -> None:
        for wire in (b"\0", b"GET / HTTP/1.1\r\n\r\n", os.urandom(4096)):
            with socket.create_connection(host_and_port(endpoint), timeout=self.patience) as end:
                end.sendall(wire)
        async with self.channel(endpoint) as channel:
            for messages in GARBAGE:
                await self.talk(channel, messages)

    async def talk(self, channel: grpc.aio.Channel, messages: list[bytes]) -> list[bytes]:
        """Open a stream, write messages, and give the answers up to its end."""
        method: grpc.aio.StreamStreamMultiCallable[bytes, bytes]
        method = channel.stream_stream(f"/{SERVICE}/{METHOD}")
        call = method()
        answers: list[bytes] = []
        async with asyncio.timeout(self.patience):
            for message in messages:
                await call.write(message)
            await call.done_writing()
            while isinstance(answer := await call.read(), bytes):
                answers.append(answer)
        return answers


class GrpcsHarness(GrpcHarness):
    """The same over mutual TLS."""

    scheme = "grpcs"

    def section(self, node: str) -> dict[str, Any]:
        return {"grpc": certificate_of(node)}

    def channel(self, endpoint: Transport) -> grpc.aio.Channel:
        host, port = host_and_port(endpoint)
        files = certificate_of("stranger")
        credentials = grpc.ssl_channel_credentials(
            Path(files["ca_file"]).read_bytes(),
            Path(files["private_key_file"]).read_bytes(),
            Path(files["certificate_file"]).read_bytes(),
        )
        options = [("grpc.ssl_target_name_override", endpoint.contact.id)]
        return grpc.aio.secure_channel(f"{host}:{port}", credentials, options)
