"""The reference page of the configuration, written from the models.

``python -m dsp.config.reference > docs/reference/configuration.md`` renews it.
"""

import sys
from collections.abc import Iterator

import orjson
from pydantic import BaseModel

from dsp.config.fields import allowed, dotted, env_name, section_of, sections
from dsp.config.models import Config
from dsp.config.places import Path
from dsp.config.schema import setting_schema

__all__ = ["reference_page"]

_INTRODUCTION = """\
# Configuration reference

Written from the models by `python -m dsp.config.reference`; a test keeps it in step. How to use
these settings is in [Configure a node](../howto/configure.md).
"""


def reference_page(model: type[BaseModel] = Config) -> str:
    """Describe every setting: default, allowed values, variable, meaning. In Markdown."""
    parts = [_INTRODUCTION]
    for path, section in sections(model):
        about = setting_schema(model, path).get("description")
        parts.append(f"## `[{dotted(path)}]`\n\n{about}\n")
        parts += _settings(model, path, section)
    return "\n".join(parts)


def _settings(model: type[BaseModel], above: Path, section: type[BaseModel]) -> Iterator[str]:
    for name, field in section.model_fields.items():
        if section_of(field) is not None:
            continue
        path = (*above, name)
        schema = setting_schema(model, path)
        value = field.get_default(call_default_factory=True)
        default = (
            "required" if field.is_required() else f"`{orjson.dumps(value, default=str).decode()}`"
        )
        yield (
            f"### `{dotted(path)}`\n\n"
            f"{field.description}\n\n"
            f"- Default: {'none' if value is None else default}\n"
            f"- Allowed: `{allowed(schema)}`\n"
            f"- Environment: `{env_name(path)}`\n"
        )


if __name__ == "__main__":
    sys.stdout.write(reference_page())
