"""Records as columns and columns as records, by a declared schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dsp.errors import CodecError, ConfigError
from dsp.stream.batch import Batch
from dsp.stream.codecs import Codec
from dsp.stream.steps import Failure

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["Shape", "arrow_schema", "as_struct", "fit_columns", "record_shape"]

VALUE = "value"
"""Name of the only column of records that are no dictionaries."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How records of a codec are columns.

    Attributes:
        codec: of the records. Of JSON a record has a column for each of its keys; of any other one
            it is one column, of bytes.
        schema: the columns that go out; None where those that came in are meant.
    """

    codec: Codec
    schema: "pa.Schema | None" = None

    @property
    def packed(self) -> bool:
        """Whether a record is one column of bytes."""
        return self.codec.name != "json" and not self.codec.columnar

    def records(self, columns: "pa.RecordBatch") -> list[Any]:
        """Give the records of columns.

        Raises:
            CodecError: bytes that are no records.
        """
        if columns.num_columns == 1 and (self.packed or columns.schema.names == [VALUE]):
            values = _listed(columns.column(0))
            return values if not self.packed else [self._loaded(value) for value in values]
        if self.packed:
            raise CodecError(
                f"the codec {self.codec.name} takes one column of bytes, and there are "
                f"{', '.join(columns.schema.names)}: select one of them"
            )
        if not columns.num_columns:
            return [{} for _ in range(columns.num_rows)]
        names = columns.schema.names
        rows = zip(*map(_listed, columns.columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _loaded(self, data: bytes) -> Any:  # noqa: ANN401
        return data if self.codec.name == "bytes" else _unframed(self.codec, data)

    def columns(self, batch: Batch) -> "tuple[pa.RecordBatch, Batch, list[Failure]]":
        """Give columns of records, the records that became columns, and those that did not."""
        import pyarrow as pa

        assert self.schema is not None
        values = batch.values
        assert isinstance(values, list)
        try:
            return self._made(values), batch, []
        except (CodecError, pa.ArrowException, TypeError, ValueError, OverflowError):
            good: list[int] = []
            failures: list[Failure] = []
            for place, value in enumerate(values):
                try:
                    self._made([value])
                    good.append(place)
                except Exception as error:
                    failures.append(Failure(batch.ids[place], value, self._fault(value, error), ""))
            kept = Batch([values[p] for p in good], [batch.ids[p] for p in good])
            assert isinstance(kept.values, list)
            return self._made(kept.values), kept, failures

    def _made(self, values: list[Any]) -> "pa.RecordBatch":
        import pyarrow as pa

        schema = self.schema
        assert schema is not None
        if self.packed:
            packed = values if self.codec.name == "bytes" else [*map(self._dumped, values)]
            return pa.RecordBatch.from_arrays(
                [pa.array(packed, schema.field(0).type)], schema=schema
            )
        if schema.names == [VALUE] and not all(isinstance(each, Mapping) for each in values):
            return pa.RecordBatch.from_arrays(
                [pa.array(values, schema.field(0).type)], schema=schema
            )
        if (whole := _whole_columns(values, schema)) is not None:
            return whole
        # pyarrow would leave out what is not in the schema.
        if not {*schema.names}.issuperset(chain.from_iterable(values)):
            raise CodecError("a record with other columns")
        return pa.RecordBatch.from_pylist(values, schema)

    def _dumped(self, value: Any) -> bytes:  # noqa: ANN401
        return _framed(self.codec, value)

    def _fault(self, value: Any, error: Exception) -> str:  # noqa: ANN401
        """Say why a record does not become columns: which of them, and what was expected."""
        import pyarrow as pa

        schema = self.schema
        assert schema is not None
        declared = ", ".join(f"{field.name} {field.type}" for field in schema)
        if not isinstance(value, Mapping):
            return f"CodecError: {value!r:.200} is no dictionary, and the columns are {declared}"
        if other := [str(name) for name in value if name not in schema.names]:
            return f"CodecError: columns {', '.join(other)} are not declared; those are {declared}"
        for field in schema:
            try:
                pa.array([value.get(field.name)], field.type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as wrong:
                found = value.get(field.name)
                return (
                    f"CodecError: column {field.name} is {field.type}, not {found!r:.100}: {wrong}"
                )
        return f"{type(error).__name__}: {error}"


def _whole_columns(values: list[Any], schema: "pa.Schema") -> "pa.RecordBatch | None":
    """Give columns of records that have all of them and no other, as most do; else None."""
    import pyarrow as pa

    if sum(map(len, values)) != len(values) * len(schema):
        return None
    try:
        found = [[*map(itemgetter(name), values)] for name in schema.names]
    except KeyError:
        return None
    arrays = map(pa.array, found, schema.types)
    return pa.RecordBatch.from_arrays([*arrays], schema=schema)


def _listed(column: "pa.Array") -> list[Any]:
    """Give the values of a column. By numpy numbers become Python's ten times as quickly."""
    from pyarrow import types

    numbers = types.is_integer(column.type) or types.is_float64(column.type)
    if numbers and not column.null_count:
        return column.to_numpy().tolist()  # type: ignore[no-any-return]
    return column.to_pylist()  # type: ignore[no-any-return]


def _framed(codec: Codec, value: Any) -> bytes:  # noqa: ANN401
    data = codec.encode([value])
    return data[8:] if codec.name.startswith("protobuf:") else data


def _unframed(codec: Codec, data: bytes) -> Any:  # noqa: ANN401
    if codec.name.startswith("protobuf:"):
        # A list of one: number of records, size of each, and the message itself.
        data = (1).to_bytes(4, "little") + len(data).to_bytes(4, "little") + data
    return codec.decode(data)[0]


def record_shape(codec: Codec, schema: Any) -> Shape:  # noqa: ANN401
    """Give the shape for a schema as users write it; see ``as_struct``."""
    return Shape(codec, arrow_schema(as_struct(schema)) if schema is not None else None)


def as_struct(schema: Any) -> "StructType":  # noqa: ANN401
    """Read a schema: ``"id long, fare double"``, a ``StructType`` or a ``pyarrow.Schema``.

    Raises:
        ConfigError: it is none of these.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import DataType, StructType

    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        try:
            read: DataType = StructType.fromDDL(schema)
        except PySparkException as error:
            raise ConfigError(
                f"schema {schema!r} is none that Spark reads: {str(error).splitlines()[0]}; it "
                "reads text only while there is a Spark session"
            ) from error
        if not isinstance(read, StructType):
            raise ConfigError(f"schema {schema!r}: write columns, as 'id long, fare double'")
        return read
    from dsp.spark.stage_schema import spark_schema

    if not hasattr(schema, "names"):
        raise ConfigError(f"schema {schema!r:.80}: give text, a StructType or a pyarrow.Schema")
    return spark_schema(schema)


def arrow_schema(struct: "StructType") -> "pa.Schema":
    """Give Arrow's form of Spark's columns, as Spark's workers want it."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(struct, timezone="UTC")


def fit_columns(made: Any, schema: "pa.Schema | None", where: str) -> "list[pa.RecordBatch]":  # noqa: ANN401
    """Give what a columnar body made as batches of a declared schema.

    Raises:
        SchemaMismatch: columns are missing, too many, or of other types; each is named.
    """
    from dsp.spark.errors import SchemaMismatch

    if not hasattr(made, "num_rows"):
        raise TypeError(f"{where} gave {type(made).__name__}, not a pyarrow.RecordBatch")
    batches = made.to_batches() if hasattr(made, "to_batches") else [made]
    if schema is None or made.schema.equals(schema):
        return list(batches)
    found = {field.name: field.type for field in made.schema}
    wanted = {field.name: field.type for field in schema}
    faults = [f"no column {name} {kind}" for name, kind in wanted.items() if name not in found]
    faults += [
        f"column {name} {kind} too much" for name, kind in found.items() if name not in wanted
    ]
    if not faults:
        try:
            return [batch.select(schema.names).cast(schema) for batch in batches]
        except ValueError as error:
            faults = [
                f"column {name} is {found[name]}, not {kind} ({error})"
                for name, kind in wanted.items()
                if found[name] != kind
            ]
    raise SchemaMismatch(
        f"{where} gives other columns than declared: {'; '.join(faults)}. "
        "Declare what it gives, or convert it in the body"
    )
