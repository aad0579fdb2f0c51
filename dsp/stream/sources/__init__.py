"""Where records come from.

The names below are loaded on first use: a Kafka topic and a Parquet file need extras.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsp.stream.sources.base import (
        AsyncIterableSource,
        Chunk,
        IterableSource,
        Position,
        QueueSource,
        Source,
        SourceContext,
        Unreadable,
    )
    from dsp.stream.sources.csv_rows import CsvSource
    from dsp.stream.sources.journaled import Journaled
    from dsp.stream.sources.kafka import KafkaSource
    from dsp.stream.sources.lines import JsonLinesSource, LinesSource
    from dsp.stream.sources.parquet import ParquetSource
    from dsp.stream.sources.tcp import TcpLinesSource

__all__ = [
    "Source",
    "SourceContext",
    "Chunk",
    "Unreadable",
    "Position",
    "IterableSource",
    "AsyncIterableSource",
    "QueueSource",
    "LinesSource",
    "JsonLinesSource",
    "CsvSource",
    "ParquetSource",
    "TcpLinesSource",
    "KafkaSource",
    "Journaled",
]

_HOMES = {
    "LinesSource": "lines",
    "JsonLinesSource": "lines",
    "CsvSource": "csv_rows",
    "ParquetSource": "parquet",
    "TcpLinesSource": "tcp",
    "KafkaSource": "kafka",
    "Journaled": "journaled",
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
