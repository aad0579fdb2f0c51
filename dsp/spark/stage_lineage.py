"""Of which record each row was made: a column beside those of a batch, carried through the plan.

The function of a stage does not see the column: with it, rows that are alike would differ, and
``distinct`` would mean something else. It is added to the plan that the function described, in
every operator through which a row goes as one. What puts rows together cannot carry it.
"""

import logging
from typing import TYPE_CHECKING, Any, Final

from dsp.spark.failures import explained

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["PLACE", "carried", "hidden", "multiplies", "placed", "taken_out", "with_hidden"]

logger = logging.getLogger(__name__)

PLACE: Final = "dsp place"
"""Name of the column: the place of the record in the batch."""

# Logical operators that give each row of theirs with columns of the row below.
_THROUGH = {
    "Filter",
    "Generate",
    "Sort",
    "GlobalLimit",
    "LocalLimit",
    "Window",
    "BatchEvalPython",
    "ArrowEvalPython",
    "SubqueryAlias",
    "Repartition",
    "RepartitionByExpression",
}
# Joins whose rows have no record on one side are no rows of that side.
_ALWAYS = {"INNER", "CROSS", "LEFT SEMI", "LEFT ANTI"}
_ON_THE_LEFT, _ON_THE_RIGHT = "LEFT OUTER", "RIGHT OUTER"


def placed(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Give a batch with the place of each record as a last column."""
    import pyarrow as pa

    return hidden(batch, PLACE, pa.array(range(batch.num_rows), pa.int64()))


def hidden(batch: "pa.RecordBatch", name: str, column: "pa.Array") -> "pa.RecordBatch":
    """Give a batch with one more column, the last one."""
    import pyarrow as pa

    schema = batch.schema.append(pa.field(name, column.type))
    return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)


def with_hidden(struct: "StructType", name: str, kind: str) -> "StructType":
    """Give the columns of a batch and one more."""
    from pyspark.sql.types import StructType

    return StructType([*struct.fields]).add(name, kind)


def carried(made: "DataFrame", source: "DataFrame") -> "DataFrame | None":
    """Give what a function made with the last column of ``source`` as its last one, too.

    Args:
        made: by the function, of columns of ``source``.
        source: the batch, and a column that the function was not shown.

    Returns:
        None if rows of ``made`` are not each made of one record, or nobody can tell.
    """
    session: Any = made.sparkSession
    if not hasattr(made, "_jdf"):
        return None  # Spark Connect: the plan is elsewhere
    from py4j.protocol import Py4JError

    try:
        place = source._jdf.queryExecution().analyzed().output().last()
        # Names of subqueries are gone there, and views and common tables are put in place.
        plan = _carry(made._jdf.queryExecution().optimizedPlan(), place, session._jvm)
        if plan is None:
            return None
        # Others may have added columns before this one.
        columns = made._jdf.queryExecution().optimizedPlan().output().appended(place)
        whole = session._jvm.org.apache.spark.sql.catalyst.plans.logical.Project(columns, plan)
        rows = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(
            session._jsparkSession, whole
        )
    except (Py4JError, TypeError) as error:  # TypeError: a class is not there in this Spark
        logger.info("records of rows are not followed: %s", explained(error))
        return None
    from pyspark.sql import DataFrame

    return DataFrame(rows, session)


def multiplies(made: "DataFrame") -> bool:
    """Whether several rows may be made of one record."""
    return _has(made._jdf.queryExecution().optimizedPlan(), {"Generate", "Join"})


def _has(node: Any, names: set[str]) -> bool:  # noqa: ANN401 - of Java
    children = node.children()
    below = (children.apply(place) for place in range(children.size()))
    return node.nodeName() in names or any(_has(child, names) for child in below)


def taken_out(made: "pa.Table") -> "tuple[pa.Table, list[int]]":
    """Give a result without the column of places, and what was in it."""
    last = made.num_columns - 1
    return made.remove_column(last), made.column(last).to_pylist()


def _carry(node: Any, place: Any, jvm: Any) -> Any:  # noqa: ANN401 - of Java
    """Give a node that has the column among what it gives; None if that cannot be."""
    if node.outputSet().contains(place):
        return node
    name = node.nodeName()
    if name == "Project":
        below = _carry(node.child(), place, jvm)
        if below is None:
            return None
        columns = node.projectList().appended(place)
        return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(columns, below)
    if name == "Join":
        return _carry_join(node, place, jvm)
    if name not in _THROUGH:
        return None
    return _with_child(node, 0, place, jvm)


def _carry_join(node: Any, place: Any, jvm: Any) -> Any:  # noqa: ANN401
    kind = node.joinType().sql()
    if kind in _ALWAYS or kind == _ON_THE_LEFT:
        made = _with_child(node, 0, place, jvm)
        if made is not None:
            return made
    if kind in ("INNER", "CROSS", _ON_THE_RIGHT):
        return _with_child(node, 1, place, jvm)
    return None


def _with_child(node: Any, which: int, place: Any, jvm: Any) -> Any:  # noqa: ANN401
    children = node.children()
    below = _carry(children.apply(which), place, jvm)
    if below is None:
        return None
    made = node.withNewChildren(children.updated(which, below))
    return made if made.outputSet().contains(place) else None
