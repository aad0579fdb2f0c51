"""Stages on Spark inside of a graph on Spark: there they are what they were written as, a function
of DataFrames, and no batch goes to a job of its own.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from dsp.spark.parcels import DDL, parcels_of, unpack_ids
from dsp.spark.stage_lineage import carried, hidden, multiplies, with_hidden
from dsp.stream.batch import BRANCH, Batch, child
from dsp.stream.bodies import BulkBody
from dsp.stream.graph import Edge, Operator
from dsp.stream.steps import Failure

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from dsp.spark.graph_flow import Section

__all__ = ["Rows", "StagePart", "fit_stage", "is_stage", "stage_frame"]

IDENTITY: Final = "dsp identity"
"""Name of the column with the identity of the record that a row is made of."""


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
        salt: of identities that do not come from records; another one for each batch.
    """
    from dsp.spark.stage_schema import checked

    mine = rows.filter(rows.target.isin([*part.incoming]))
    source = mine.mapInArrow(_opening(part.incoming), with_hidden(part.takes, IDENTITY, "binary"))
    made = checked(part.function(source.drop(IDENTITY)), part.gives, part.name)
    followed = carried(made, source)
    if followed is None:
        return made.mapInArrow(_closing(part.after, part.name, salt), DDL)
    several = multiplies(made)
    return followed.mapInArrow(_following(part.after, part.name, several=several), DDL)


def _opening(
    incoming: Mapping[str, Edge],
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    edges = dict(incoming)

    def dsp_opens(rows: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for batch in rows:
            for parcel in parcels_of(batch):
                columns = edges[parcel.target].codec.decode(parcel.payload)
                ids = unpack_ids(parcel.ids, parcel.count)
                told = pa.array([each.to_bytes(16, "little") for each in ids], pa.binary())
                yield hidden(columns, IDENTITY, told)

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


def _following(
    section: "Section", name: str, *, several: bool
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """Send on rows that have the identity of their record with them."""

    def dsp_follows(columns: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from dsp.spark.graph_flow import Flow

        flow = Flow(section)
        rows = Rows(section.operators[name].salt) if several else None
        for batch in columns:
            if batch.num_rows:
                last = batch.num_columns - 1
                told = batch.column(last).to_pylist()
                ids = [int.from_bytes(each, "little") for each in told]
                made = batch.select(range(last))
                if rows is not None:
                    ids = rows.identities(made, ids)
                yield from flow.give(name, Batch(made, ids))
        yield flow.finish()

    return dsp_follows


class Rows:
    """Tells rows of one record apart by what is in them: Spark may give them in any order, and by
    several tasks.

    Args:
        salt: of the operator.
    """

    def __init__(self, salt: int) -> None:
        self._salt = salt
        self._alike: dict[int, int] = defaultdict(int)

    def identities(self, rows: "pa.RecordBatch", parents: Sequence[int]) -> list[int]:
        """Give the identities of rows whose records have those."""
        made = []
        for row, parent in zip(rows.to_pylist(), parents, strict=True):
            digest = blake2b(repr(row).encode(), digest_size=8).digest()
            identity = child(parent, self._salt, int.from_bytes(digest, "big"))
            self._alike[identity] += 1
            made.append(child(identity, self._salt, self._alike[identity]))
        return made


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
