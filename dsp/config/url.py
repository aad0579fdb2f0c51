"""The shape of a transport URL. Which schemes exist is the registry's knowledge, not ours."""

import re
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from pydantic_core import PydanticCustomError

__all__ = ["MAX_URL_CHARS", "check_url"]

MAX_URL_CHARS: Final = 2048

_EXAMPLE: Final = "write scheme://address, for example zmq://0.0.0.0:5555"
_SECTION: Final = "secrets belong in the transport's own section, such as [transport.kafka]"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_SECRET_NAME: Final = re.compile(
    r"pass|pwd|secret|token|credential|auth|sasl|(^|[-_.])(api|private)?[-_.]?key($|[-_.])",
    re.IGNORECASE,
)
_MAX_PORT: Final = 65535


def _fault(problem: str, hint: str) -> PydanticCustomError:
    # Messages never quote the URL: it may hold the very secret that they refuse.
    return PydanticCustomError("transport_url", "{problem}", {"problem": problem, "hint": hint})


def check_url(url: str) -> str:
    """Check the shape of a transport URL.

    Args:
        url: ``scheme://address``; the address may be a list of ``host:port`` with commas.

    Returns:
        The URL with its scheme in lower case.

    Raises:
        PydanticCustomError: no scheme or address, a malformed host or port, user information,
            a fragment, or something secret in the query string.
    """
    if any(character.isspace() or not character.isprintable() for character in url):
        raise _fault("has white space or unprintable characters", _EXAMPLE)
    match = _SCHEME.fullmatch(url)
    if match is None:
        raise _fault("has no scheme", _EXAMPLE)
    scheme, rest = match[1].lower(), match[2]
    # Anywhere, not only before the host: a password may itself hold a slash or a question mark.
    if "@" in rest:
        raise _fault("must not hold a user or a password", _SECTION)
    try:
        parts = urlsplit(f"{scheme}://{rest}")
    except ValueError as error:
        raise _fault("does not parse as a URL", _EXAMPLE) from error
    if not (parts.netloc or parts.path.strip("/")):
        raise _fault("has no address after the scheme", _EXAMPLE)
    if "#" in rest:
        raise _fault("has a fragment ('#...'), which means nothing here", "leave it out")
    for endpoint in parts.netloc.split(",") if parts.netloc else ():
        _check_endpoint(endpoint)
    for name, _ in parse_qsl(parts.query.replace(";", "&"), keep_blank_values=True):
        if _SECRET_NAME.search(name):
            raise _fault("must not hold a secret in its query string", _SECTION)
    return f"{scheme}://{rest}"


def _check_endpoint(endpoint: str) -> None:
    host, port = endpoint, ""
    if endpoint.startswith("["):
        host, bracket, tail = endpoint.partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise _fault("has a malformed IPv6 address", "write [address]:port")
        has_port, port = bool(tail), tail[1:]
    else:
        host, colon, port = endpoint.partition(":")
        has_port = bool(colon)
    if not host:
        raise _fault("has an empty host", _EXAMPLE)
    if has_port and not (
        port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= _MAX_PORT
    ):
        raise _fault("has a malformed port", f"a port is a number from 0 to {_MAX_PORT}")
