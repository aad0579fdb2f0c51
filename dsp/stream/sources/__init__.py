"""Where records come from.

The names below are loaded on first use: a Kafka topic and a Parquet file need extras.
"""

from typing import TYPE_CHECKING

from dsp.lazy import lazy_names

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
    "Source": "base",
    "SourceContext": "base",
    "Chunk": "base",
    "Unreadable": "base",
    "Position": "base",
    "IterableSource": "base",
    "AsyncIterableSource": "base",
    "QueueSource": "base",
    "LinesSource": "lines",
    "JsonLinesSource": "lines",
    "CsvSource": "csv_rows",
    "ParquetSource": "parquet",
    "TcpLinesSource": "tcp",
    "KafkaSource": "kafka",
    "Journaled": "journaled",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
