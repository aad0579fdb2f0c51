"""Where records go.

The names below are loaded on first use: a Kafka topic and Parquet files need extras.
"""

from typing import TYPE_CHECKING

from dsp.lazy import lazy_names

if TYPE_CHECKING:
    from dsp.stream.sinks.base import CallableSink, Collector, PartlyWritten, Sink, SinkBroken
    from dsp.stream.sinks.files import CsvSink, FileSink, JsonLinesSink
    from dsp.stream.sinks.journal import JournalSink
    from dsp.stream.sinks.kafka import KafkaSink
    from dsp.stream.sinks.parquet import ParquetSink

__all__ = [
    "Sink",
    "SinkBroken",
    "PartlyWritten",
    "CallableSink",
    "Collector",
    "FileSink",
    "JsonLinesSink",
    "CsvSink",
    "ParquetSink",
    "JournalSink",
    "KafkaSink",
]

_HOMES = {
    "Sink": "base",
    "SinkBroken": "base",
    "PartlyWritten": "base",
    "CallableSink": "base",
    "Collector": "base",
    "FileSink": "files",
    "JsonLinesSink": "files",
    "CsvSink": "files",
    "ParquetSink": "parquet",
    "JournalSink": "journal",
    "KafkaSink": "kafka",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
