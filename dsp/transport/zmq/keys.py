"""Key pairs of CURVE and the files that they are kept in.

A key is 32 bytes, written as 64 hexadecimal digits; ZeroMQ's own way of writing them, 40
characters of Z85, is read too. A key file holds comments and one key.
"""

import os
from pathlib import Path
from typing import Final

import zmq
from zmq.utils import z85

__all__ = ["parse_key", "read_key_file", "write_key_pair", "public_path"]

_KEY_BYTES: Final = 32
_Z85_CHARACTERS: Final = 40
_MAX_FILE_BYTES: Final = 4096


def parse_key(text: str) -> str:
    """Read a key in hexadecimal or Z85; give it in hexadecimal.

    Raises:
        ValueError: it is neither. The message does not quote the text, which may be a secret.
    """
    try:
        raw = z85.decode(text) if len(text) == _Z85_CHARACTERS else bytes.fromhex(text)
    except (ValueError, KeyError, ArithmeticError) as error:
        raise ValueError("not a key: neither hexadecimal nor Z85") from error
    if len(raw) != _KEY_BYTES:
        raise ValueError("not a key: 64 hexadecimal digits or 40 characters of Z85 are")
    return raw.hex()


def read_key_file(path: Path) -> str:
    """Read the one key of a file; give it in hexadecimal.

    Raises:
        OSError: it cannot be read.
        ValueError: there is not exactly one key in it.
    """
    with path.open(encoding="ascii", errors="replace") as file:
        lines = [line.strip() for line in file.read(_MAX_FILE_BYTES).splitlines()]
    keys = [line for line in lines if line and not line.startswith("# ") and line != "#"]
    if len(keys) != 1:
        raise ValueError(f"holds {len(keys)} keys, not one; `dsp keygen` makes key files")
    return parse_key(keys[0])


def public_path(path: Path) -> Path:
    """Where the public key of a secret key file is kept, beside it."""
    return path.with_name(path.name + ".pub")


def write_key_pair(path: Path, *, replace: bool = False) -> str:
    """Make a key pair; write the secret key to a file that only its owner can read.

    Args:
        path: file of the secret key; the public one goes to the same name with ``.pub``.
        replace: whether files that exist may be replaced.

    Returns:
        The public key in hexadecimal.

    Raises:
        FileExistsError: there is such a file, and ``replace`` was not asked for.
        OSError: it cannot be written.
    """
    public, secret = (z85.decode(key).hex() for key in zmq.curve_keypair())
    for file in (path, public_path(path)):
        if not replace and file.exists():
            raise FileExistsError(f"{file} exists")
    _write(path, f"# Secret CURVE key of dsp. Keep it on this machine.\n{secret}\n", 0o600)
    _write(public_path(path), f"# Public CURVE key of dsp, for allow-lists.\n{public}\n", 0o644)
    return public


def _write(path: Path, text: str, mode: int) -> None:
    # Written aside and renamed: no reader sees half a key, and the mode is right from the start.
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
