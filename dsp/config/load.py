"""Building the configuration from its sources; the only reader of ``os.environ`` in dsp."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from dsp.config.explain import explain
from dsp.config.faults import ConfigFaults, Fault, Source
from dsp.config.fields import dotted, settings
from dsp.config.layers import Layer, Unreadable, dict_layer, env_layer, file_layer
from dsp.config.models import Config

__all__ = ["Examination", "load_config", "examine", "examine_as"]

ModelT = TypeVar("ModelT", bound=BaseModel)
_ORDER = ("default", "file", "environment", "overrides")


@dataclass(frozen=True, slots=True)
class Examination(Generic[ModelT]):
    """What came out of reading all sources.

    Attributes:
        config: the configuration; None if there is a fault.
        faults: everything that is wrong, in the order of the sources.
        effective: by dotted path, the value of every setting that has no fault.
        sources: by dotted path, where each value that was set comes from; others are defaults.
    """

    config: ModelT | None
    faults: tuple[Fault, ...]
    effective: Mapping[str, object]
    sources: Mapping[str, Source]


def load_config(
    path: str | os.PathLike[str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Config:
    """Build the configuration.

    What ``overrides`` sets goes before the environment, that before the file, that before the
    defaults, setting by setting.

    Args:
        path: a TOML file; none is read without it.
        env: variables to use in place of ``os.environ``; pass ``{}`` for none.
        overrides: nested dictionaries as in the file. A section may also be a model, such as
            ``{"transport": TransportConfig.edge()}``: what was set in it counts.

    Raises:
        ConfigFaults: anything is wrong; it names every fault at once.
    """
    examination = examine(path, env=env, overrides=overrides)
    if examination.config is None:
        raise ConfigFaults(examination.faults)
    return examination.config


def examine(
    path: str | os.PathLike[str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Examination[Config]:
    """Read all sources like ``load_config``, and return faults instead of raising them."""
    return examine_as(Config, path, env=env, overrides=overrides)


def examine_as(
    model: type[ModelT],
    path: str | os.PathLike[str] | None = None,
    *,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Examination[ModelT]:
    """Read all sources for another model than ``Config``, by the same rules."""
    faults: list[Fault] = []
    layer: Layer = {}
    readable = True
    if path is not None:
        try:
            layer |= file_layer(model, path, faults)
        except Unreadable as error:
            readable = False
            faults.append(error.fault)
    layer |= env_layer(model, os.environ if env is None else env, faults)
    if overrides is not None:
        layer |= dict_layer(model, overrides, faults)

    config: ModelT | None = None
    try:
        config = model.model_validate(_nested(layer))
    except ValidationError as error:
        elsewhere = Source("default") if path is None else Source("file", os.fspath(path))
        faults += explain(error, model, layer, complete=readable, elsewhere=elsewhere)
    if faults:
        config = None
    faults.sort(key=lambda fault: (_ORDER.index(fault.source.kind), fault.source.line or 0))
    return Examination(
        config=config,
        faults=tuple(faults),
        effective=_effective(model, config, layer, faults, complete=readable),
        sources={dotted(at): sourced.source for at, sourced in layer.items()},
    )


def _nested(layer: Layer) -> dict[str, object]:
    root: dict[str, object] = {}
    for path, sourced in layer.items():
        table = root
        for name in path[:-1]:
            inner = table.setdefault(name, {})
            assert isinstance(inner, dict)
            table = inner
        table[path[-1]] = sourced.value
    return root


def _effective(
    model: type[BaseModel],
    config: BaseModel | None,
    layer: Layer,
    faults: list[Fault],
    *,
    complete: bool,
) -> dict[str, object]:
    wrong = {fault.path for fault in faults}
    values: dict[str, object] = {}
    for setting in settings(model):
        name = dotted(setting.path)
        if config is not None:
            value: object = config
            for part in setting.path:
                value = getattr(value, part)
            values[name] = value
        elif setting.path in layer and name not in wrong:
            values[name] = layer[setting.path].value
        elif complete and name not in wrong and not setting.required:
            values[name] = setting.default
    return values
