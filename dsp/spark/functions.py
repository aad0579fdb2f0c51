"""Bodies of a pipeline as functions of Spark, in batch jobs and in streams.

>>> import dsp.spark
>>> def tipped(trip):
...     return {"id": trip["id"], "share": trip["tip"] / trip["fare"]}
>>> def shares(trips):
...     function = dsp.spark.map_in_arrow(tipped, "id long, share double")
...     return trips.mapInArrow(function, function.schema)

What is sent to the workers is frozen settings and the body. Retries, failures and async bodies are
as on the mesh: the same code calls the body.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from dsp.errors import ConfigError
from dsp.spark.columns import Shape, as_struct, fit_columns, record_shape
from dsp.spark.failures import body_failed
from dsp.spark.workers import worker_loop
from dsp.stream.batch import Batch
from dsp.stream.codecs import make_codec
from dsp.stream.graph import Kind, Operator
from dsp.stream.letters import letter
from dsp.stream.signatures import body_fault, name_of
from dsp.stream.steps import Failure, Outcome, Step

if TYPE_CHECKING:
    import pyarrow as pa
    from google.protobuf.message import Message

    from dsp.stream.codecs import Codec

__all__ = ["map_in_arrow", "pandas_udf", "udf"]

_KINDS = {
    kind.value: kind for kind in (Kind.MAP, Kind.FILTER, Kind.FLAT_MAP, Kind.BATCHES, Kind.COLUMNS)
}


@dataclass(frozen=True)
class _Task:
    """What a worker is told.

    Attributes:
        operator: the body, and what it does with records.
        shape: of the records that come out.
        retries: how often a record is tried again.
        letters: name of the column for failures; None where they end the job.
    """

    operator: Operator
    shape: Shape
    retries: int
    letters: str | None = None
    _steps: list[Step] = field(default_factory=list, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_steps": []}

    def run(self, values: Any) -> Outcome:  # noqa: ANN401 - a list, or columns
        """Call the body; identities are places in the batch."""
        if not self._steps:
            self._steps.append(Step(self.operator, self.retries))
        step = self._steps[0]
        batch = Batch(values, range(len(values)))
        if not step.is_async:
            return step.run(batch)
        return worker_loop().run_until_complete(step.run_async(batch))

    def refuse(self, failures: list[Failure]) -> None:
        """End the job if a record failed and nobody takes it."""
        if failures and self.letters is None:
            raise body_failed(self.operator.name, failures[0])


def map_in_arrow(
    body: Callable[[Any], Any],
    schema: Any = None,  # noqa: ANN401 - what Spark takes for one
    *,
    kind: str = "map",
    codec: "str | type[Message] | Codec" = "json",
    retries: int = 0,
    threads: int = 1,
    letters: str | None = None,
    name: str | None = None,
) -> Any:  # noqa: ANN401 - a function with a schema
    """Make a function for ``DataFrame.mapInArrow`` of a body. The fastest way into Python.

    A body of ``kind="columns"`` gets the batches of Spark as they are, and nothing is converted.

    Args:
        body: a function or coroutine function, as for ``Stream.map`` and its like.
        schema: columns that come out, as ``"id long, fare double"``, a ``StructType`` or a
            ``pyarrow.Schema``. A filter needs none: rows keep their columns.
        kind: ``"map"``, ``"filter"``, ``"flat_map"``, ``"batches"`` or ``"columns"``.
        codec: of the records. With ``"json"`` a record is a dictionary of the columns; or, where
            the only column is called ``value``, what that holds. With ``"bytes"``, a protobuf class
            or a codec of yours the only column holds the bytes of a record.
        retries: how often a record is tried again on which the body raises.
        threads: of an async body, calls at the same time.
        letters: name of a column that is added: it has, as JSON, what a dead letter has, and is
            null for every record that did not fail. Without it the first failure ends the job;
            ``failed_record`` reads it from Spark's error.
        name: of the operator, in messages.

    Returns:
        A function with an attribute ``schema``, for ``frame.mapInArrow(made, made.schema)``; of a
        filter without a schema that is None: give ``frame.schema``.

    Raises:
        ConfigError: the arguments do not fit together.
    """
    task = _task(body, schema, kind, codec, retries, threads, name, letters)
    struct = as_struct(schema) if schema is not None else None
    if letters is not None:
        if struct is None:
            raise ConfigError(f"{task.operator.name}: letters needs the schema of what comes out")
        if task.operator.kind is Kind.COLUMNS:
            raise ConfigError(
                f"{task.operator.name}: a body of columns has no records that fail one by one, so "
                "letters has no effect on it: leave it out"
            )
        from pyspark.sql.types import StringType, StructType

        struct = StructType([*struct.fields]).add(letters, StringType())
    if task.operator.kind is Kind.COLUMNS:
        function = _columnar(task)
    elif task.operator.kind is Kind.FILTER:
        function = _filtering(task)
    else:
        function = _making(task)
    function.schema = struct  # type: ignore[attr-defined]
    return function


def udf(
    body: Callable[[Any], Any],
    returns: Any = None,  # noqa: ANN401 - a type of Spark
    *,
    kind: str = "map",
    codec: "str | type[Message] | Codec" = "json",
    retries: int = 0,
    name: str | None = None,
) -> Any:  # noqa: ANN401 - a UDF
    """Make a plain UDF of a body: of one value or record at a time.

    Call it on a column, or on ``struct("*")``: a struct is a dictionary for the body. Spark would
    call a deterministic UDF twice whose result is filtered; this one is declared not to be.

    Args:
        body: a function or coroutine function of one record.
        returns: type of the result, as ``"double"``. A filter gives a boolean, and needs none; a
            ``flat_map`` gives an array of these.
        kind: ``"map"``, ``"filter"`` or ``"flat_map"``.
        codec: of the records, where the column holds their bytes.
        retries: how often a record is tried again.
        name: of the operator, in messages.

    Raises:
        ConfigError: the arguments do not fit together.
    """
    from pyspark.sql import functions

    task = _task(body, None, kind, codec, retries, 1, name, None, of_values=True)
    if task.operator.kind in (Kind.BATCHES, Kind.COLUMNS):
        raise ConfigError(f"{task.operator.name}: a plain UDF gets one record; use map_in_arrow")
    flat = task.operator.kind is Kind.FLAT_MAP

    def dsp_udf(value: Any) -> Any:  # noqa: ANN401
        outcome = task.run([_record(value, task.shape)])
        task.refuse(outcome.failures)
        made = [each for batch in outcome.batches for each in batch.values]
        if task.operator.kind is Kind.FILTER:
            return bool(made)
        return (
            [_column(each, task.shape) for each in made] if flat else _column(made[0], task.shape)
        )

    dsp_udf.__name__ = task.operator.name
    made = functions.udf(dsp_udf, _returned(task, returns), useArrow=False)
    return made.asNondeterministic()


def pandas_udf(
    body: Callable[[Any], Any],
    returns: Any = None,  # noqa: ANN401 - a type of Spark
    *,
    kind: str = "map",
    codec: "str | type[Message] | Codec" = "json",
    retries: int = 0,
    threads: int = 1,
    name: str | None = None,
) -> Any:  # noqa: ANN401 - a UDF
    """Make a pandas UDF of a body: of the records of a batch, one result for each.

    Args:
        body: a function or coroutine function. One of ``kind="batches"`` has to give as many values
            as it gets.
        returns: type of a result, as for ``udf``.
        kind: ``"map"``, ``"filter"``, ``"flat_map"`` or ``"batches"``.
        codec: of the records, where the column holds their bytes.
        retries: how often a record is tried again.
        threads: of an async body, calls at the same time.
        name: of the operator, in messages.

    Raises:
        ConfigError: the arguments do not fit together.
    """
    import pandas as pd
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    task = _task(body, None, kind, codec, retries, threads, name, None, of_values=True)
    if task.operator.kind is Kind.COLUMNS:
        raise ConfigError(f"{task.operator.name}: a body of columns goes into map_in_arrow")
    kind_of = task.operator.kind
    returned = _returned(task, returns)
    as_frame = isinstance(returned, StructType)
    names = returned.names if as_frame else []

    def dsp_pandas_udf(columns: Iterator[pd.Series]) -> Iterator[pd.Series]:
        for column in columns:
            count = len(column)
            outcome = task.run([_record(each, task.shape) for each in _values(column)])
            task.refuse(outcome.failures)
            results: list[Any] = [[] for _ in range(count)] if kind_of is Kind.FLAT_MAP else []
            if kind_of is Kind.FILTER:
                results = [False] * count
            given = 0
            for batch in outcome.batches:
                for value, identity in zip(batch.values, batch.ids, strict=True):
                    given += 1
                    if kind_of is Kind.FILTER:
                        results[identity] = True
                    elif kind_of is Kind.FLAT_MAP:
                        results[identity & 0xFFFF_FFFF].append(_column(value, task.shape))
                    else:
                        results.append(_column(value, task.shape))
            if kind_of in (Kind.MAP, Kind.BATCHES) and given != count:
                raise ValueError(
                    f"{task.operator.name} gave {given} values for {count}: a pandas UDF gives as "
                    "many as it gets; use map_in_arrow"
                )
            if as_frame:
                yield pd.DataFrame(results, columns=names)
            else:
                yield pd.Series(results)

    dsp_pandas_udf.__name__ = task.operator.name
    # Spark reads the hints, and wants types, not their names.
    dsp_pandas_udf.__annotations__ = {"columns": Iterator[pd.Series], "return": Iterator[pd.Series]}
    make: Any = functions.pandas_udf  # type: ignore[attr-defined]  # it is exported in passing
    return make(dsp_pandas_udf, returned).asNondeterministic()


# -- on the driver ------------------------------------------------------------------------------


def _task(
    body: Callable[[Any], Any],
    schema: Any,  # noqa: ANN401
    kind: str,
    codec: "str | type[Message] | Codec",
    retries: int,
    threads: int,
    name: str | None,
    letters: str | None,
    *,
    of_values: bool = False,
) -> _Task:
    from dsp.spark.java import check_pyspark

    check_pyspark()
    name = name or name_of(body)
    if kind not in _KINDS:
        raise ConfigError(f"{name}: kind={kind!r}: there are {', '.join(_KINDS)}")
    if fault := body_fault(body, 1):
        raise ConfigError(f"{name}: the body {fault}")
    if schema is None and not of_values and kind != "filter":
        raise ConfigError(f"{name}: a schema is needed, as 'id long, fare double'")
    made = make_codec(codec)
    operator = Operator(name, _KINDS[kind], body, made, threads=threads)
    return _Task(operator, record_shape(made, schema), retries, letters)


def _returned(task: _Task, returns: Any) -> Any:  # noqa: ANN401
    from pyspark.sql.types import ArrayType, BooleanType, DataType

    if task.operator.kind is Kind.FILTER:
        return BooleanType()
    if returns is None:
        raise ConfigError(f"{task.operator.name}: say what it returns, as returns='double'")
    read = DataType.fromDDL(returns) if isinstance(returns, str) else returns
    return ArrayType(read) if task.operator.kind is Kind.FLAT_MAP else read


# -- on workers ---------------------------------------------------------------------------------


def _columnar(task: _Task) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    body, name, schema = task.operator.body, task.operator.name, task.shape.schema
    is_async = asyncio.iscoroutinefunction(body)

    def dsp_columns(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            made = worker_loop().run_until_complete(body(batch)) if is_async else body(batch)
            yield from fit_columns(made, schema, name)

    return dsp_columns


def _filtering(task: _Task) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def dsp_filter(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for batch in batches:
            values = task.shape.records(batch)
            outcome = task.run(values)
            task.refuse(outcome.failures)
            places = [place for each in outcome.batches for place in each.ids]
            kept = batch if len(places) == batch.num_rows else batch.take(pa.array(places, "int64"))
            if task.letters is None:
                yield kept
                continue
            yield _with_letters(task, kept, [])
            yield from _lettered(task, outcome.failures)

    return dsp_filter


def _making(task: _Task) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def dsp_records(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in batches:
            outcome = task.run(task.shape.records(batch))
            failures = list(outcome.failures)
            for each in outcome.batches:
                columns, _, unfit = task.shape.columns(each)
                failures += unfit
                task.refuse(failures)
                yield columns if task.letters is None else _with_letters(task, columns, [])
            task.refuse(failures)
            yield from _lettered(task, failures)

    return dsp_records


def _lettered(task: _Task, failures: list[Failure]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    if failures:
        name = task.operator.name
        told = [orjson.dumps(letter(name, f"{name}.spark", each)).decode() for each in failures]
        schema = task.shape.schema
        assert schema is not None
        nulls = [pa.nulls(len(told), each.type) for each in schema]
        fields = [each.with_nullable(True) for each in schema]
        empty = pa.RecordBatch.from_arrays(nulls, schema=pa.schema(fields))
        yield _with_letters(task, empty, told)


def _with_letters(task: _Task, columns: "pa.RecordBatch", told: list[str]) -> "pa.RecordBatch":
    import pyarrow as pa

    assert task.letters is not None
    added = pa.array(told, pa.string()) if told else pa.nulls(columns.num_rows, pa.string())
    return columns.append_column(task.letters, added)


def _record(value: Any, shape: Shape) -> Any:  # noqa: ANN401
    """Give what a body gets for a value of Spark."""
    if hasattr(value, "asDict"):
        return value.asDict(recursive=True)
    return shape._loaded(value) if shape.packed else value


def _column(value: Any, shape: Shape) -> Any:  # noqa: ANN401
    """Give what Spark gets for a value of a body."""
    return shape._dumped(value) if shape.packed and shape.codec.name != "bytes" else value


def _values(column: Any) -> list[Any]:  # noqa: ANN401 - a Series or DataFrame
    import pyarrow as pa

    # Through Arrow: pandas would turn numbers with gaps into floats.
    if hasattr(column, "columns"):
        return pa.RecordBatch.from_pandas(column, preserve_index=False).to_pylist()  # type: ignore[no-any-return]
    return pa.Array.from_pandas(column).to_pylist()  # type: ignore[no-any-return]
