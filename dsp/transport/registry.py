"""Which class serves which URL scheme.

dsp's own transports are listed here; other packages add theirs through the entry-point group
``dsp.transports`` (name = scheme, value = ``module:Class``). An application names a URL and never
a class.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dsp.errors import ConfigError, MissingExtraError
from dsp.transport.base import NodeId, Transport

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["Registration", "known_schemes", "transport_class", "create_transport"]

ENTRY_POINT_GROUP = "dsp.transports"


@dataclass(frozen=True, slots=True)
class Registration:
    """Where the class for a scheme lives.

    Attributes:
        target: ``module:Class``, imported when first used.
        extra: the extra of dsp that installs what it needs; None if nothing or not dsp's.
        needs: the package whose absence means that the extra is missing.
    """

    target: str
    extra: str | None = None
    needs: str | None = None


_BUILT_IN: Mapping[str, Registration] = {
    "sim": Registration("dsp.transport.sim.endpoint:SimTransport"),
    "zmq": Registration("dsp.transport.zmq.endpoint:ZmqTransport", extra="zmq", needs="zmq"),
    "zmq+tcp": Registration("dsp.transport.zmq.endpoint:ZmqTransport", extra="zmq", needs="zmq"),
    "zmq+ipc": Registration("dsp.transport.zmq.endpoint:ZmqTransport", extra="zmq", needs="zmq"),
    "grpc": Registration("dsp.transport.grpc.endpoint:GrpcTransport", extra="grpc", needs="grpc"),
    "grpcs": Registration("dsp.transport.grpc.endpoint:GrpcsTransport", extra="grpc", needs="grpc"),
    "kafka": Registration(
        "dsp.transport.kafka.endpoint:KafkaTransport", extra="kafka", needs="aiokafka"
    ),
}


def known_schemes() -> Mapping[str, Registration]:
    """List every scheme that a URL may use, dsp's own first.

    Raises:
        ConfigError: two packages claim one scheme.
    """
    # It takes as long to import as all else here, and who looks up no scheme needs none of it.
    from importlib.metadata import entry_points

    found = dict(_BUILT_IN)
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        if point.name in found:
            if found[point.name].target == point.value:
                continue
            raise ConfigError(
                f"transport scheme {point.name!r} is claimed by {found[point.name].target} and by "
                f"{point.value} (entry point group {ENTRY_POINT_GROUP!r}): remove one of them"
            )
        found[point.name] = Registration(point.value)
    return found


def scheme_of(url: str) -> str:
    """Give the scheme of a transport URL.

    Raises:
        ConfigError: there is none.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or not scheme:
        raise ConfigError(
            f"transport.url: {url!r} has no scheme; write one of {_examples(known_schemes())}"
        )
    return scheme.lower()


def transport_class(url: str) -> type[Transport]:
    """Give the class that serves a URL.

    Raises:
        ConfigError: the scheme is unknown; the message lists the known ones.
        MissingExtraError: the scheme is dsp's own and its extra is not installed.
    """
    scheme = scheme_of(url)
    if (taken := _taken.get(scheme)) is not None:
        return taken
    known = known_schemes()
    registration = known.get(scheme)
    if registration is None:
        raise ConfigError(
            f"transport.url: unknown scheme {scheme!r} in {url!r}; known are {_examples(known)}. "
            f"Other packages add schemes through the entry-point group {ENTRY_POINT_GROUP!r}"
        )
    return _load(scheme, registration)


_taken: dict[str, type[Transport]] = {}


def take_known(url: str) -> None:
    """Load the class that serves a URL which whoever started this process has looked up.

    That nobody else claims a scheme of dsp's own was seen there. Looking through all packages that
    are installed takes as long as a good part of the start of a process.

    Raises:
        ConfigError: as ``transport_class`` does.
        MissingExtraError: as ``transport_class`` does.
    """
    scheme = scheme_of(url)
    own = _BUILT_IN.get(scheme)
    _taken[scheme] = transport_class(url) if own is None else _load(scheme, own)


def _load(scheme: str, registration: Registration) -> type[Transport]:
    module_name, _, class_name = registration.target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if registration.extra is None or error.name != registration.needs:
            raise
        raise MissingExtraError(registration.extra, f"transport {scheme}://") from error
    cls = getattr(module, class_name, None)
    if not (isinstance(cls, type) and issubclass(cls, Transport)):
        raise ConfigError(
            f"transport scheme {scheme!r}: {registration.target} is not a dsp Transport class"
        )
    return cls


def create_transport(config: "TransportConfig", node: NodeId) -> Transport:
    """Make the endpoint that a configuration describes. It is not started.

    Raises:
        ConfigError: unknown scheme, or settings that the transport refuses.
        MissingExtraError: the transport's extra is not installed.
    """
    return transport_class(config.url).from_config(config, node)


def _examples(known: Mapping[str, Registration]) -> str:
    return ", ".join(
        f"{scheme}://" + (f" (extra '{entry.extra}')" if entry.extra else "")
        for scheme, entry in known.items()
    )
