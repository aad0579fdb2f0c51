"""Stages on Spark inside of a graph on Spark: there they are what they were written as, a function
of DataFrames, and no batch goes to a job of its own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dsp.spark.parcels import DDL, parcels_of
from dsp.stream.batch import BRANCH, Batch
from dsp.stream.bodies import BulkBody
from dsp.stream.graph import Edge, Operator
from dsp.stream.steps import Failure

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from dsp.spark.graph_flow import Section

__all__ = ["StagePart", "fit_stage", "is_stage", "stage_frame"]


def is_stage(operator: Operator) -> bool:
    """Whether the body of an operator is a stage on Spark."""
    return isinstance(operator.body, BulkBody) and hasattr(operator.body, "recipe")


@dataclass(frozen=True)
class StagePart:
    """A stage in a plan.

    Attributes:
        name: of the operator.
        function: from DataFrame to DataFrame.
        takes: columns that go in.
        gives: columns that are declared to come out, if they are.
        incoming: the edges to it, by address.
        after: sends on what comes out.
    """

    name: str
    function: "Callable[[DataFrame], DataFrame]"
    takes: "StructType"
    gives: "StructType | None"
    incoming: Mapping[str, Edge]
    after: "Section"


def stage_frame(part: StagePart, rows: "DataFrame", salt: str) -> "DataFrame":
    """Give what a stage makes of the rows for it, as rows again.

    Args:
        part: the stage.
        rows: for all operators.
        salt: of identities; another one for each batch.
    """
    from dsp.spark.stage_schema import checked

    mine = rows.filter(rows.target.isin([*part.incoming]))
    columns = mine.mapInArrow(_opening(part.incoming), part.takes)
    made = checked(part.function(columns), part.gives, part.name)
    return made.mapInArrow(_closing(part.after, part.name, salt), DDL)


def _opening(
    incoming: Mapping[str, Edge],
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    edges = dict(incoming)

    def dsp_opens(rows: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        for batch in rows:
            for parcel in parcels_of(batch):
                yield edges[parcel.target].codec.decode(parcel.payload)

    return dsp_opens


def _closing(
    section: "Section", name: str, salt: str
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def dsp_closes(columns: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pyspark import TaskContext

        from dsp.spark.graph_flow import Flow

        context = TaskContext.get()
        place = context.partitionId() if context is not None else 0
        origin = blake2b(f"{salt} {name} {place}".encode(), digest_size=8).digest()
        first = int.from_bytes(origin, "big") | BRANCH
        flow = Flow(section)
        for batch in columns:
            if batch.num_rows:
                end = first + batch.num_rows * BRANCH
                yield from flow.give(name, Batch(batch, range(first, end, BRANCH)))
                first = end
        yield flow.finish()

    return dsp_closes


def fit_stage(batch: Batch, schema: "pa.Schema", where: str) -> tuple[Batch, list[Failure]]:
    """Give records as the columns that a stage takes, and those that do not become columns."""
    import pyarrow as pa

    try:
        return Batch(_columns(batch.values, schema, where), batch.ids, batch.born), []
    except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError):
        pass
    good: list[Any] = []
    ids: list[int] = []
    failures: list[Failure] = []
    for place, each in enumerate(batch.ids):
        single = batch.part(place, place + 1).values
        try:
            good.append(_columns(single, schema, where))
            ids.append(each)
        except Exception as error:
            value = single[0] if isinstance(single, list) else single.to_pylist()[0]
            failures.append(Failure(each, value, f"{where}: {type(error).__name__}: {error}", ""))
    if not good:
        return batch.part(0, 0), failures
    return Batch(pa.concat_batches(good), ids, batch.born), failures


def _columns(values: Any, schema: "pa.Schema", where: str) -> "pa.RecordBatch":  # noqa: ANN401
    import pyarrow as pa

    if not isinstance(values, list):
        from dsp.spark.stage_schema import fitted

        return fitted(values, schema, where)
    columns = []
    for field in schema:
        try:
            columns.append(pa.array([value[field.name] for value in values], field.type))
        except KeyError:
            raise KeyError(f"no column {field.name} {field.type}") from None
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise TypeError(f"column {field.name} is {field.type}: {error}") from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)
