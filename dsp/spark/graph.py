"""A whole pipeline as one Structured Streaming query."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from dsp.errors import ClosedError, ConfigError, DspError
from dsp.spark.errors import JobFailed, SparkConflict
from dsp.spark.failures import explained
from dsp.spark.feeders import Feeder
from dsp.spark.graph_batch import BatchRunner, Counts
from dsp.spark.graph_plan import check_plan, is_topic, plan_for
from dsp.spark.graph_report import Reporter
from dsp.spark.graph_state import RunState
from dsp.spark.parcels import DDL
from dsp.spark.session import SparkSettings, hold
from dsp.spark.staging import Staging
from dsp.stream.ends import check_ends
from dsp.stream.pipeline import Pipeline
from dsp.stream.processes import load_pipeline
from dsp.stream.summary import Summary

if TYPE_CHECKING:
    from types import TracebackType

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from dsp.config import Config
    from dsp.spark.session import Lease

__all__ = ["GraphRun", "run_graph"]

logger = logging.getLogger(__name__)

FILES_AT_ONCE = 4
"""Files of rows that each task may have in one batch of Spark."""
STOP_PATIENCE = 60.0
_POLL = 0.2


class _Stopped(Exception):
    """Ends the query before a batch that is not wanted any more."""


def run_graph(
    pipeline: Pipeline | str,
    config: "Config | None" = None,
    settings: SparkSettings | None = None,
    *,
    on_report: Callable[[dict[str, Any]], None] | None = None,
) -> "GraphRun":
    """Compile a pipeline for Spark; use the result as a context manager.

    >>> from dsp.spark import SparkSettings, run_graph
    >>> def once(job):
    ...     with run_graph(job, settings=SparkSettings("local[2]")) as run:
    ...         return run.join()

    Sources are read and sinks are written as on the mesh, by the same objects; bodies run on the
    workers of Spark. With ``stream.state_directory`` a run that was killed goes on where it was: a
    batch of Spark is written whole or not at all to sinks that remember.

    Args:
        pipeline: the description, or ``package.module:name`` of one.
        config: settings; of ``[stream]`` Spark takes ``retries`` and ``state_directory``.
        settings: which Spark.
        on_report: called with figures, after every batch and several times a second.

    Raises:
        ConfigError: the pipeline or the settings are wrong, or Spark cannot run it; every fault is
            told.
    """
    if config is None:
        from dsp.config import Config

        config = Config()
    described = load_pipeline(pipeline) if isinstance(pipeline, str) else pipeline
    return GraphRun(described, config, settings or SparkSettings(), on_report)


class GraphRun:
    """A pipeline that runs on Spark while its ``with`` block lasts.

    Leaving the block stops the sources, lets what they gave reach the sinks, and ends the query.

    Attributes:
        summary: what was counted so far.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        config: "Config",
        settings: SparkSettings,
        on_report: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        from dsp.spark.java import check_pyspark

        check_pyspark()
        self.graph = pipeline.graph()
        check_ends(self.graph, config.stream.delivery)
        self._config = config
        self._settings = settings
        check_plan(self.graph, settings.address)
        self.summary = Summary(self.graph)
        self._on_report = on_report
        self._lease: Lease | None = None
        self._state: RunState | None = None
        self._runner: BatchRunner | None = None
        self._counts = Counts()
        self._reporter: Reporter | None = None
        self._query: StreamingQuery | None = None
        self._feeders: dict[str, Feeder] = {}
        self._wake = threading.Event()
        self._halt = threading.Event()
        self._stopping = False
        self._error: BaseException | None = None

    # -- for users ------------------------------------------------------------------------

    @property
    def batches(self) -> int:
        """Batches of Spark that are done."""
        return self._counts.batches

    def join(self) -> Summary:
        """Wait until every source is over and all that came of it has reached the sinks.

        Raises:
            DspError: a source, a sink or Spark failed.
        """
        while not self._over():
            self._wake.wait(_POLL)
            self._wake.clear()
            self._report()
        self._finish()
        return self.summary

    def stop(self) -> None:
        """Let the sources stop; ``join`` then returns when what they gave is done."""
        self._stopping = True
        for feeder in self._feeders.values():
            feeder.stop()
        self._wake.set()

    def __enter__(self) -> Self:
        if self._lease is not None:
            raise ClosedError("a run runs once; call run_graph again")
        try:
            self._start()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: "TracebackType | None",
    ) -> None:
        try:
            if exc is None and self._query is not None:
                self.stop()
                self.join()
        finally:
            self._close()

    # -- life -----------------------------------------------------------------------------

    def _start(self) -> None:
        graph, config = self.graph, self._config
        names = [source.name for source in graph.sources()]
        self._state = RunState(config.stream.state_directory, graph.name, names)
        self._lease = hold(self._with_jars())
        session = self._lease.session
        self._check_connector()
        partitions = max(1, session.sparkContext.defaultParallelism)
        plan = plan_for(graph, session, retries=config.stream.retries, partitions=partitions)
        self._runner = BatchRunner(plan, self._state.stream, config.stream.retries, self._counts)
        self._runner.open()
        self._reporter = Reporter(graph, self._counts)
        self._rows = self._sources(partitions)
        for feeder in self._feeders.values():
            feeder.start()
        if not self._only_ends():
            self._query = self._started(ending=False)

    def _check_connector(self) -> None:
        assert self._lease is not None
        conf = self._lease.session.sparkContext.getConf()
        jars = [conf.get(name, "") or "" for name in ("spark.jars", "spark.jars.packages")]
        if self._has_topics() and not any("spark-sql-kafka" in each for each in jars):
            raise SparkConflict(
                f"pipeline {self.graph.name!r} on Spark: the Spark session of this process was "
                "made without Spark's Kafka connector: stop it before, or make it with "
                "spark.jars of dsp.spark.graph_topics.connector_jars()"
            )

    def _has_topics(self) -> bool:
        return any(is_topic(end.body) for end in (*self.graph.sources(), *self.graph.sinks()))

    def _with_jars(self) -> SparkSettings:
        if not self._has_topics():
            return self._settings
        from dataclasses import replace

        from dsp.spark.graph_topics import connector_jars

        jars = ",".join(connector_jars())
        before = self._settings.options.get("spark.jars")
        options = dict(self._settings.options) | {
            "spark.jars": f"{before},{jars}" if before else jars
        }
        return replace(self._settings, options=options)

    def _sources(self, partitions: int) -> "DataFrame":
        from functools import reduce

        assert self._lease is not None
        assert self._state is not None
        session = self._lease.session
        frames: list[DataFrame] = []
        for operator in self.graph.sources():
            if is_topic(operator.body):
                from dsp.spark.graph_topics import read_topic

                frames.append(read_topic(session, operator))
                continue
            staging = Staging(self._state.of_source(operator.name))
            self._feeders[operator.name] = Feeder(operator, staging, self._wake.set)
            reader = session.readStream.schema(DDL)
            frames.append(
                reader.option("maxFilesPerTrigger", FILES_AT_ONCE * partitions)
                # Rows that waited while nothing ran are not too old.
                .option("maxFileAge", "36500d")
                .option("cleanSource", "delete")
                .parquet(str(staging.rows))
            )
        return reduce(lambda one, other: one.union(other), frames)

    def _only_ends(self) -> bool:
        """Whether all that is read is there already."""
        return not self._feeders and all(each.body.until_end for each in self.graph.sources())

    def _started(self, *, ending: bool) -> "StreamingQuery":
        assert self._state is not None
        writer = self._rows.writeStream.queryName(self.graph.name).foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self._state.checkpoint)
        writer = writer.trigger(availableNow=True) if ending else writer
        return writer.start()

    def _batch(self, rows: "DataFrame", number: int) -> None:
        """Called by Spark, in a thread of its own."""
        if self._halt.is_set():
            raise _Stopped
        assert self._runner is not None
        before = dict(self._counts.taken)
        try:
            self._runner.run(rows, number)
        except BaseException as error:
            self._error = error  # Spark would give its text only
            raise
        for name, feeder in self._feeders.items():
            feeder.taken(self._counts.taken[name] - before.get(name, 0))
        self._report()

    def _report(self) -> None:
        assert self._reporter is not None
        records = {name: feeder.records for name, feeder in self._feeders.items()}
        assert self._runner is not None
        report = self._reporter.report(records, self._runner.repeats)
        self.summary.add(report)
        if self._on_report is not None:
            self._on_report(report)

    def _over(self) -> bool:
        """Whether nothing more comes of the sources."""
        if self._query is not None and not self._query.isActive:
            self._failed()
        errors = [feeder.error for feeder in self._feeders.values() if feeder.error is not None]
        if errors and not self._stopping:
            self.stop()
        if not all(feeder.over for feeder in self._feeders.values()):
            return False
        endless = [s for s in self.graph.sources() if is_topic(s.body) and not s.body.until_end]
        return self._stopping or not endless

    def _failed(self) -> None:
        """Raise why the query ended."""
        error = self._error
        if isinstance(error, DspError):
            raise error
        cause = error if error is not None else self._query and self._query.exception()
        raise JobFailed(f"pipeline {self.graph.name!r} on Spark: {explained(cause)}") from error

    def _finish(self) -> None:
        """Let what was read reach the sinks, and end the query."""
        topics = any(is_topic(source.body) for source in self.graph.sources())
        if self._query is not None:
            if topics:
                self._halt.set()
                self._wait_for_end(self._query)
                self._halt.clear()
                self._error = None
            else:
                self._drain(self._query)
            self._query = None
        if topics and not self._stopping:
            # What is there now, and no more.
            self._query = self._started(ending=True)
            while self._query.isActive:
                self._wake.wait(_POLL)
                self._report()
            if self._query.exception() is not None:
                self._failed()
            self._query = None
        self._report()
        assert self._reporter is not None
        self.summary.add(self._reporter.last_report())
        for feeder in self._feeders.values():
            if feeder.error is not None:
                raise _as_ours(feeder.error)

    def _drain(self, query: "StreamingQuery") -> None:
        from pyspark.errors import PySparkException

        done = threading.Event()

        def wait() -> None:
            try:
                query.processAllAvailable()
            except PySparkException:
                logger.debug("the query failed while it was drained", exc_info=True)
            finally:
                done.set()

        waiting = threading.Thread(target=wait, name="dsp-drains", daemon=True)
        waiting.start()
        while not done.wait(_POLL):
            self._report()
        if not query.isActive or query.exception() is not None:
            self._failed()
        query.stop()

    def _wait_for_end(self, query: "StreamingQuery") -> None:
        """See a query end between two batches; one that has nothing to do is just stopped."""
        until = time.monotonic() + STOP_PATIENCE
        while query.isActive and time.monotonic() < until:
            if not query.status["isTriggerActive"] or not query.status["isDataAvailable"]:
                break
            time.sleep(_POLL / 4)
        query.stop()

    def _close(self) -> None:
        for feeder in self._feeders.values():
            feeder.stop()
        if self._query is not None:
            self._query.stop()
            self._query = None
        for feeder in self._feeders.values():
            if not feeder.join(STOP_PATIENCE):
                logger.warning("%s: the source does not end", feeder.name)
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        if self._lease is not None:
            self._lease.release()
        if self._state is not None:
            self._state.close()


def _as_ours(error: BaseException) -> BaseException:
    if isinstance(error, DspError):
        return error
    wrapped = ConfigError if isinstance(error, OSError) else DspError
    made = wrapped(f"a source failed: {type(error).__name__}: {error}")
    made.__cause__ = error
    return made
