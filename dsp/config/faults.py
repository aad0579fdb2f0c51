"""What is wrong with a configuration, where, and what would be right."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from dsp.errors import ConfigError

__all__ = ["Source", "Fault", "ConfigFaults", "SourceKind"]

SourceKind = Literal["default", "file", "environment", "overrides"]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from.

    Attributes:
        kind: which of the four sources.
        name: the file's name as it was given, or the environment variable's; else empty.
        line: line in the file, from 1, where it is known.
        column: column in that line, from 1; known for syntax errors only.
    """

    kind: SourceKind
    name: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        match self.kind:
            case "file":
                places = (self.line, self.column)
                known = [str(place) for place in places if place is not None]
                return ":".join([_one_line(self.name), *known])
            case "environment":
                return f"environment {_one_line(self.name)}"
            case kind:
                return kind


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong.

    Attributes:
        source: where the wrong value comes from.
        path: dotted path of the setting, such as ``transport.url``; empty for a whole file.
        problem: what is wrong with it.
        hint: what is allowed, or what to do; may be empty.
    """

    source: Source
    path: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.source}: {self.path}" if self.path else str(self.source)
        return f"{where}: {self.problem}" + (f" ({self.hint})" if self.hint else "")


def _one_line(name: str) -> str:
    # Files and variables may be called anything; a fault is one printable line.
    return name if name.isprintable() else ascii(name)


class ConfigFaults(ConfigError):
    """Everything that is wrong with a configuration, at once.

    The message has one line per fault.

    Args:
        faults: at least one.

    Attributes:
        faults: the same, for programs.
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    def __reduce__(self) -> tuple[type["ConfigFaults"], tuple[tuple[Fault, ...]]]:
        # The default would rebuild from the message, which is not what __init__ takes.
        return type(self), (self.faults,)
