"""Where records go.

The names below are loaded on first use: a Kafka topic and Parquet files need extras.
"""

from typing import TYPE_CHECKING

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
    "FileSink": "files",
    "JsonLinesSink": "files",
    "CsvSink": "files",
    "ParquetSink": "parquet",
    "JournalSink": "journal",
    "KafkaSink": "kafka",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'base')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
