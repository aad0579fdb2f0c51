"""What people read of the errors of Spark: the traceback of a worker, without what is around it."""

import pytest

from dsp.spark import RecordFailed
from dsp.spark.failures import python_traceback
from dsp.spark.stage_faults import translated

TRACEBACK = """Traceback (most recent call last):
  File "app.py", line 34, in checked
    raise ValueError(f"nobody pays for trip {number}")
ValueError: nobody pays for trip 123"""


@pytest.mark.parametrize(
    "after",
    [
        "",
        "\n",
        "\n\nmore",
        "\n SQLSTATE: 38000\n",
        "\n\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)",
        "\n\nDriver stacktrace:",
        "\nJVM stacktrace:\norg.apache.spark.SparkException",
    ],
)
def test_the_traceback_of_a_worker_is_found(after: str) -> None:
    text = f"Job aborted due to stage failure: Task 0 in stage 1\n{TRACEBACK}{after}"
    assert python_traceback(text) == TRACEBACK
    failed = translated(RuntimeError(text), "checked", "id int64")
    assert isinstance(failed, RecordFailed)
    assert str(failed) == "checked: ValueError: nobody pays for trip 123"
    assert TRACEBACK in failed.__notes__[0]
