"""Digests of values that depend on what a value is, never on the process that holds it.

Fingerprints of states are sums of these digests. Two worker processes, or two runs under different
hash seeds, must agree on them, so neither ``hash`` nor ``pickle`` will do: the first is salted, the
second depends on which objects happen to be shared.
"""

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b

from dsp.errors import ConfigError

__all__ = ["encode", "digest64", "MASK64"]

MASK64 = (1 << 64) - 1


def _framed(tag: bytes, parts: list[bytes]) -> bytes:
    return b"%c%d:%b" % (tag[0], len(parts), b"".join(b"%d:%b" % (len(p), p) for p in parts))


def _dataclass_parts(value: object) -> list[bytes]:
    names = [f.name for f in fields(value) if f.compare]  # type: ignore[arg-type]
    return [encode(getattr(value, name)) for name in names]


def encode(value: object) -> bytes:
    """Bytes that are equal for equal values and differ for different ones.

    Numbers that compare equal (``True``, ``1``, ``1.0``) give the same bytes, because a state that
    holds one of them is the same state.

    Raises:
        ConfigError: the value has a part whose identity cannot be told from its content.
    """
    if value is None:
        return b"N"
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, int):
        return b"i%d" % value
    if isinstance(value, float):
        return b"i%d" % int(value) if value.is_integer() else b"f" + value.hex().encode()
    if isinstance(value, tuple):
        return _framed(b"t", [encode(item) for item in value])
    if isinstance(value, bytes):
        return b"b" + value
    if isinstance(value, frozenset):
        return _framed(b"S", sorted(encode(item) for item in value))
    if isinstance(value, type):
        return b"c" + f"{value.__module__}.{value.__qualname__}".encode()
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}".encode()
    if isinstance(value, Enum):
        return _framed(b"e", [name, value.name.encode()])
    if is_dataclass(value):
        return _framed(b"d", [name, *_dataclass_parts(value)])
    if isinstance(value, Mapping):
        pairs = [_framed(b"p", [encode(k), encode(v)]) for k, v in value.items()]
        return _framed(b"m", sorted(pairs))
    raise ConfigError(
        f"the explorer cannot tell states apart by a {name.decode()}: states, messages and ghosts "
        "are made of None, numbers, strings, bytes, enums, tuples, frozensets, frozen dataclasses "
        "and hashable mappings"
    )


def digest64(*parts: Hashable) -> int:
    """A 64-bit digest of the parts, the same in every process."""
    return int.from_bytes(blake2b(encode(parts), digest_size=8).digest(), "little")
