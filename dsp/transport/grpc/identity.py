"""Who a peer is, by its certificate, and whether we talk to it."""

import re
from collections.abc import Iterable, Mapping

from dsp.core.types import Peer
from dsp.transport.grpc.addresses import parse_address

__all__ = ["NameRules", "is_certifiable", "is_named"]

_NAME = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?")

_ALTERNATIVE_NAMES = "x509_subject_alternative_name"
_COMMON_NAME = "x509_common_name"


class NameRules:
    """What the certificates of peers must name.

    Args:
        scheme: of the addresses of peers.
        identity: ``"node"`` or ``"host"``, as in ``transport.grpc.identity``.
        allowed: as in ``transport.grpc.allowed_names``.
    """

    def __init__(self, scheme: str, identity: str, allowed: Iterable[str]) -> None:
        self._scheme = scheme
        self._identity = identity
        self._allowed = frozenset(allowed)

    def expected(self, peer: Peer) -> str:
        """Give the name that the certificate of a peer must have.

        Raises:
            ValueError: the peer's address is not one of this transport.
        """
        return (
            peer.id if self._identity == "node" else parse_address(peer.address, self._scheme).host
        )

    def may_dial(self, peer: Peer) -> str | None:
        """Say why we do not dial a peer; None if we do. gRPC then checks the certificate."""
        if self._identity == "node" and not is_certifiable(peer.id):
            return f"{peer.id!r} cannot be a name in a certificate (transport.grpc.identity)"
        return self._not_allowed([self.expected(peer)])

    def may_enter(self, peer: Peer, properties: Mapping[str, Iterable[bytes]]) -> str | None:
        """Say why a peer that dialled us is refused; None if it is not.

        Args:
            peer: who it says that it is.
            properties: what gRPC knows about the connection (``auth_context``).
        """
        alternatives = _names(properties, _ALTERNATIVE_NAMES)
        common = _names(properties, _COMMON_NAME)
        try:
            expected = self.expected(peer)
        except ValueError as error:
            return str(error)
        # The common name counts where there is nothing else, as it does for who dials.
        if not is_named(expected, alternatives or common):
            return (
                f"its certificate names {_listed(alternatives or common)} and not {expected!r} "
                f"(transport.grpc.identity = {self._identity!r})"
            )
        return self._not_allowed(alternatives + common)

    def _not_allowed(self, names: list[str]) -> str | None:
        if not self._allowed or not self._allowed.isdisjoint(names):
            return None
        return f"{_listed(names)} is not in transport.grpc.allowed_names"


def _names(properties: Mapping[str, Iterable[bytes]], key: str) -> list[str]:
    return [name.decode(errors="replace") for name in properties.get(key, ())]


def is_certifiable(name: str) -> bool:
    """Tell whether a certificate can name it: gRPC also sends the name to the peer, as a host."""
    return _NAME.fullmatch(name) is not None


def is_named(expected: str, names: Iterable[str]) -> bool:
    """Tell whether a name is among others, of which ``*.domain`` stands for one label more."""
    wanted = expected.lower()
    _, _, domain = wanted.partition(".")
    return any(
        name.lower() == wanted or (domain != "" and name.lower() == f"*.{domain}") for name in names
    )


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in dict.fromkeys(names)) if names else "nobody"
