"""What aiokafka raises, in the words and the exceptions of dsp. The one place that maps them."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from aiokafka import errors

from dsp.errors import ConnectError

if TYPE_CHECKING:
    from dsp.config.kafka import KafkaConfig

__all__ = ["FAILURES", "connect_error", "describe", "is_poison", "is_too_large", "map_errors"]

FAILURES = (errors.KafkaError, OSError, asyncio.TimeoutError, NotImplementedError)
"""What aiokafka raises when brokers do not do what is asked of them.

Its ``NotImplementedError`` is a broker so new that it does not take an old form of a request.
"""

_TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)

# The broker refuses this very record, today and tomorrow: only the sender can do something.
_POISON = (
    *_TOO_LARGE,
    errors.TopicAuthorizationFailedError,
    errors.ClusterAuthorizationFailedError,
    errors.InvalidTopicError,
    errors.InvalidTimestampError,
)

# A connection that was open and was ended by the other side.
_ENDED = (errors.KafkaConnectionError, ConnectionResetError, BrokenPipeError, EOFError)


def is_poison(error: BaseException) -> bool:
    """Tell whether sending the same record again cannot help."""
    return isinstance(error, _POISON)


def is_too_large(error: BaseException) -> bool:
    """Tell whether the brokers find a batch too large."""
    return isinstance(error, _TOO_LARGE)


def describe(error: BaseException) -> str:
    """Say what went wrong, with its causes: the first of them is often the telling one."""
    words: list[str] = []
    seen: BaseException | None = error
    while seen is not None:
        text = str(seen).strip()
        word = f"{type(seen).__name__}: {text}" if text else type(seen).__name__
        if word not in words:
            words.append(word)
        seen = seen.__cause__
    return "; ".join(words)


def connect_error(url: str, error: BaseException, config: "KafkaConfig") -> ConnectError:
    """Make the error that a caller of ``start`` gets, with the setting to look at."""
    hint = _hint(error, config)
    raised = ConnectError(f"{url}: {describe(error)}" + (f". {hint}" if hint else ""))
    raised.__cause__ = error
    return raised


@contextmanager
def map_errors(url: str, config: "KafkaConfig") -> Iterator[None]:
    """Turn what aiokafka raises inside into ``ConnectError``."""
    try:
        yield
    except FAILURES as error:
        raise connect_error(url, error, config) from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _hint(error: BaseException, config: "KafkaConfig") -> str:
    for cause in _causes(error):
        if hint := _hint_for(cause, config):
            return hint
    if not isinstance(error, _ENDED):
        return ""
    if not config.security_protocol.endswith("SSL"):
        return (
            "The broker ended the connection instead of answering: if this port speaks TLS, set "
            "transport.kafka.security_protocol to SSL or SASL_SSL"
        )
    return (
        "The broker ended the connection instead of answering: if this port does not speak TLS or "
        "asks for a password, change transport.kafka.security_protocol; if it asks for a "
        "certificate, set transport.kafka.certificate_file"
    )


def _hint_for(error: BaseException, config: "KafkaConfig") -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return (
                "The broker's certificate is not trusted: check transport.kafka.ca_file, the "
                "certificate's dates, and that it names the host in transport.url"
            )
        case ssl.SSLError() if "CERTIFICATE_REQUIRED" in str(error) or "ALERT" in str(error):
            return (
                "The broker refuses our certificate, or asks for one: check "
                "transport.kafka.certificate_file and transport.kafka.key_file"
            )
        case ssl.SSLError():
            return (
                "The port does not speak TLS as we do: check the port in transport.url and "
                "transport.kafka.security_protocol"
            )
        case errors.SaslAuthenticationFailed() | errors.AuthenticationFailedError():
            return (
                "Check transport.kafka.username, transport.kafka.password_file and "
                "transport.kafka.sasl_mechanism"
            )
        case errors.UnsupportedSaslMechanismError():
            return "Check transport.kafka.sasl_mechanism"
        case errors.IllegalSaslStateError():
            return (
                "The port asks for a password: set transport.kafka.security_protocol to "
                "SASL_PLAINTEXT or SASL_SSL"
            )
        case (
            errors.TopicAuthorizationFailedError()
            | errors.GroupAuthorizationFailedError()
            | errors.ClusterAuthorizationFailedError()
        ):
            return (
                f"The user {config.username or 'of this endpoint'!r} lacks a right: grant READ, "
                "WRITE, CREATE and DESCRIBE on topics and READ on groups that begin with the "
                "prefix of transport.url, or change transport.kafka.username"
            )
        case (
            errors.IncompatibleBrokerVersion()
            | errors.UnsupportedVersionError()
            | errors.UnrecognizedBrokerVersion()
        ):
            return "The broker is too old: dsp needs Apache Kafka 3.3 or newer (transport.url)"
        case errors.NotControllerError():
            return (
                "The broker hands nothing on to its controller, as those before KRaft: dsp needs "
                "Apache Kafka 3.3 or newer in KRaft mode (transport.url)"
            )
        case NotImplementedError():
            return "This broker needs a newer aiokafka: pip install --upgrade aiokafka"
        case _:
            return ""
