"""What Spark raises, told apart: a record is to blame, the stage is, or Spark itself."""

import re

from dsp.spark.errors import JobFailed, RecordFailed, SchemaMismatch, SparkError
from dsp.spark.failures import python_traceback

__all__ = ["translated"]

# Spark's name for its own kinds of error, as "[DIVIDE_BY_ZERO] Division by zero. ..."
_CONDITION = re.compile(r"^\[[A-Z_.0-9]+\].*?(?=\n|$)", re.MULTILINE)


def translated(error: Exception, where: str, columns: str) -> SparkError:
    """Give our error for one that came out of Spark.

    Args:
        error: of building a plan or running it.
        where: which stage.
        columns: names and types of the batch.
    """
    from pyspark import errors

    if isinstance(error, SparkError):
        return error
    text = str(error)
    if traceback := python_traceback(text):
        lines = traceback.splitlines()
        failed = RecordFailed(f"{where}: {lines[-1]}")
        failed.add_note("In a Python worker of Spark:\n" + traceback)
        return failed
    if isinstance(error, errors.AnalysisException):
        return SchemaMismatch(f"{where}: {_brief(text)} The batch has {columns}")
    # Raised by an operator on a value: a division, a cast, a date.
    of_values = (
        errors.ArithmeticException,
        errors.ArrayIndexOutOfBoundsException,
        errors.DateTimeException,
        errors.NumberFormatException,
        errors.SparkRuntimeException,
        errors.PythonException,
    )
    if isinstance(error, of_values):
        return RecordFailed(f"{where}: {_brief(text)}")
    if isinstance(error, TypeError | ValueError | AttributeError | KeyError | NameError):
        return SchemaMismatch(  # the user's function raised, before Spark had anything to do
            f"{where}: {type(error).__name__}: {_brief(text)} The batch has {columns}"
        )
    return JobFailed(f"{where}: {type(error).__name__}: {_brief(text)}")


def _brief(text: str) -> str:
    """Give what a person wants to know of Spark's message: no plan, no stack."""
    found = _CONDITION.search(text)
    line = found[0] if found else next((each for each in text.splitlines() if each.strip()), text)
    return line if line.endswith(".") else f"{line}."
