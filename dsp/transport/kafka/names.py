"""Addresses and names: ``kafka://`` URLs, and the topics and groups that follow from them.

An inbox is one topic per endpoint and lane, ``PREFIX.NODE.control`` and ``PREFIX.NODE.data``. The
node's part has no dot, so names of different prefixes, nodes and lanes cannot meet.
"""

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from dsp.core.types import Lane, NodeId

__all__ = ["DEFAULT_PREFIX", "Address", "parse_url", "topic_of", "group_of"]

DEFAULT_PREFIX = "dsp"

_DEFAULT_PORT = 9092
_MOST_TOPIC_CHARS = 249
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an endpoint is reached: brokers and prefix; the inbox follows from its id.

    Attributes:
        hosts: ``host:port`` of brokers.
        prefix: what its topics begin with.
        cluster: the id that the brokers gave to their cluster, where known.
        max_frame_bytes: the largest frame that the endpoint takes, where known.
    """

    hosts: tuple[str, ...]
    prefix: str
    cluster: str | None = None
    max_frame_bytes: int | None = None

    def __str__(self) -> str:
        query = [f"cluster={self.cluster}"] if self.cluster else []
        if self.max_frame_bytes is not None:
            query.append(f"max_frame_bytes={self.max_frame_bytes}")
        url = f"kafka://{','.join(self.hosts)}/{self.prefix}"
        return f"{url}?{'&'.join(query)}" if query else url

    def same_brokers(self, other: "Address") -> bool:
        """Tell whether both are on one cluster, as far as addresses tell."""
        if self.cluster and other.cluster:
            return self.cluster == other.cluster
        return bool({*self.hosts} & {*other.hosts})


def parse_url(url: str) -> Address:
    """Read ``kafka://host:port,host:port/prefix``, with what a contact adds to it.

    Raises:
        ValueError: it is not such a URL.
    """
    parts = urlsplit(url)
    if parts.scheme != "kafka" or not parts.netloc:
        raise ValueError(f"{url!r} is not kafka://host:port,host:port/prefix")
    prefix = parts.path.strip("/") or DEFAULT_PREFIX
    if not _PREFIX.fullmatch(prefix):
        raise ValueError(
            f"{url!r}: the prefix after the brokers takes letters, digits, '.', '_' and '-', and "
            f"begins with a letter or a digit"
        )
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    cluster, most = query.pop("cluster", None), query.pop("max_frame_bytes", None)
    if query or (most is not None and not (most.isascii() and most.isdigit())):
        raise ValueError(f"{url!r}: nothing belongs after the prefix")
    hosts = tuple(_with_port(host) for host in parts.netloc.split(","))
    return Address(hosts, prefix, cluster, None if most is None else int(most))


def _with_port(host: str) -> str:
    has_port = ":" in host.rpartition("]")[2]
    return host if has_port else f"{host}:{_DEFAULT_PORT}"


def topic_of(prefix: str, node: NodeId, lane: Lane) -> str:
    """Name the inbox of an endpoint.

    Raises:
        ValueError: the name would be longer than Kafka takes.
    """
    topic = f"{prefix}.{_escaped(node)}.{lane.value}"
    if len(topic) > _MOST_TOPIC_CHARS:
        raise ValueError(
            f"the topic for node {node!r} would have {len(topic)} characters, Kafka takes "
            f"{_MOST_TOPIC_CHARS}: shorten node.id or the prefix in transport.url"
        )
    return topic


def group_of(prefix: str, node: NodeId) -> str:
    """Name the group under which an endpoint keeps its offsets."""
    return f"{prefix}.{_escaped(node)}"


def _escaped(node: NodeId) -> str:
    # The dot and the underscore are escaped too: Kafka takes them for one in names of metrics, and
    # refuses a topic that would meet another one there.
    if not node:
        raise ValueError("a node without a name has no inbox")
    return "".join(chr(byte) if byte in _KEPT else f"_{byte:02x}" for byte in node.encode())
