"""Certificates, users and listeners of the broker that the tests share."""

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization

from dsp.testing.kafka import BrokerOptions, Listener

USER, PASSWORD = "alice", "wonder-land-7"
GUEST = "guest"
MOST_REQUEST_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class Secrets:
    """Files that clients and broker use."""

    folder: Path
    password: Path
    wrong_password: Path
    authority: Path
    other_authority: Path
    certificate: Path
    key: Path

    def settings(self, listener: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
        """Give the ``[transport.kafka]`` table for a listener, as it should be."""
        sasl = {"username": USER, "password_file": str(self.password)}
        tls = {"ca_file": str(self.authority)}
        mutual = {"certificate_file": str(self.certificate), "key_file": str(self.key)}
        table = {
            "PLAINTEXT": {},
            "SASL": {"security_protocol": "SASL_PLAINTEXT", **sasl},
            "SECURE": {"security_protocol": "SASL_SSL", **sasl, **tls},
            "MUTUAL": {"security_protocol": "SSL", **tls, **mutual},
            "EXPIRED": {"security_protocol": "SSL", **tls},
            "ELSEWHERE": {"security_protocol": "SSL", **tls},
        }[listener]
        return {**table, **changes}


def make_secrets(folder: Path) -> Secrets:
    """Write the files of the clients."""
    authority, other = trustme.CA(), trustme.CA()
    client = authority.issue_cert("client@example.org")
    secrets = Secrets(
        folder=folder,
        password=folder / "password",
        wrong_password=folder / "wrong-password",
        authority=folder / "ca.pem",
        other_authority=folder / "other-ca.pem",
        certificate=folder / "client.pem",
        key=folder / "client.key",
    )
    secrets.password.write_text(f"{PASSWORD}\n")
    secrets.wrong_password.write_text("not it\n")
    authority.cert_pem.write_to_path(str(secrets.authority))
    other.cert_pem.write_to_path(str(secrets.other_authority))
    client.cert_chain_pems[0].write_to_path(str(secrets.certificate))
    client.private_key_pem.write_to_path(str(secrets.key))
    long_ago = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    _write_store(folder / "broker.pem", authority.issue_cert("127.0.0.1"))
    _write_store(folder / "elsewhere.pem", authority.issue_cert("kafka.example.org"))
    _write_store(
        folder / "expired.pem",
        authority.issue_cert(
            "127.0.0.1", not_before=long_ago, not_after=long_ago + datetime.timedelta(days=1)
        ),
    )
    return secrets


def _write_store(path: Path, certificate: trustme.LeafCert) -> None:
    """Write a key store as Java takes it: the key must be in the form of PKCS 8."""
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    wire = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(wire + b"".join(pem.bytes() for pem in certificate.cert_chain_pems))


def secured_options(secrets: Secrets) -> BrokerOptions:
    """Give a broker with every kind of listener, good ones and bad ones."""
    store = secrets.folder / "broker.pem"
    mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    return BrokerOptions(
        listeners=[
            Listener("SASL", "SASL_PLAINTEXT", mechanisms),
            Listener("SECURE", "SASL_SSL", ["SCRAM-SHA-512"], key_store=store),
            Listener("MUTUAL", "SSL", key_store=store, trust_store=secrets.authority),
            Listener("EXPIRED", "SSL", key_store=secrets.folder / "expired.pem"),
            Listener("ELSEWHERE", "SSL", key_store=secrets.folder / "elsewhere.pem"),
        ],
        users={USER: PASSWORD, GUEST: PASSWORD},
        super_users=[USER],
        settings={
            "socket.request.max.bytes": str(MOST_REQUEST_BYTES),
            # Whoever has shown a certificate may do everything.
            "listener.name.mutual.ssl.principal.mapping.rules": f"RULE:^.*$/{USER}/",
        },
    )
