"""The three places that values come from, each as a flat table of settings.

A layer holds what its place sets, by path, with the source; what it has no right to set is a
fault. Because layers are flat, a later one overrides an earlier one setting by setting.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from typing import Final, NamedTuple

import orjson
from pydantic import BaseModel

from dsp.config.faults import Fault, Source
from dsp.config.fields import (
    ENV_PREFIX,
    ENV_SEPARATOR,
    did_you_mean,
    dotted,
    entry_of,
    env_name,
    section_of,
    sections,
    settings,
)
from dsp.config.places import Path, key_lines, line_of
from dsp.config.show import shown

__all__ = ["Layer", "Sourced", "Unreadable", "file_layer", "env_layer", "dict_layer"]

MAX_FILE_BYTES: Final = 1024 * 1024

_TRUTH: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Sourced(NamedTuple):
    """A value and where it comes from."""

    value: object
    source: Source


Layer = dict[Path, Sourced]


class Unreadable(Exception):
    """A file whose values cannot be known; carries the fault that says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def file_layer(model: type[BaseModel], path: str | PathLike[str], faults: list[Fault]) -> Layer:
    """Read a TOML file.

    Raises:
        Unreadable: there is no such file, or it is not TOML in UTF-8.
    """
    name = fspath(path)
    text = _read(name)
    try:
        data = tomllib.loads(text)
    except ValueError as error:
        raise Unreadable(_syntax_fault(name, text, error)) from error
    except RecursionError as error:
        fault = Fault(Source("file", name), "", "is nested too deeply", "use fewer brackets")
        raise Unreadable(fault) from error
    lines = key_lines(text)
    return _flat(model, data, lambda at: Source("file", name, line_of(at, lines)), faults)


def dict_layer(model: type[BaseModel], data: object, faults: list[Fault]) -> Layer:
    """Take a dictionary, or a model of which the values that were set count."""
    return _flat(model, data, _always(Source("overrides")), faults)


def env_layer(model: type[BaseModel], env: Mapping[str, str], faults: list[Fault]) -> Layer:
    """Take the variables that are settings; those that only look like settings are faults."""
    known = {env_name(setting.path): setting for setting in settings(model)}
    tables = {env_name(path): path for path, _ in sections(model)}
    slips = {_squashed(name): name for name in known}
    layer: Layer = {}
    for name in sorted(name for name in env if name.startswith(ENV_PREFIX)):
        source = Source("environment", name)
        if (setting := known.get(name)) is not None:
            value = _from_text(env[name], setting.types)
            if setting.entry is None:
                layer[setting.path] = Sourced(value, source)
            else:
                layer |= _entries(setting.entry, value, _always(source), faults, setting.path)
        elif name in tables:
            hint = f"set its keys one by one, as in {_example(name, known)}"
            faults.append(Fault(source, dotted(tables[name]), "is a section, not a setting", hint))
        elif name in slips:
            hint = f"did you mean {slips[name]}?"
            faults.append(Fault(source, "", "unknown variable", hint))
        elif ENV_SEPARATOR in name:
            path = name.removeprefix(ENV_PREFIX).lower().split(ENV_SEPARATOR)
            hint = did_you_mean(name, list(known), prefix=ENV_PREFIX)
            faults.append(Fault(source, dotted(path), "unknown setting", hint))
    return layer


def _always(source: Source) -> Callable[[Path], Source]:
    return lambda _: source


def _flat(
    model: type[BaseModel],
    data: object,
    locate: Callable[[Path], Source],
    faults: list[Fault],
    above: Path = (),
) -> Layer:
    if isinstance(data, BaseModel):
        data = data.model_dump(exclude_unset=True, warnings=False)
    fields = model.model_fields
    if not isinstance(data, Mapping):
        problem = f"must be a table, got {shown(data)}"
        hint = f"its keys: {', '.join(fields)}"
        faults.append(Fault(locate(above), dotted(above), problem, hint))
        return {}
    layer: Layer = {}
    for key, value in data.items():
        path = (*above, key)
        if not isinstance(key, str) or key not in fields:
            hint = did_you_mean(key if isinstance(key, str) else "", list(fields))
            faults.append(Fault(locate(path), dotted(path), "unknown key", hint))
        elif (section := section_of(fields[key])) is not None:
            layer |= _flat(section, value, locate, faults, path)
        elif (entry := entry_of(fields[key])) is not None:
            layer |= _entries(entry, value, locate, faults, path)
        else:
            layer[path] = Sourced(value, locate(path))
    return layer


def _entries(
    model: type[BaseModel],
    data: object,
    locate: Callable[[Path], Source],
    faults: list[Fault],
    above: Path,
) -> Layer:
    """The layer of a table of sections whose keys are names of the user's."""
    if not isinstance(data, Mapping):
        problem = f"must be a table, got {shown(data)}"
        faults.append(Fault(locate(above), dotted(above), problem, "one table for each name"))
        return {}
    layer: Layer = {}
    for name, value in data.items():
        if isinstance(name, str):
            layer |= _flat(model, value, locate, faults, (*above, name))
        else:
            fault = Fault(locate(above), dotted((*above, name)), "is no name", "use text")
            faults.append(fault)
    return layer


def _read(name: str) -> str:
    source = Source("file", name)
    try:
        with open(name, "rb") as file:
            # Bounded, since a name like /dev/zero has no end.
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        fault = Fault(source, "", "no such file", "check the name and the working directory")
        raise Unreadable(fault) from error
    except IsADirectoryError as error:
        fault = Fault(source, "", "is a directory", "name a TOML file in it")
        raise Unreadable(fault) from error
    except PermissionError as error:
        fault = Fault(source, "", "may not be read", "give this user the right to read it")
        raise Unreadable(fault) from error
    except (OSError, ValueError) as error:
        # ValueError: a name with a NUL character.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        fault = Fault(source, "", f"cannot be read: {reason}", "name a TOML file")
        raise Unreadable(fault) from error
    if len(data) > MAX_FILE_BYTES:
        problem = f"is over {MAX_FILE_BYTES} bytes"
        raise Unreadable(Fault(source, "", problem, "name a TOML file, not a data file"))
    try:
        # The "-sig" takes the byte order mark that some editors write.
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        place = Source("file", name, line, column)
        problem = f"is not UTF-8: byte 0x{data[error.start]:02x}"
        raise Unreadable(Fault(place, "", problem, "save the file as UTF-8")) from error


def _syntax_fault(name: str, text: str, error: ValueError) -> Fault:
    message = str(error)
    line = column = None
    if (match := _TOML_PLACE.search(message)) is not None:
        message = message[: match.start()]
        line = int(match[1]) if match[1] else text.count("\n") + 1
        column = int(match[2]) if match[2] else None
    problem = f"is not valid TOML: {message[:1].lower()}{message[1:]}"
    hint = "a line is [table], key = value or # comment; text is in quotes"
    return Fault(Source("file", name, line, column), "", problem, hint)


def _from_text(text: str, types: tuple[object, ...]) -> object:
    # Text that does not parse stays text, and the model says what it should have been.
    if not text and type(None) in types:
        return None
    if str in types:
        return text
    for kind in types:
        try:
            if kind is bool and (truth := _TRUTH.get(text.strip().lower())) is not None:
                return truth
            if kind is int:
                return int(text)
            if kind is float:
                return float(text)
            if kind in (list, dict, tuple, set, frozenset):
                return orjson.loads(text)
        except ValueError:
            continue
    return text


def _example(table: str, known: Mapping[str, object]) -> str:
    return next(
        (name for name in known if name.startswith(table + ENV_SEPARATOR)),
        f"{table}{ENV_SEPARATOR}<KEY>",
    )


def _squashed(name: str) -> str:
    return re.sub("_+", "_", name)
