"""CURVE: our key, and whose keys we trust."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import zmq
from zmq.utils import z85

from dsp.errors import ConfigError
from dsp.transport.zmq.keys import parse_key, read_key_file

if TYPE_CHECKING:
    from dsp.config import ZmqConfig
    from dsp.transport.zmq.host import Socket

__all__ = ["Security", "load_security", "DOMAIN"]

DOMAIN: Final = b"dsp"
_SECTION: Final = "transport.zmq"


@dataclass(frozen=True, slots=True)
class Security:
    """Our key pair and the allow-list.

    Attributes:
        public: our public key in hexadecimal.
        allowed: public keys that may talk to us, our own among them.
    """

    public: str
    allowed: frozenset[str]
    _secret: bytes

    def serve(self, socket: "Socket") -> None:
        """Let a listening socket take CURVE connections only, each key checked by our handler."""
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_SECRETKEY, self._secret)
        socket.setsockopt(zmq.ZAP_DOMAIN, DOMAIN)

    def dial(self, socket: "Socket", server: str) -> None:
        """Let a dialling socket prove our key, and ask for that of the other end."""
        socket.setsockopt(zmq.CURVE_PUBLICKEY, bytes.fromhex(self.public))
        socket.setsockopt(zmq.CURVE_SECRETKEY, self._secret)
        socket.setsockopt(zmq.CURVE_SERVERKEY, bytes.fromhex(server))


def load_security(config: "ZmqConfig") -> Security | None:
    """Read the key files that the configuration names; None if CURVE is off.

    Raises:
        ConfigError: a file is missing, open to others, or holds no key.
    """
    if config.curve_secret_key_file is None:
        return None
    if not zmq.has("curve"):
        raise ConfigError(f"{_SECTION}.curve_secret_key_file: this build of libzmq has no CURVE")
    where = f"{_SECTION}.curve_secret_key_file"
    path = Path(config.curve_secret_key_file)
    secret = bytes.fromhex(_read(path, where))
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigError(f"{where}: {path} is open to other users; run: chmod 600 {path}")
    public = z85.decode(zmq.curve_public(z85.encode(secret))).hex()
    allowed = {public}
    for index, text in enumerate(config.allowed_keys):
        try:
            allowed.add(parse_key(text))
        except ValueError as error:
            raise ConfigError(f"{_SECTION}.allowed_keys[{index}]: {error}") from error
    if config.allowed_keys_directory is not None:
        allowed |= _read_directory(Path(config.allowed_keys_directory))
    return Security(public, frozenset(allowed), secret)


def _read(path: Path, where: str) -> str:
    try:
        return read_key_file(path)
    except OSError as error:
        raise ConfigError(f"{where}: {path}: {os.strerror(error.errno or 0)}") from error
    except ValueError as error:
        raise ConfigError(f"{where}: {path}: {error}") from error


def _read_directory(directory: Path) -> set[str]:
    where = f"{_SECTION}.allowed_keys_directory"
    if not directory.is_dir():
        raise ConfigError(f"{where}: {directory} is not a directory")
    return {_read(path, where) for path in sorted(directory.glob("*.pub"))}
