"""What a source and a sink on Kafka share: the topic, its brokers, and how values become bytes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from dsp.config.kafka import KafkaConfig
from dsp.errors import ConfigError, ConnectError, MissingExtraError
from dsp.stream.plain_json import dump_json

if TYPE_CHECKING:
    from google.protobuf.message import Message

__all__ = ["Form", "make_form", "KafkaTopic"]

CONNECT_TIMEOUT = 10.0
RETRY_MS = 100


class Form(NamedTuple):
    """How one value becomes the bytes of one record, and back. Both raise what they like."""

    dump: Callable[[Any], bytes]
    load: Callable[[bytes], Any]


_FORMS = {
    "json": Form(lambda value: dump_json(value, 0), orjson.loads),
    "text": Form(lambda value: str(value).encode(), lambda data: data.decode()),
    "bytes": Form(lambda value: memoryview(value).tobytes(), lambda data: data),
}


def make_form(choice: "str | type[Message]") -> Form:
    """Give the form that a user asks for.

    Raises:
        ConfigError: there is no such form.
    """
    if isinstance(choice, str):
        if choice not in _FORMS:
            raise ConfigError(
                f"values={choice!r}: there are {', '.join(_FORMS)}, or a protobuf message class"
            )
        return _FORMS[choice]
    if not hasattr(choice, "DESCRIPTOR"):
        raise ConfigError(f"values={choice!r} is no protobuf message class")
    return Form(lambda value: value.SerializeToString(), choice.FromString)


class KafkaTopic:
    """A topic on brokers.

    Args:
        url: ``kafka://host:port,host:port/topic``.
        settings: security and patience, as in the table ``[transport.kafka]``.

    Raises:
        ConfigError: no such URL, or settings that do not fit together.
        MissingExtraError: aiokafka is not installed.
    """

    def __init__(self, url: str, settings: KafkaConfig | None) -> None:
        try:
            from dsp.transport.kafka.names import parse_url
            from dsp.transport.kafka.security import check
        except ImportError as error:
            raise MissingExtraError("kafka", "a Kafka topic as source or sink") from error
        try:
            address = parse_url(url)
        except ValueError as error:
            raise ConfigError(f"{error}; a topic is kafka://host:port/topic") from None
        if not url.partition("://")[2].partition("/")[2].strip("/"):
            raise ConfigError(f"{url!r} names no topic: write kafka://host:port/topic")
        self.url = url
        self.name = address.prefix
        self.settings = settings or KafkaConfig()
        self.hosts = address.hosts
        check(self.settings)

    def options(self) -> dict[str, Any]:
        """Give what every client is told; reads the files of secrets.

        Raises:
            ConnectError: one of them cannot be used.
        """
        from dsp.transport.kafka.security import client_options

        return {
            "bootstrap_servers": [*self.hosts],
            "request_timeout_ms": int(self.settings.request_timeout * 1000),
            "retry_backoff_ms": RETRY_MS,
            **client_options(self.settings),
        }

    async def partitions(self) -> list[int]:
        """Give the partitions of the topic. Creates none by asking.

        Raises:
            ConnectError: no broker answers, or the topic is not there; says what to do.
        """
        from dsp.transport.kafka.broker import Broker
        from dsp.transport.kafka.errors import map_errors
        from dsp.transport.kafka.security import client_options

        broker = Broker(
            self.hosts,
            client_options(self.settings),
            client=f"dsp {self.name}",
            connect_timeout=CONNECT_TIMEOUT,
            request_timeout=self.settings.request_timeout,
        )
        with map_errors(self.url, self.settings):
            try:
                await broker.connect()
                found = (await broker.topics([self.name])).get(self.name, {})
            finally:
                broker.close()
        numbers = sorted(each["partition"] for each in found.get("partitions", ()))
        if not numbers:
            raise ConnectError(
                f"{self.url}: there is no topic {self.name!r} on these brokers, or this user may "
                "not see it; create it, or check the URL"
            )
        return numbers
