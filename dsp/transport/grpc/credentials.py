"""The certificates of an endpoint: read, and tried before anybody relies on them.

gRPC takes any bytes for a certificate and fails later, with every peer, and mostly without a
reason. So the files are tried first, with a handshake in memory of this endpoint with itself.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import grpc

from dsp.errors import ConfigError
from dsp.transport.grpc.identity import is_named

if TYPE_CHECKING:
    from dsp.config.grpc import GrpcConfig

__all__ = ["TlsFiles", "Credentials", "load_credentials", "read_credentials"]

_SECTION = "transport.grpc"
_MOST_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the certificates of an endpoint are."""

    certificate: str
    private_key: str
    ca: str

    @classmethod
    def from_config(cls, config: "GrpcConfig") -> Self:
        """Read the names of the files.

        Raises:
            ConfigError: some are missing; all of those are named.
        """
        values = {
            "certificate_file": config.certificate_file,
            "private_key_file": config.private_key_file,
            "ca_file": config.ca_file,
        }
        missing = [f"{_SECTION}.{name}" for name, value in values.items() if not value]
        if missing:
            raise ConfigError(f"grpcs:// needs {', '.join(missing)}")
        return cls(*(value or "" for value in values.values()))


@dataclass(frozen=True, slots=True)
class Credentials:
    """What gRPC needs to listen and to dial."""

    server: grpc.ServerCredentials
    channel: grpc.ChannelCredentials


def load_credentials(files: TlsFiles, name: str) -> Credentials:
    """Read the files and check that they fit together. Blocks: for a worker thread.

    Args:
        files: where they are.
        name: what the certificate must name, since peers will look for it.

    Raises:
        ConfigError: a file cannot be read or is no PEM, the key is not that of the certificate, the
            certificate is expired, not signed by the authorities, or names somebody else.
    """
    loaded = read_credentials(files)
    listening = _context(ssl.PROTOCOL_TLS_SERVER, files)
    dialling = _context(ssl.PROTOCOL_TLS_CLIENT, files)
    names = _names_in(_try(listening, dialling, files))
    if not is_named(name, names):
        raise ConfigError(
            f"{_SECTION}.certificate_file: {files.certificate} names {names} and not {name!r}, "
            f"which peers look for: get another certificate, or see node.id and "
            f"{_SECTION}.identity"
        )
    return loaded


def read_credentials(files: TlsFiles) -> Credentials:
    """Read the files as they are.

    Raises:
        ConfigError: one cannot be read.
    """
    certificate = _read("certificate_file", files.certificate)
    key = _read("private_key_file", files.private_key)
    authorities = _read("ca_file", files.ca)
    return Credentials(
        grpc.ssl_server_credentials([(key, certificate)], authorities, require_client_auth=True),
        grpc.ssl_channel_credentials(authorities, key, certificate),
    )


def _read(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{_SECTION}.{setting}: cannot read {path}: {error}") from error


def _context(protocol: "ssl._SSLMethod", files: TlsFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.check_hostname = False  # the name is checked by name rules that TLS does not know
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(cafile=files.ca)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"{_SECTION}.ca_file: {files.ca} holds no certificates in PEM form: {error}"
        ) from error
    try:
        # Without a password function an encrypted key would ask for one on the terminal.
        context.load_cert_chain(files.certificate, files.private_key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(_pair_fault(files, error)) from error
    return context


def _pair_fault(files: TlsFiles, error: Exception) -> str:
    if "KEY_VALUES_MISMATCH" in str(error):
        return (
            f"{_SECTION}.private_key_file: {files.private_key} is not the key of "
            f"{files.certificate} (certificate_file)"
        )
    return (
        f"{_SECTION}.certificate_file and private_key_file: {files.certificate} and "
        f"{files.private_key} must be a certificate and its key, in PEM form and not encrypted: "
        f"{error}"
    )


def _try(listening: ssl.SSLContext, dialling: ssl.SSLContext, files: TlsFiles) -> dict[str, object]:
    """Let the endpoint meet itself; give its certificate as its peers will see it."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = listening.wrap_bio(to_server, to_client, server_side=True)
    client = dialling.wrap_bio(to_client, to_server)
    waiting = [client, server]
    for _ in range(_MOST_ROUNDS):
        for end in list(waiting):
            try:
                end.do_handshake()
                waiting.remove(end)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                raise ConfigError(
                    f"{_SECTION}.certificate_file: {files.certificate} would be refused by every "
                    f"peer that trusts {files.ca} (ca_file): {error.verify_message}"
                ) from error
            except ssl.SSLError as error:
                raise ConfigError(
                    f"{_SECTION}: {files.certificate} cannot be used for TLS: {error}"
                ) from error
    certificate = client.getpeercert()
    if waiting or certificate is None:
        raise ConfigError(f"{_SECTION}: {files.certificate} cannot be used for TLS")
    return dict(certificate)


def _names_in(certificate: dict[str, object]) -> list[str]:
    """Give the names of a decoded certificate: the common name where there are no others."""
    alternatives = certificate.get("subjectAltName", ())
    assert isinstance(alternatives, tuple)
    subject = certificate.get("subject", ())
    assert isinstance(subject, tuple)
    common = [value for part in subject for kind, value in part if kind == "commonName"]
    return [value for _, value in alternatives] or common
