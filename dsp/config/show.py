"""Values in messages: short, on one line, and without the secrets that an address may hold."""

import re
import reprlib
from typing import Final

__all__ = ["shown"]

_MAX_BITS: Final = 256
_USER_INFO: Final = re.compile(r"//.*@", re.DOTALL)
_QUERY: Final = re.compile(r"\?.*", re.DOTALL)


class _Show(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 2
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 4
        self.maxstring = self.maxother = self.maxlong = 60

    def repr_str(self, value: str, level: int) -> str:
        # Before cutting: half a password with its '@' cut away would not be recognised.
        if "://" in value:
            value = _QUERY.sub("?***", _USER_INFO.sub("//***@", value))
        return super().repr_str(value, level)

    def repr_int(self, value: int, level: int) -> str:
        # Python refuses to write very long integers.
        if (bits := value.bit_length()) > _MAX_BITS:
            return f"an integer of {bits} bits"
        return super().repr_int(value, level)


_SHOW: Final = _Show()


def shown(value: object) -> str:
    """Write a value for a message."""
    return _SHOW.repr(value).replace("\n", " ")
