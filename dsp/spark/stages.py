"""How users say what a stage does: a function of DataFrames, SQL text, or a PySpark UDF.

>>> import dsp
>>> import dsp.spark
>>> def dear(trips):
...     return trips.where("fare > 20").select("id", "fare")
>>> job = dsp.Pipeline("trips")
>>> trips = job.source([{"id": 1, "fare": 30.5}])
>>> _ = trips.columns(dsp.spark.stage(dear, "id long, fare double")).sink(print)

The forms are objects rather than closures, so that a stage can be pickled where its parts can.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsp.errors import ConfigError
from dsp.spark.session import SparkSettings
from dsp.spark.stage_body import SparkStage
from dsp.spark.stage_plan import Recipe
from dsp.stream.signatures import body_fault, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame

__all__ = ["column", "sql", "stage"]


def stage(
    function: "Callable[[DataFrame], DataFrame]",
    schema: Any = None,  # noqa: ANN401 - what Spark takes for one
    *,
    takes: Any = None,  # noqa: ANN401
    name: str | None = None,
    settings: SparkSettings | str | None = None,
    reuse: bool = True,
    refresh: float | None = None,
    in_flight: int = 2,
    most_records: int = 131_072,
    longest: float = 0.5,
) -> SparkStage:
    """Make a body of a function from DataFrame to DataFrame, for ``Stream.columns``.

    The function describes what is to be done. It is not called for every batch, and what it reads
    beside the batch is read once, or again after ``refresh`` seconds.

    Args:
        function: gets the batch; may use SQL functions, joins, pandas and Arrow UDFs. The session
            is ``batch.sparkSession``.
        schema: columns that come out, as ``"id long, fare double"``, a ``StructType`` or a
            ``pyarrow.Schema``; they are compared with what the function gives. None: unchecked.
        takes: columns that go in, in the same forms; batches are made to fit. None: as they come.
        name: of the operator; the function's name without it.
        settings: which Spark, or its master: ``local[n]``, ``spark://host:port``,
            ``sc://host:port``. Without it the session of this process, or a local one.
        reuse: False to have the function called and a plan made for every job, even where one plan
            was found to do for all.
        refresh: seconds after which a plan that is used again is made anew.
        in_flight: jobs of an instance at the same time.
        most_records: of a job.
        longest: seconds that a job should take, at most, where that is not less than twice what it
            costs anyway.

    Raises:
        ConfigError: the function cannot be called with a DataFrame, or a number makes no sense.
    """
    name = name or name_of(function)
    if fault := body_fault(function, 1):
        raise ConfigError(f"{name}: the function {fault}")
    for what, value in (
        ("in_flight", in_flight),
        ("most_records", most_records),
        ("longest", longest),
    ):
        if value <= 0:
            raise ConfigError(f"{name}: {what} is {value}, more than 0 is needed")
    if not isinstance(settings, SparkSettings):
        settings = SparkSettings(settings)
    return SparkStage(
        Recipe(name, function, takes, schema, reuse, refresh),
        settings,
        in_flight=in_flight,
        most_records=most_records,
        longest=longest,
    )


def sql(
    text: str,
    schema: Any = None,  # noqa: ANN401
    *,
    tables: "Mapping[str, Any] | None" = None,
    functions: "Mapping[str, Any] | None" = None,
    name: str = "sql",
    **options: Any,  # noqa: ANN401
) -> SparkStage:
    """Make a body of SQL text, in which the batch is the table ``batch``.

    Args:
        text: a query.
        schema: as for ``stage``.
        tables: other tables by name: the path of a Parquet, CSV or JSON file, a
            ``pyarrow.Table``, a list of dictionaries, or a function from session to DataFrame.
        functions: PySpark UDFs that the text calls, by name.
        name: of the operator.
        options: those of ``stage``.

    Raises:
        ConfigError: as for ``stage``, or a table is of none of these forms.
    """
    known = dict(tables or {})
    if "batch" in known:
        raise ConfigError(f"{name}: the table batch is the batch; give yours another name")
    for table, content in known.items():
        if isinstance(content, str | Path) and Path(content).suffix not in _READERS:
            raise ConfigError(
                f"{name}: table {table}: {content} is none of {', '.join(_READERS)}; "
                "for others give a function from session to DataFrame"
            )
    return stage(Query(text, known, dict(functions or {})), schema, name=name, **options)


def column(
    name: str,
    function: Any,  # noqa: ANN401 - a UDF of either kind of session
    *inputs: str,
    returns: str | None = None,
    schema: Any = None,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> SparkStage:
    """Make a body of a PySpark UDF: it adds a column, or takes the place of one.

    Args:
        name: of the column.
        function: what ``pyspark.sql.functions.udf``, ``pandas_udf`` or ``arrow_udf`` gave; or a
            plain function of values, with ``returns``.
        inputs: columns that the function gets.
        returns: type that a plain function gives, as ``"double"``.
        schema: as for ``stage``.
        options: those of ``stage``.

    Raises:
        ConfigError: as for ``stage``, or the function is no UDF.
    """
    if not hasattr(function, "evalType") and returns is None:
        raise ConfigError(
            f"{name_of(function)} is no PySpark UDF: say returns='type', or wrap it in "
            "pyspark.sql.functions.udf"
        )
    options.setdefault("name", name_of(function))
    return stage(WithColumn(name, function, inputs, returns), schema, **options)


_READERS: dict[str, str] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
}


@dataclass(frozen=True)
class Query:
    """SQL text as a function of DataFrames."""

    text: str
    tables: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Any] = field(default_factory=dict)

    def __call__(self, batch: "DataFrame") -> "DataFrame":
        session = batch.sparkSession
        for name, function in self.functions.items():
            session.udf.register(name, _of_session(function, session))
        frames: dict[str, Any] = {"dsp_batch": batch}
        for name, content in self.tables.items():
            frames[f"dsp_{name}"] = _table(content, session)
        # Named inside of the query: views of the session would be seen by other stages.
        named = ", ".join(f"`{name[4:]}` AS (SELECT * FROM {{{name}}})" for name in frames)
        text = self.text.strip().rstrip(";").replace("{", "{{").replace("}", "}}")
        return session.sql(f"WITH {named} SELECT * FROM (\n{text}\n)", **frames)


@dataclass(frozen=True)
class WithColumn:
    """A PySpark UDF as a function of DataFrames."""

    name: str
    function: Any
    inputs: tuple[str, ...]
    returns: str | None

    def __call__(self, batch: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as F

        function: Callable[..., Column]
        if self.returns is None:
            function = _of_session(self.function, batch.sparkSession)
        else:
            function = F.udf(self.function, self.returns, useArrow=False)
        return batch.withColumn(self.name, function(*(batch[each] for each in self.inputs)))


def _table(content: Any, session: Any) -> "DataFrame":  # noqa: ANN401
    if isinstance(content, str | Path):
        reader = session.read.format(_READERS[Path(content).suffix])
        if Path(content).suffix == ".csv":
            reader = reader.option("header", True).option("inferSchema", True)
        return reader.load(str(content))  # type: ignore[no-any-return]
    if callable(content):
        return content(session)  # type: ignore[no-any-return]
    import pyarrow as pa

    # As columns Spark knows how large they are, and sends a small table to every task.
    columns = pa.Table.from_pylist(content) if isinstance(content, list) else content
    return session.createDataFrame(columns)  # type: ignore[no-any-return]


def _of_session(function: Any, session: Any) -> Any:  # noqa: ANN401
    """Give a UDF for a session: those of Spark Connect are of a kind of their own."""
    if ".connect." not in type(session).__module__ or "connect" in type(function).__module__:
        return function
    from pyspark.sql.connect.udf import _create_udf

    return _create_udf(
        function.func,
        returnType=function.returnType,
        evalType=function.evalType,
        deterministic=function.deterministic,
    )
