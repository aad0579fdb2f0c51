"""The plans of a stage: built for the columns of a batch, and used again where that is safe."""

import gc
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from dsp.spark import stage_reuse
from dsp.spark.errors import SparkError
from dsp.spark.stage_faults import translated
from dsp.spark.stage_feed import FileFeed
from dsp.spark.stage_lineage import PLACE, carried, placed, taken_out, with_hidden
from dsp.spark.stage_schema import arrow_schema, as_struct, checked, fitted, spark_schema
from dsp.stream.bodies import Traced

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from dsp.spark.session import Lease

__all__ = ["Plan", "Plans", "Recipe"]

logger = logging.getLogger(__name__)

# Jobs that build a plan each leave objects on both sides that only a full collection finds.
JOBS_PER_COLLECTION = 50


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a stage does.

    Attributes:
        name: for messages.
        function: makes a DataFrame of one.
        takes: columns that it wants; None for those of each batch.
        gives: columns that it gives; None for whatever comes out.
        reuse: whether a plan may be used again where that was found to be safe.
        refresh: seconds after which a plan is built anew; None for never.
    """

    name: str
    function: "Callable[[DataFrame], DataFrame]"
    takes: Any
    gives: Any
    reuse: bool
    refresh: float | None


class Plan(ABC):
    """Makes columns of columns. Not for several threads at once.

    Args:
        make: the function of the stage.
    """

    built: float = 0.0

    def __init__(self, make: "Callable[[DataFrame], DataFrame]") -> None:
        self._make = make
        self._follows = True

    @abstractmethod
    def run(self, batch: "pa.RecordBatch") -> "Traced | pa.Table":
        """Run a job for a batch; tell of which record each row was made, if that can be told."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of what it holds."""

    def _described(self, source: "DataFrame") -> "DataFrame":
        """Give what the function makes of a batch with places, with the places if possible."""
        return self._with_places(self._make(source.drop(PLACE)), source)

    def _with_places(self, made: "DataFrame", source: "DataFrame") -> "DataFrame":
        followed = carried(made, source) if self._follows else None
        self._follows = followed is not None
        return made if followed is None else followed

    def _result(self, made: "DataFrame") -> "Traced | pa.Table":
        table = made.toArrow()
        return Traced(*taken_out(table)) if self._follows else table


class Sent(Plan):
    """A plan for every job, the batch sent along with it: works wherever the cluster is."""

    def __init__(
        self, lease: "Lease", make: "Callable[[DataFrame], DataFrame]", struct: "StructType"
    ) -> None:
        super().__init__(make)
        self._session = lease.session
        self._struct = with_hidden(struct, PLACE, "long")

    def run(self, batch: "pa.RecordBatch") -> "Traced | pa.Table":
        import pyarrow as pa

        # Spark Connect finds no columns in a table without rows, unless it is told them.
        table = pa.Table.from_batches([placed(batch)])
        source = self._session.createDataFrame(table, self._struct)
        try:
            return self._result(self._described(source))
        finally:
            _forget(source)


class Read(Plan):
    """A plan that reads the batch from a file of this machine; for each job, or once for all."""

    def __init__(
        self,
        lease: "Lease",
        make: "Callable[[DataFrame], DataFrame]",
        struct: "StructType",
        tasks: int,
        *,
        reuse: bool,
        name: str,
    ) -> None:
        super().__init__(make)
        self._feed = FileFeed(tasks)
        numbers = _numbers(lease.session, tasks)
        self._source = numbers.mapInArrow(self._feed.reader(), with_hidden(struct, PLACE, "long"))
        self._kept: DataFrame | None = None
        if reuse:
            made = self._make(self._source.drop(PLACE))
            self._kept = self._with_places(made, self._source)
            # In the one with places the present time is a number already.
            if fault := stage_reuse.fault(made) or stage_reuse.fault(self._kept):
                logger.info("%s: a plan for every job, because %s", name, fault)
                self._kept = None
                _forget(self._source)

    def run(self, batch: "pa.RecordBatch") -> "Traced | pa.Table":
        self._feed.put(placed(batch))
        if self._kept is not None:
            return self._result(self._kept)
        try:
            return self._result(self._described(self._source))
        finally:
            _forget(self._source)

    def close(self) -> None:
        self._feed.close()


class Plans:
    """The plans of a stage on one session, as many as there are jobs at the same time.

    Safe to use from several threads.

    Args:
        lease: of the session.
        recipe: what the stage does.
        took: told how many seconds a job with so many records took.
    """

    def __init__(self, lease: "Lease", recipe: Recipe, took: Callable[[int, float], None]) -> None:
        self._lease = lease
        self._recipe = recipe
        self._took = took
        self._idle: dict[Any, list[Plan]] = {}
        self._lock = Lock()
        self._jobs = 0
        session = lease.session
        self._takes = None if recipe.takes is None else as_struct(recipe.takes, session)
        self._gives = None if recipe.gives is None else as_struct(recipe.gives, session)

    def run(self, batch: "pa.RecordBatch") -> "Traced | pa.Table":
        """Run a job for a batch.

        Raises:
            SparkError: what went wrong, told apart.
        """
        where = self._recipe.name
        columns = ", ".join(f"{field.name} {field.type}" for field in batch.schema)
        try:
            struct = self._takes or spark_schema(batch.schema)
            schema = arrow_schema(struct)
            batch = fitted(batch, schema, where)
            plan = self._taken(schema) or self._built(struct, batch)
        except Exception as error:
            raise translated(error, where, columns) from _cause(error)
        started = time.perf_counter()
        try:
            made = plan.run(batch)
        except Exception as error:
            plan.close()  # Spark keeps the failure of a broadcast, too
            raise translated(error, where, columns) from _cause(error)
        self._took(batch.num_rows, time.perf_counter() - started)
        self._give_back(schema, plan)
        return made

    def close(self) -> None:
        """Let go of all plans. No job may be under way."""
        for plans in self._idle.values():
            for plan in plans:
                plan.close()
        self._idle.clear()

    def _taken(self, schema: "pa.Schema") -> Plan | None:
        stale = []
        plan = None
        with self._lock:
            idle = self._idle.get(schema, [])
            while idle and plan is None:
                candidate = idle.pop()
                plan = None if self._is_stale(candidate) else candidate
                stale += [] if plan else [candidate]
        for each in stale:
            each.close()
        return plan

    def _is_stale(self, plan: Plan) -> bool:
        refresh = self._recipe.refresh
        return refresh is not None and time.monotonic() - plan.built >= refresh

    def _give_back(self, schema: "pa.Schema", plan: Plan) -> None:
        with self._lock:
            self._idle.setdefault(schema, []).append(plan)
            self._jobs += 1
            collect = self._jobs % JOBS_PER_COLLECTION == 0
        if collect:
            gc.collect()

    def _built(self, struct: "StructType", batch: "pa.RecordBatch") -> Plan:
        recipe = self._recipe

        def make(frame: "DataFrame") -> "DataFrame":
            return checked(recipe.function(frame), self._gives, recipe.name)

        plan: Plan
        if self._lease.address.local:
            # One task: several jobs at a time use the cores better than several tasks of a job.
            plan = Read(self._lease, make, struct, 1, reuse=recipe.reuse, name=recipe.name)
        else:
            plan = Sent(self._lease, make, struct)
        plan.built = time.monotonic()
        try:
            plan.run(batch.slice(0, 0))  # starts workers, broadcasts tables, compiles
        except BaseException:
            plan.close()
            raise
        return plan


def _numbers(session: Any, count: int) -> "DataFrame":  # noqa: ANN401
    """Give a row with a number to each of some tasks.

    ``session.range`` would tell Spark how little it holds: a join would then keep the batch, of
    which it knows nothing else, and let the static table through.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.types import IntegerType, StructType

    jvm, context = session._jvm, session.sparkContext
    rows = jvm.java.util.ArrayList()
    for number in range(count):
        row = context._gateway.new_array(jvm.Object, 1)
        row[0] = number
        rows.append(jvm.org.apache.spark.sql.RowFactory.create(row))
    kind = session._jsparkSession.parseDataType(StructType().add("number", IntegerType()).json())
    made = session._jsparkSession.createDataFrame(context._jsc.parallelize(rows, count), kind)
    return DataFrame(made, session)


def _forget(source: "DataFrame") -> None:
    """Let go of what a function kept of a batch with ``cache``: the next batch is another one."""
    if hasattr(source, "_jdf"):
        manager = source.sparkSession._jsparkSession.sharedState().cacheManager()
        manager.uncacheQuery(source._jdf, True)


def _cause(error: Exception) -> Exception | None:
    # The stack of Java says nothing to the user, and dead letters carry the cause along.
    return error.__cause__ if isinstance(error, SparkError) else None  # type: ignore[return-value]
