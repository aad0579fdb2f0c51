"""The base of every table of the configuration."""

from typing import Final

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError

__all__ = ["BETWEEN_FIELDS", "Section", "between_fields"]

BETWEEN_FIELDS: Final = "between_fields"
"""Error type of a check that compares fields; its context names the ``others``."""


def between_fields(message: str, *others: str, hint: str) -> PydanticCustomError:
    """Make the error of a field whose value does not go with those of other fields."""
    return PydanticCustomError(
        BETWEEN_FIELDS, "{message}", {"message": message, "others": others, "hint": hint}
    )


class Section(BaseModel):
    """A table of settings: frozen, strict about types, closed to unknown keys.

    A field whose type is a ``Section`` is a table of its own. Everything else (names of
    environment variables, checks, JSON Schema, the reference page) follows from the fields.
    Fields of types that TOML does not have (paths, tuples, enums) need ``Field(strict=False)``.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        # "5" for 5 is a slip that should be seen; only the environment has nothing but text.
        strict=True,
        # Defaults take part in checks between fields.
        validate_default=True,
        allow_inf_nan=False,
        # An address may hold a password that should not have been there.
        hide_input_in_errors=True,
    )
