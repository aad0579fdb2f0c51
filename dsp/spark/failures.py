"""What Spark says when it fails, for people: the guilty record, without plans and Java's stacks."""

import re
from dataclasses import dataclass
from typing import Any, Final

import orjson

from dsp.spark.errors import SparkError
from dsp.stream.letters import letter
from dsp.stream.steps import Failure

__all__ = ["FailedRecord", "body_failed", "explained", "failed_record", "python_traceback"]

# Errors of workers come to the driver as text, somewhere in Java's: this is found in it.
_MARKER: Final = "dsp-failed-record:"
_MARKED = re.compile(rf"{_MARKER}(\{{.*\}})", re.MULTILINE)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n.*", re.DOTALL)
# Where Java goes on after the traceback of a worker.
_AFTER = re.compile(
    r"\n\s*(?:at org\.apache\.|at java\.|JVM stacktrace|Driver stacktrace|SQLSTATE: )|\n\n"
)
_JAVA = re.compile(r"\s*(at [\w.$]+\(|\.\.\. \d+ more)")


@dataclass(frozen=True, slots=True)
class FailedRecord:
    """A record on which a body failed, on a worker of Spark.

    Attributes:
        operator: whose body it is.
        value: the record, as JSON can hold it.
        error: what the body raised.
        traceback: of the body.
    """

    operator: str
    value: Any
    error: str
    traceback: str


def body_failed(operator: str, failure: Failure) -> SparkError:
    """Make the error that a worker raises for a record."""
    told = orjson.dumps(letter(operator, operator, failure)).decode()
    return SparkError(f"{operator}: {failure.error}\n{_MARKER}{told}")


def failed_record(error: BaseException) -> FailedRecord | None:
    """Give the record that made a job of Spark fail, if a body of dsp failed on one.

    Args:
        error: what an action, or a query, raised.
    """
    match = _MARKED.search(str(error))
    if match is None:
        return None
    told = orjson.loads(match[1])
    return FailedRecord(told["operator"], told["value"], told["error"], told["traceback"])


def explained(error: object) -> str:
    """Give the part of an error of Spark that says what went wrong."""
    if isinstance(error, BaseException) and (record := failed_record(error)) is not None:
        return f"{record.operator}: {record.error}, on {record.value!r:.500}\n{record.traceback}"
    text = str(error)
    if traceback := python_traceback(text):
        return traceback
    lines = [line for line in text.splitlines() if line.strip() and not _JAVA.match(line)]
    return "\n".join(lines[:6]) if lines else repr(error)


def python_traceback(text: str) -> str:
    """Give the traceback of a Python worker in a text of Spark; empty if there is none."""
    match = _TRACEBACK.search(text)
    return _AFTER.split(match[0], maxsplit=1)[0].strip() if match else ""
