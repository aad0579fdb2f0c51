"""The JSON Schema, and that every setting is documented."""

from collections.abc import Iterator

import orjson
import pytest

from dsp.config import Config, json_schema
from dsp.config.fields import Setting, allowed, dotted, settings
from dsp.config.schema import setting_schema

TYPES = {"object", "string", "integer", "number", "boolean", "null", "array"}
SETTINGS = list(settings(Config))


def schemas(schema: object) -> Iterator[dict[str, object]]:
    """Each schema inside a schema, itself first."""
    assert isinstance(schema, dict)
    yield schema
    for group in ("properties", "$defs"):
        for inner in schema.get(group, {}).values():
            yield from schemas(inner)
    for inner in schema.get("anyOf", []):
        yield from schemas(inner)


def test_is_draft_2020_12_and_json() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert orjson.loads(orjson.dumps(schema)) == schema


def test_is_well_formed() -> None:
    root = json_schema()
    definitions = root["$defs"]
    assert isinstance(definitions, dict)
    for schema in schemas(root):
        if "$ref" in schema:
            prefix, _, name = str(schema["$ref"]).rpartition("/")
            assert prefix == "#/$defs"
            assert name in definitions
        elif "anyOf" not in schema:
            assert schema["type"] in TYPES
        if "properties" in schema:
            assert schema["additionalProperties"] is False
        elif schema.get("type") == "object":
            # A table whose keys are the user's names: each entry is a closed table again.
            entry = schema["additionalProperties"]
            assert isinstance(entry, dict)
            assert "$ref" in entry


@pytest.mark.parametrize("setting", SETTINGS, ids=[dotted(one.path) for one in SETTINGS])
def test_every_setting_has_description_default_and_bounds(setting: Setting) -> None:
    schema = setting_schema(Config, setting.path)
    assert len(str(schema["description"])) > 40
    assert "default" in schema
    if schema.get("type") in ("integer", "number"):
        assert "minimum" in schema or "exclusiveMinimum" in schema
        assert "maximum" in schema or "exclusiveMaximum" in schema
        units = (
            *("Frames", "Bytes", "Records", "Times", "Seconds", "Milliseconds"),
            *("Copies", "Share", "Instances", "Processes", "Seed"),
        )
        assert str(schema["description"]).startswith(units)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "integer", "minimum": 1}, "an integer from 1"),
        ({"type": "number", "maximum": 2}, "a number up to 2"),
        ({"const": "a"}, "'a'"),
        ({}, "a value"),
    ],
)
def test_allowed_in_words(schema: dict[str, object], words: str) -> None:
    assert allowed(schema) == words
