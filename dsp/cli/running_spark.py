"""Runs a pipeline on Spark as a program: signals, views, faults."""

import signal
import threading
from typing import TYPE_CHECKING, Any

from dsp.cli.live import View
from dsp.cli.running import Outcome
from dsp.errors import ConfigError, DspError
from dsp.stream.history import History

if TYPE_CHECKING:
    from dsp.config import Config
    from dsp.spark import SparkSettings

__all__ = ["run_on_spark"]

REFRESH = 0.25


def run_on_spark(
    reference: str, config: "Config", settings: "SparkSettings", view: View
) -> Outcome:
    """Run a pipeline on Spark until its sources are over or a signal comes.

    One SIGINT or SIGTERM drains: sources stop, what they gave reaches the sinks. Another one breaks
    off: what was under way comes again in the next run, if there is a ``stream.state_directory``.

    Args:
        reference: ``package.module:name`` of the pipeline.
        config: settings.
        settings: which Spark.
        view: is shown how it goes.

    Raises:
        ConfigError: the pipeline or the settings are wrong, or Spark cannot run it.
    """
    return _Program(reference, config, settings, view).run()


class _Program:
    def __init__(
        self, reference: str, config: "Config", settings: "SparkSettings", view: View
    ) -> None:
        from dsp.spark.graph import run_graph

        self._view = view
        self._signals = 0
        self._lock = threading.Lock()
        self._run = run_graph(reference, config, settings, on_report=self._reported)
        graph = self._run.graph
        self._outcome = Outcome(self._run.summary, History(graph), batches=0)
        self._outcome.master = settings.address.text
        self._outcome.bodies = {sink.name: sink.body for sink in graph.sinks()}

    def run(self) -> Outcome:
        watched = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._signal) for number in watched}
        outcome = self._outcome
        try:
            self._view.say(f"starting Spark on {outcome.master}")
            with self._run as run:
                # PySpark took the signal for itself when it started.
                for number in watched:
                    signal.signal(number, self._signal)
                if self._signals:
                    run.stop()
                run.join()
                outcome.batches = run.batches
        except ConfigError:
            raise
        except DspError as error:
            outcome.faults.append(str(error))
        except KeyboardInterrupt:
            outcome.stopped = True
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self._view.show(outcome.summary, outcome.history)
        return outcome

    def _signal(self, number: int, frame: object) -> None:
        self._signals += 1
        if self._signals > 1:
            raise KeyboardInterrupt
        self._view.say("stopping: what is under way is finished; once more to stop at once")
        self._run.stop()

    def _reported(self, report: dict[str, Any]) -> None:
        with self._lock:  # the thread of a batch reports, and so does the one that waits
            self._outcome.history.add(report)
            self._view.note(f"{self._run.batches} batches")
            self._view.show(self._outcome.summary, self._outcome.history)
