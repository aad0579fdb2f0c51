"""Apache Spark: stages of a pipeline that run on it, bodies as its functions, whole graphs.

An extra: ``pip install 'dsp[spark]'``. Importing this package loads neither PySpark nor Java.
"""

from typing import TYPE_CHECKING

from dsp.lazy import lazy_names

if TYPE_CHECKING:
    from dsp.spark.errors import (
        JobFailed,
        RecordFailed,
        SchemaMismatch,
        SparkConflict,
        SparkError,
        SparkUnavailable,
        SparkUnreachable,
    )
    from dsp.spark.failures import FailedRecord, failed_record
    from dsp.spark.functions import map_in_arrow, pandas_udf, udf
    from dsp.spark.graph import GraphRun, run_graph
    from dsp.spark.session import Lease, SparkSettings, hold
    from dsp.spark.stage_body import SparkStage
    from dsp.spark.stages import column, sql, stage

__all__ = [
    "map_in_arrow",
    "pandas_udf",
    "udf",
    "failed_record",
    "FailedRecord",
    "run_graph",
    "GraphRun",
    "stage",
    "sql",
    "column",
    "SparkStage",
    "SparkSettings",
    "Lease",
    "hold",
    "SparkError",
    "SparkUnavailable",
    "SparkConflict",
    "SparkUnreachable",
    "SchemaMismatch",
    "RecordFailed",
    "JobFailed",
]

_HOMES = {
    "map_in_arrow": "functions",
    "pandas_udf": "functions",
    "udf": "functions",
    "failed_record": "failures",
    "FailedRecord": "failures",
    "run_graph": "graph",
    "GraphRun": "graph",
    "stage": "stages",
    "sql": "stages",
    "column": "stages",
    "SparkStage": "stage_body",
    "SparkSettings": "session",
    "Lease": "session",
    "hold": "session",
    "SparkError": "errors",
    "SparkUnavailable": "errors",
    "SparkConflict": "errors",
    "SparkUnreachable": "errors",
    "SchemaMismatch": "errors",
    "RecordFailed": "errors",
    "JobFailed": "errors",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
