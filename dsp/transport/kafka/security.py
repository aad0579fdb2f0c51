"""From settings to what aiokafka's clients take: TLS, users, time-outs. Secrets stay in files."""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsp.errors import ConfigError, ConnectError

if TYPE_CHECKING:
    from dsp.config.kafka import KafkaConfig

__all__ = ["check", "client_options"]

_MOST_SECRET_BYTES = 4096


def check(config: "KafkaConfig") -> None:
    """Check what belongs together, without touching a file.

    Raises:
        ConfigError: something is missing or has no effect; one line for each.
    """
    faults: list[str] = []
    protocol = config.security_protocol
    if protocol.startswith("SASL"):
        faults += [
            f"transport.kafka.{name}: security_protocol {protocol} needs it"
            for name in ("username", "password_file")
            if getattr(config, name) is None
        ]
    if not protocol.endswith("SSL"):
        faults += [
            f"transport.kafka.{name}: has no effect with security_protocol {protocol}; use SSL or "
            f"SASL_SSL"
            for name in ("ca_file", "certificate_file", "key_file")
            if getattr(config, name) is not None
        ]
    elif config.key_file is not None and config.certificate_file is None:
        faults.append("transport.kafka.certificate_file: key_file needs it")
    if faults:
        raise ConfigError("\n".join(faults))


def client_options(config: "KafkaConfig") -> dict[str, Any]:
    """Read the files, and give what every client of aiokafka takes about security.

    Raises:
        ConnectError: a file cannot be read or used; the message names its setting, not what is in
            it.
    """
    options: dict[str, Any] = {"security_protocol": config.security_protocol}
    if config.security_protocol.startswith("SASL"):
        assert config.password_file is not None
        options["sasl_mechanism"] = config.sasl_mechanism
        options["sasl_plain_username"] = config.username
        options["sasl_plain_password"] = _secret(config.password_file)
    if config.security_protocol.endswith("SSL"):
        options["ssl_context"] = _context(config)
    return options


def _secret(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_SECRET_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConnectError(f"transport.kafka.password_file: {path}: {reason}") from None
    secret = text.partition("\n")[0].rstrip("\r")
    if not secret:
        raise ConnectError(f"transport.kafka.password_file: {path}: its first line is empty")
    return secret


def _context(config: "KafkaConfig") -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=config.ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise ConnectError(f"transport.kafka.ca_file: {config.ca_file}: {error}") from error
    if config.certificate_file is not None:
        try:
            context.load_cert_chain(config.certificate_file, config.key_file)
        except OSError as error:
            raise ConnectError(
                f"transport.kafka.certificate_file and key_file: {config.certificate_file}, "
                f"{config.key_file}: {error}"
            ) from error
    return context
