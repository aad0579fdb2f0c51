"""Columns on both sides of a stage: Arrow's and Spark's, compared and explained."""

from typing import TYPE_CHECKING, Any

from dsp.spark.errors import RecordFailed, SchemaMismatch

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["arrow_schema", "as_struct", "checked", "fitted", "spark_schema"]


def as_struct(schema: Any, session: "SparkSession") -> "StructType":  # noqa: ANN401
    """Read a schema as users write it.

    Args:
        schema: ``"id long, name string"``, a ``StructType``, or a ``pyarrow.Schema``.
        session: Spark reads text.

    Raises:
        SchemaMismatch: it is none of these.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        try:
            return session.createDataFrame([], schema).schema
        except PySparkException as error:
            raise SchemaMismatch(
                f"schema {schema!r} is none that Spark reads; write it as 'id long, name string': "
                f"{error}"
            ) from error
    return spark_schema(schema)


def spark_schema(schema: "pa.Schema") -> "StructType":
    """Give Spark's form of Arrow's columns.

    Raises:
        SchemaMismatch: Spark has no such type; the message names the columns.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructType

    struct, unknown = StructType(), []
    for field in schema:
        try:
            # A time without a zone stays one: the clock of no machine is asked.
            kind = from_arrow_type(field.type, True)
        except PySparkException:
            unknown.append(f"{field.name} ({field.type})")
        else:
            struct.add(field.name, kind)
    if unknown:
        raise SchemaMismatch(
            f"Spark has no type for the columns {', '.join(unknown)}: leave them out, or convert "
            "them before"
        )
    return struct


def arrow_schema(struct: "StructType") -> "pa.Schema":
    """Give Arrow's form of Spark's columns, as Spark's workers want it."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(struct, timezone="UTC")


def fitted(batch: "pa.RecordBatch", schema: "pa.Schema", where: str) -> "pa.RecordBatch":
    """Give a batch the columns that a stage takes: in their order, and of their types.

    Args:
        where: which stage, for messages.

    Raises:
        SchemaMismatch: columns are missing, or of types that never become those.
        RecordFailed: a value does not become the type.
    """
    import pyarrow as pa

    if batch.schema.equals(schema):
        return batch
    missing = [f"{f.name} {f.type}" for f in schema if batch.schema.get_field_index(f.name) < 0]
    if missing:
        raise SchemaMismatch(
            f"{where}: no column {', '.join(missing)}; the batch has {_listed(batch.schema)}. Let "
            "the operator before the stage give it, or leave it out of takes="
        )
    columns, faults = [], []
    for field in schema:
        column = batch.column(batch.schema.get_field_index(field.name))
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            fault = f"column {field.name}, {column.type}, does not become {field.type}"
            raise RecordFailed(f"{where}: {fault}: {error}") from error
        except pa.ArrowNotImplementedError:
            faults.append(f"column {field.name} is {column.type}, not {field.type}")
    if faults:
        raise SchemaMismatch(
            f"{where}: {'; '.join(faults)}. Convert it before the stage, or change takes="
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def checked(made: "DataFrame", declared: "StructType | None", where: str) -> "DataFrame":
    """Give what a stage makes, with its columns in the declared order.

    Raises:
        SchemaMismatch: it has other columns, or other types; every one is named.
    """
    if declared is None:
        return made
    found = {field.name: field.dataType for field in made.schema}
    wanted = {field.name: field.dataType for field in declared}
    faults = [
        f"column {name} is {found[name].simpleString()}, not {kind.simpleString()}"
        for name, kind in wanted.items()
        if name in found and found[name] != kind
    ]
    faults += [f"no column {n} {k.simpleString()}" for n, k in wanted.items() if n not in found]
    faults += [f"too much: {n} {k.simpleString()}" for n, k in found.items() if n not in wanted]
    if faults:
        raise SchemaMismatch(
            f"{where} gives other columns than declared: {'; '.join(faults)}. "
            f"It gives {made.schema.simpleString()}: declare that, or select and cast in it"
        )
    return made if [*found] == [*wanted] else made.select(*wanted)


def _listed(schema: "pa.Schema") -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
