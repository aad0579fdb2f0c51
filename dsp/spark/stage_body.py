"""A stage on Spark as the body of an operator.

Spark costs tens of milliseconds for a job and next to nothing for a record. So batches that wait
go into a job together, several jobs are under way at the same time, and the plan of a job is used
again where that gives the same result. How much each of these gains is in ADR 0014.
"""

import logging
from threading import Lock
from typing import TYPE_CHECKING, Any

from dsp.spark.session import hold
from dsp.spark.stage_pace import Pace
from dsp.spark.stage_plan import Plans, Recipe
from dsp.stream.bodies import BulkBody, Traced

if TYPE_CHECKING:
    import pyarrow as pa

    from dsp.spark.session import Lease, SparkSettings

__all__ = ["SparkStage"]

logger = logging.getLogger(__name__)


class SparkStage(BulkBody):
    """A body that runs on Spark; made by ``stage``, ``sql`` and ``column``.

    It takes and gives a ``pyarrow.RecordBatch``, so it goes into ``Stream.columns``. The instances
    of a process share it and its session. Called without ``open`` it opens itself.

    Args:
        recipe: what it does.
        settings: on which Spark.
        in_flight: jobs of an instance at the same time.
        most_records: of a job.
        longest: seconds that a job should take, at most, where that is not less than twice what it
            costs anyway.

    Attributes:
        recipe: what it does.
    """

    def __init__(
        self,
        recipe: Recipe,
        settings: "SparkSettings",
        *,
        in_flight: int,
        most_records: int,
        longest: float,
    ) -> None:
        self.__name__ = recipe.name
        self.threads = in_flight
        self.most_records = most_records
        self.recipe = recipe
        self._settings = settings
        self._longest = longest
        self._start()

    def _start(self) -> None:
        self._pace = Pace(self.most_records, self._longest)
        self._lock = Lock()
        self._lease: Lease | None = None
        self._plans: Plans | None = None
        self._opened = 0

    def __getstate__(self) -> dict[str, Any]:
        """Give what another process needs to have the same stage: nothing that runs."""
        running = {"_pace", "_lock", "_lease", "_plans", "_opened"}
        return {key: value for key, value in vars(self).items() if key not in running}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._start()

    @property
    def records_at_once(self) -> int:
        """Records that a job should have now: so many that what it costs anyway is a small part."""
        return self._pace.records

    @property
    def capacity(self) -> float | None:
        """Records per second, one job at a time, as jobs were lately."""
        return self._pace.capacity

    def open(self) -> None:
        """Have a session; the first one in a process takes seconds.

        Raises:
            SparkUnreachable: nobody is at the address of the master.
            SparkUnavailable: PySpark or Java is missing or of a wrong version.
        """
        self._running()
        with self._lock:
            self._opened += 1

    def close(self) -> None:
        """Let go of the session; the last one in a process stops it, if dsp made it."""
        with self._lock:
            self._opened = max(0, self._opened - 1)
            if not self._opened:
                self._let_go()

    def __call__(self, values: "pa.RecordBatch") -> "pa.Table":
        """Run a job for a batch.

        Raises:
            RecordFailed: a function or an expression failed on a record.
            SchemaMismatch: columns are not what was declared; not tried again.
            JobFailed: Spark failed; the whole batch may be tried again.
        """
        made = self.process(values)
        return made.values if isinstance(made, Traced) else made

    def process(self, values: "pa.RecordBatch") -> "Traced | pa.Table":
        """Run a job for a batch; tell of which record each row was made, if that can be told."""
        return self._running().run(values)

    def _running(self) -> Plans:
        with self._lock:
            if self._lease is not None and not self._lease.alive:
                logger.warning("%s: the Spark session is lost; another one is made", self.__name__)
                self._let_go()
            if self._plans is None:
                self._lease = hold(self._settings)
                try:
                    self._plans = Plans(self._lease, self.recipe, self._pace.took)
                except BaseException:
                    self._let_go()
                    raise
            return self._plans

    def _let_go(self) -> None:
        if self._plans is not None:
            self._plans.close()
        if self._lease is not None:
            self._lease.release()
        self._plans = self._lease = None
