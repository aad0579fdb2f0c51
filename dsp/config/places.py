"""Lines of keys in a TOML text, which the standard parser does not tell."""

import re
import tomllib
from collections.abc import Mapping
from typing import Final

__all__ = ["Path", "key_lines", "line_of"]

Path = tuple[str, ...]

_TOKEN: Final = re.compile(
    r'''
      """ (?: \\. | [^\\] )*? "{3,5}    # up to two quotes may stand right before the closing ones
    | \'\'\' .*? '{3,5}
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | \# [^\n]*
    | [][{}=\n]
    | [^][{}=\n"'#]+
    ''',
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[Path, int]:
    """Find the line of each table and key.

    Keys inside inline tables and arrays are not told apart: they are on the line of what holds
    them, or close to it.

    Args:
        text: a text that ``tomllib`` accepts; for another one the result means nothing.

    Returns:
        Line, from 1, of the first mention of each path.
    """
    lines: dict[Path, int] = {}
    table: Path = ()
    statement: list[str] = []
    in_value = False
    depth = 0
    line = 1
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n":
            if depth == 0:
                if not in_value and (name := "".join(statement).strip()):
                    # A statement without a value is the header of a table.
                    table = _path(name)
                    lines.setdefault(table, line)
                statement.clear()
                in_value = False
        elif in_value:
            depth += (token in "[{") - (token in "]}")
        elif token == "=":
            path = table + _path("".join(statement))
            for length in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:length], line)
            in_value = True
        elif token not in "[]" and not token.startswith("#"):
            statement.append(token)
        line += token.count("\n")
    if not in_value and (name := "".join(statement).strip()):
        lines.setdefault(_path(name), line)
    return lines


def _path(dotted: str) -> Path:
    # The parser itself knows best about quotes and escapes in keys.
    names: list[str] = []
    level: object = tomllib.loads(f"{dotted.strip()} = 0")
    while isinstance(level, dict):
        name, level = next(iter(level.items()))
        names.append(name)
    return tuple(names)


def line_of(path: Path, lines: Mapping[Path, int]) -> int | None:
    """Line of a path, or of the nearest thing around it that has one."""
    for length in range(len(path), 0, -1):
        if (line := lines.get(path[:length])) is not None:
            return line
    return None
