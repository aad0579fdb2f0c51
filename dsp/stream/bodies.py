"""What a body may be beyond a function: one that is dear to call, and tells so."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsp.errors import DspError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["BatchFailed", "BulkBody", "Traced"]


class BatchFailed(DspError):
    """Raised by a body: the batch failed as a whole, and no record of it is to blame.

    It is tried again as a whole if the error is ``retryable``, and never record by record.
    """


@dataclass(frozen=True, slots=True)
class Traced:
    """Columns that a body made, and of which record it made each row.

    So every row has an identity that depends on its record alone, and not on what else was in the
    batch: it is known again when the record comes again in another batch.

    Attributes:
        values: the columns.
        parents: for each row the place of its record in the batch.
    """

    values: "pa.RecordBatch | pa.Table"
    parents: Sequence[int]


class BulkBody(ABC):
    """A body whose calls cost much each, and little for each record: batches that wait are put
    together for it, and it says how many records to a call.

    It is opened before an instance calls it first and closed when the instance ends: as often as
    there are instances in a process, which share it. A batch on which it raises is halved again and
    again until the guilty records are alone. All methods but the properties run in worker threads.

    Attributes:
        threads: calls of an instance at the same time, where the operator does not say it.
        most_records: of a call, ever; an instance keeps room for so many and for those after them.
    """

    threads: int = 1
    most_records: int

    @property
    @abstractmethod
    def records_at_once(self) -> int:
        """Records that a call should have now, if so many wait."""

    @property
    @abstractmethod
    def capacity(self) -> float | None:
        """Records per second of one thread with such calls; None as long as that is not known.

        What a call takes for the few records of a light load would tell much less.
        """

    @abstractmethod
    def open(self) -> None:
        """An instance begins."""

    @abstractmethod
    def close(self) -> None:
        """An instance that was opened is over, and no call of it is under way."""

    @abstractmethod
    def __call__(self, values: Any) -> Any:  # noqa: ANN401 - columns, or a list
        """Process a batch.

        Raises:
            BatchFailed: it failed for a reason that is not in its records.
        """

    def process(self, values: Any) -> Any:  # noqa: ANN401
        """Process a batch, and tell of which record each row was made if that is known.

        Returns:
            A ``Traced``, or what a call gives.

        Raises:
            BatchFailed: it failed for a reason that is not in its records.
        """
        return self(values)
