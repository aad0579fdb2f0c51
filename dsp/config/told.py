"""A configuration as one process tells it another of the same application: checked already.

Whoever starts a process has checked its settings. The process takes their values as they are, and
needs neither pydantic nor the models, whose import takes a third of the time in which it starts.
"""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from dsp.config.models import Config

__all__ = ["Told", "tell", "told"]

_MODEL, _VALUES, _TABLE, _PATH = "model", "values", "table", "path"


class Told:
    """The values of one section, as attributes, in the place of its model.

    What a model can do besides, such as ``model_dump``, is left to the model, which is made when
    somebody asks for it.

    Args:
        model: ``module:Class``.
        values: of all its fields.
    """

    def __init__(self, model: str, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)
        self._model = model
        self._values = values

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(_made(self), name)

    def model_copy(self, *, update: Mapping[str, Any]) -> "Told":
        """Give the section with other values; they are not checked, as with a model."""
        return Told(self._model, {**self._values, **update})


def tell(config: "Config") -> dict[str, Any]:
    """Give all values of a configuration, for JSON."""
    plain: dict[str, Any] = _plain(config)
    return plain


def told(values: Mapping[str, Any]) -> "Config":
    """Read what ``tell`` gave: an object with the values of a ``Config``, unchecked."""
    return cast("Config", _read(values))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of any setting
    if isinstance(value, Told):
        fields = {name: _plain(each) for name, each in value._values.items()}
        return {_MODEL: value._model, _VALUES: fields}
    if fields_of := getattr(type(value), "model_fields", None):
        kind = type(value)
        fields = {name: _plain(getattr(value, name)) for name in fields_of}
        return {_MODEL: f"{kind.__module__}:{kind.__qualname__}", _VALUES: fields}
    if isinstance(value, Mapping):
        return {_TABLE: {name: _plain(each) for name, each in value.items()}}
    if isinstance(value, Path):
        return {_PATH: str(value)}
    return value


def _read(value: Any) -> Any:  # noqa: ANN401 - any value of any setting
    match value:
        case {"model": model, "values": values}:
            return Told(model, {name: _read(each) for name, each in values.items()})
        case {"table": table}:
            return {name: _read(each) for name, each in table.items()}
        case {"path": path}:
            return Path(path)
        case list():
            return tuple(value)
    return value


def _made(value: Any) -> Any:  # noqa: ANN401 - any value of any setting
    """Give the model of a section, and the models of what it holds."""
    if isinstance(value, Told):
        module, _, name = value._model.partition(":")
        model = getattr(importlib.import_module(module), name)
        return model.model_construct(**{name: _made(each) for name, each in value._values.items()})
    if isinstance(value, Mapping):
        return {name: _made(each) for name, each in value.items()}
    return value
