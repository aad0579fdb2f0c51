"""The models as JSON Schema, for editors and other tools."""

from typing import Final

from pydantic import BaseModel

from dsp.config.models import Config
from dsp.config.places import Path

__all__ = ["json_schema", "setting_schema", "Schema"]

Schema = dict[str, object]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def json_schema(model: type[BaseModel] = Config) -> Schema:
    """Describe the configuration in JSON Schema, draft 2020-12.

    Checks between fields and the shape of URLs are not in it; ``dsp check`` knows them.
    """
    return {"$schema": DIALECT, **model.model_json_schema()}


def setting_schema(model: type[BaseModel], path: Path) -> Schema:
    """The part of the schema that is about one path, or an empty one for no such path."""
    root = json_schema(model)
    here = root
    for name in path:
        # A table whose keys are names of the user's says the same of each of them.
        here = _child(_child(here, "properties"), name) or _child(here, "additionalProperties")
        reference = here.get("$ref")
        if isinstance(reference, str):
            here = _child(_child(root, "$defs"), reference.rpartition("/")[2])
    return here


def _child(schema: Schema, name: str) -> Schema:
    child = schema.get(name)
    return child if isinstance(child, dict) else {}
