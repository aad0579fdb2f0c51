"""From pydantic's errors to faults that name the source and say what is allowed."""

import re
from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dsp.config.faults import Fault, Source
from dsp.config.fields import allowed, dotted
from dsp.config.layers import Layer
from dsp.config.places import Path
from dsp.config.schema import setting_schema
from dsp.config.section import BETWEEN_FIELDS
from dsp.config.show import shown

__all__ = ["explain"]

_SUBJECT: Final = re.compile(r"^\w+ should ")
_PLAIN: Final = {"missing": "is missing", "extra_forbidden": "unknown key"}


def explain(
    error: ValidationError,
    model: type[BaseModel],
    layer: Layer,
    *,
    complete: bool,
    elsewhere: Source,
) -> Iterator[Fault]:
    """Turn each error into a fault.

    Args:
        error: what the model raised.
        model: the model.
        layer: the values that it was given.
        complete: False if a file could not be read: what compares with its unknown values, or
            misses them, is then no fault.
        elsewhere: source to name for what is missing in all of them.
    """
    for details in error.errors(include_url=False):
        path = tuple(str(part) for part in details["loc"])
        if not complete and (details["type"] == BETWEEN_FIELDS or path not in layer):
            continue
        source = _source(path, details, layer) or elsewhere
        yield Fault(source, dotted(path), *_words(details, model, path))


def _source(path: Path, details: ErrorDetails, layer: Layer) -> Source | None:
    """The source of the value, or for a default of the field that it disagrees with."""
    others = details.get("ctx", {}).get("others", ())
    for candidate in (path, *((*path[:-1], other) for other in others)):
        for length in range(len(candidate), 0, -1):
            if candidate[:length] in layer:
                return layer[candidate[:length]].source
    return None


def _words(details: ErrorDetails, model: type[BaseModel], path: Path) -> tuple[str, str]:
    context = details.get("ctx", {})
    message = details["msg"]
    if "hint" in context:
        return message, str(context["hint"])
    schema = setting_schema(model, path)
    hint = f"allowed: {allowed(schema)}" if schema else ""
    if (plain := _PLAIN.get(details["type"])) is not None:
        return plain, hint
    problem = _SUBJECT.sub("must ", message.removeprefix("Value error, "))
    # "writeOnly" is how the schema marks secrets.
    got = "" if schema.get("writeOnly") else f", got {shown(details['input'])}"
    return problem + got, hint
