"""What the models say about a path: is it a section, what may it hold, what is it called."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Final, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dsp.config.places import Path
from dsp.config.show import shown

__all__ = [
    "ENV_PREFIX",
    "ENV_SEPARATOR",
    "Setting",
    "section_of",
    "entry_of",
    "settings",
    "sections",
    "allowed",
    "did_you_mean",
    "env_name",
    "dotted",
]

ENV_PREFIX: Final = "DSP_"
ENV_SEPARATOR: Final = "__"


@dataclass(frozen=True, slots=True)
class Setting:
    """A leaf of the configuration.

    Attributes:
        path: its path from the root.
        types: the plain types that it takes, ``None`` among them if it is optional.
        required: whether it has no default.
        default: the default, where there is one.
        entry: the model of each entry, for a table whose keys are names of the user's.
    """

    path: Path
    types: tuple[object, ...]
    required: bool
    default: object
    entry: type[BaseModel] | None = None


def section_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model of a field that is a section; None for a setting."""
    for kind in _plain_types(field.annotation):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return kind
    return None


def entry_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model of the entries of a field that is a table of sections by name."""
    match get_origin(field.annotation), get_args(field.annotation):
        case dict_type, (_, kind) if dict_type is dict and isinstance(kind, type):
            return kind if issubclass(kind, BaseModel) else None
    return None


def settings(model: type[BaseModel], above: Path = ()) -> Iterator[Setting]:
    """Walk all settings of a model and of its sections, in the order of their definition."""
    for name, field in model.model_fields.items():
        section = section_of(field)
        if section is None:
            default = field.get_default(call_default_factory=True)
            types = _plain_types(field.annotation)
            entry = entry_of(field)
            yield Setting((*above, name), types, field.is_required(), default, entry)
        else:
            yield from settings(section, (*above, name))


def sections(model: type[BaseModel], above: Path = ()) -> Iterator[tuple[Path, type[BaseModel]]]:
    """Walk all sections below a model, outer before inner."""
    for name, field in model.model_fields.items():
        if (section := section_of(field)) is not None:
            yield (*above, name), section
            yield from sections(section, (*above, name))


def dotted(path: Iterable[object]) -> str:
    """Write a path for people: odd names are quoted and cut, so that it stays one line."""
    return ".".join(_part(name) for name in path)


def _part(name: object) -> str:
    if isinstance(name, str) and re.fullmatch(r"[\w-]{1,60}", name, re.ASCII):
        return name
    return shown(name)


def env_name(path: Path) -> str:
    """Name of the environment variable of a path, such as ``DSP_TRANSPORT__URL``."""
    return ENV_PREFIX + ENV_SEPARATOR.join(path).upper()


def did_you_mean(word: str, known: list[str], prefix: str = "") -> str:
    """A hint for an unknown name: the nearest known one, else all of them.

    Args:
        word: the unknown name.
        known: the known ones.
        prefix: what all of them begin with, which would make everything look alike.
    """
    near = {name.removeprefix(prefix).lower(): name for name in known}
    match get_close_matches(word.removeprefix(prefix).lower(), near, n=1):
        case [name]:
            return f"did you mean {near[name]}?"
        case _:
            return f"allowed: {', '.join(known)}" if known else "nothing is allowed here"


def allowed(schema: Mapping[str, object]) -> str:
    """Say in words what a JSON Schema of one setting allows."""
    options = schema.get("anyOf")
    if isinstance(options, list):
        return " or ".join(allowed(option) for option in options)
    if isinstance(values := schema.get("enum"), list):
        return ", ".join(repr(value) for value in values)
    if "const" in schema:
        return repr(schema["const"])
    words = [_KINDS.get(str(schema.get("type")), "a value")]
    low, high = schema.get("minimum"), schema.get("maximum")
    match low, high:
        case None, None:
            pass
        case _, None:
            words.append(f"from {low}")
        case None, _:
            words.append(f"up to {high}")
        case _:
            words.append(f"from {low} to {high}")
    if "maxLength" in schema:
        words.append(f"of at most {schema['maxLength']} characters")
    if "pattern" in schema:
        words.append(f"like {schema['pattern']}")
    return " ".join(words)


_KINDS: Final = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "string": "text",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def _plain_types(annotation: object) -> tuple[object, ...]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _plain_types(get_args(annotation)[0])
    if origin is Union or origin is UnionType:
        return tuple(kind for option in get_args(annotation) for kind in _plain_types(option))
    return (type(None) if annotation is None else origin or annotation,)
