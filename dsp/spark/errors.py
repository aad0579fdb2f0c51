"""What goes wrong with Spark.

::

    SparkError (also DspError)
      SparkUnavailable                  no PySpark or no Java here, or of a wrong version
      SparkConflict (also ConfigError)  this process holds another Spark already
      SparkUnreachable*                 no master or Connect server where one was expected
      SchemaMismatch                    columns or types that are not those that were declared
      RecordFailed                      a function or an expression failed on a record
      JobFailed*                        Spark itself failed: a lost session, a lost executor

``retryable`` (marked * above) says whether the same call may succeed later. All but RecordFailed
are ``BatchFailed``: raised by a stage, they fail its batch as a whole.
"""

from dsp.errors import ConfigError, DspError
from dsp.stream.bodies import BatchFailed

__all__ = [
    "RecordFailed",
    "JobFailed",
    "SchemaMismatch",
    "SparkConflict",
    "SparkError",
    "SparkUnavailable",
    "SparkUnreachable",
]


class SparkError(DspError):
    """Base of what is raised around Spark."""


class SparkUnavailable(SparkError, BatchFailed):
    """Spark cannot run on this machine.

    Args:
        missing: what could not be had, and why.
        remedy: what to do about it.
    """

    def __init__(self, missing: str, remedy: str) -> None:
        super().__init__(f"{missing}; to have it: {remedy}")
        self.missing = missing
        self.remedy = remedy


class SparkConflict(SparkError, BatchFailed, ConfigError):
    """A process holds one Spark, and this one holds another than was asked for."""


class SparkUnreachable(SparkError, BatchFailed):
    """Nothing answers at the address of a master or a Connect server."""

    retryable = True


class SchemaMismatch(SparkError, BatchFailed):
    """Columns are missing, too many, or of other types; the message names each of them."""


class RecordFailed(SparkError):
    """A record is to blame: a function or an expression failed on it, or it has a wrong type.

    What a Python function raised on a worker of Spark is in the message, its traceback in a note.
    """


class JobFailed(SparkError, BatchFailed):
    """Spark could not run a job, by no fault of the records in it."""

    retryable = True
