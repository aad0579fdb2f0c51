"""Whether a plan may run again with another batch under it. Looks at the plan, not at its text.

Spark keeps what a plan has exchanged: a second run with a shuffle of the batch in it would give
the first result again. Nor may time or chance be in it, which Spark fixes when a plan is made. So a
plan is used again only if everything between the batch and the result is known to go row by row.
"""

from collections.abc import Iterator
from typing import Any

from dsp.spark.stage_feed import READER

__all__ = ["fault"]

# Physical operators that look at one row, or at one batch of rows, and keep nothing.
NARROW = {
    "Project",
    "Filter",
    "Generate",
    "Expand",
    "Union",
    "Coalesce",
    "DeserializeToObject",
    "MapElements",
    "MapPartitions",
    "SerializeFromObject",
    "MapInArrow",
    "PythonMapInArrow",
    "MapInPandas",
    "ArrowEvalPython",
    "BatchEvalPython",
    "WholeStageCodegen",
    "InputAdapter",
    "ColumnarToRow",
    "RowToColumnar",
    "CollectMetrics",
}
# Joins that keep one side, the static one, and let the other one through.
BROADCASTS = {"BroadcastHashJoin", "BroadcastNestedLoopJoin"}
# Columns that Spark writes out when a node is asked what it is.
MANY = 1000


def fault(frame: Any) -> str:  # noqa: ANN401 - a DataFrame of a session in this process
    """Say why the plan of a DataFrame may not run again; empty if it may."""
    execution = frame._jdf.queryExecution()
    analysed = execution.analyzed()
    jvm = frame.sparkSession._jvm
    pattern = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    if analysed.containsPattern(pattern.CURRENT_LIKE()):
        return "the present time is in it"
    if not analysed.deterministic():
        return "chance is in it"
    # Exchanges are added later; what needs one is in this plan already, and not among the narrow.
    return _fault(execution.sparkPlan())


def _fault(node: Any) -> str:  # noqa: ANN401 - a physical operator in the Java virtual machine
    name = node.nodeName()
    if any(_has_batch(plan) for plan in _each(node.subqueries())):
        return f"the batch is in a subquery of {name}"
    if not _has_batch(node) or READER in node.verboseString(MANY):
        return ""
    if name in BROADCASTS:
        kept = node.left() if node.buildSide().toString() == "BuildLeft" else node.right()
        if _has_batch(kept):
            return f"{name} keeps the batch"
    elif name not in NARROW:
        return f"{name} looks at more than a row"
    return next((why for child in _each(node.children()) if (why := _fault(child))), "")


def _has_batch(node: Any) -> bool:  # noqa: ANN401
    if READER in node.verboseString(MANY):
        return True
    below = [*_each(node.children()), *_each(node.subqueries())]
    # What is cached was computed once, whatever it was computed of.
    if node.getClass().getSimpleName() == "InMemoryTableScanExec":
        below.append(node.relation().cachedPlan())
    return any(_has_batch(child) for child in below)


def _each(items: Any) -> Iterator[Any]:  # noqa: ANN401 - a Seq
    for place in range(items.size()):
        yield items.apply(place)
