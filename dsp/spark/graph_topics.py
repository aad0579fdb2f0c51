"""Kafka topics of a graph, by Spark's own connector."""

import fcntl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dsp.cache import cache_folder
from dsp.errors import ConfigError
from dsp.spark.errors import SparkUnavailable
from dsp.spark.parcels import parcels_of, unpack_ids
from dsp.stream.graph import Edge, Operator

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from dsp.stream.kafka_topic import KafkaTopic

__all__ = ["connector_jars", "read_topic", "write_letters", "write_topic", "client_settings"]

# Versions that were seen to work together, with Spark 4.2 and 4.3.
ARTIFACTS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
MOST_RECORDS = 200_000
"""Records of a topic in one batch of Spark."""
MESSAGES: Final = (
    "key binary, value binary, headers array<struct<key:string,value:binary>>, topic string"
)


def connector_jars() -> list[str]:
    """Give the jars of Spark's Kafka connector; download them if they are not in the cache.

    Raises:
        SparkUnavailable: they are not there and cannot be downloaded.
    """
    folder = cache_folder() / "spark-kafka"
    listed = folder / "jars.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            jars = listed.read_text().splitlines() if listed.exists() else []
            if not jars or not all(Path(jar).exists() for jar in jars):
                jars = _resolved(folder)
                listed.write_text("\n".join(jars) + "\n")
    except OSError as error:
        raise SparkUnavailable(
            f"the cache folder {folder} cannot be used: {error}", "set DSP_CACHE to another one"
        ) from error
    return jars


def _resolved(folder: Path) -> list[str]:
    try:
        from jgo.maven import MavenContext
    except ModuleNotFoundError as error:
        raise SparkUnavailable(
            "Spark's Kafka connector is downloaded with the package jgo", "pip install jgo"
        ) from error
    try:
        # One by one: what they say they depend on is Spark's own, or of versions that are nowhere.
        maven = MavenContext(repo_cache=folder)
        return [
            str(maven.project(group, name).at_version(version).artifact().resolve())
            for group, name, version in (artifact.split(":") for artifact in ARTIFACTS)
        ]
    # jgo lets through whatever its resolver and its HTTP library raise, with no base of its own.
    except Exception as error:
        raise SparkUnavailable(
            f"Spark's Kafka connector ({', '.join(ARTIFACTS)}) cannot be resolved: {error!r}",
            "check the network and the proxy, or copy the cache folder (DSP_CACHE) from a machine "
            "that has it",
        ) from error


def client_settings(topic: "KafkaTopic") -> dict[str, str]:
    """Give what the Java clients of a topic are told.

    Raises:
        ConfigError: a setting that they cannot be told.
    """
    settings = topic.settings
    told = {
        "kafka.bootstrap.servers": ",".join(topic.hosts),
        "kafka.request.timeout.ms": str(int(settings.request_timeout * 1000)),
        "kafka.security.protocol": settings.security_protocol,
    }
    if settings.security_protocol.startswith("SASL"):
        assert settings.password_file is not None
        try:
            secret = settings.password_file.read_text().splitlines()[0]
        except (OSError, IndexError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"transport.kafka.password_file: {settings.password_file}: {error}"
            ) from error
        module = "plain.Plain" if settings.sasl_mechanism == "PLAIN" else "scram.Scram"
        told |= {
            "kafka.sasl.mechanism": settings.sasl_mechanism,
            "kafka.sasl.jaas.config": (
                f"org.apache.kafka.common.security.{module}LoginModule required "
                f"username={_quoted(settings.username or '')} password={_quoted(secret)};"
            ),
        }
    if settings.security_protocol.endswith("SSL"):
        if settings.ca_file is not None:
            told |= {
                "kafka.ssl.truststore.type": "PEM",
                "kafka.ssl.truststore.location": str(settings.ca_file.absolute()),
            }
        if settings.certificate_file is not None:
            chain = settings.certificate_file.read_text()
            key = settings.key_file.read_text() if settings.key_file is not None else chain
            told |= {
                "kafka.ssl.keystore.type": "PEM",
                "kafka.ssl.keystore.certificate.chain": chain,
                "kafka.ssl.keystore.key": key,
            }
    return told


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def read_topic(session: "SparkSession", operator: Operator) -> "DataFrame":
    """Give a topic as a stream of rows: a record each."""
    from pyspark.sql import functions

    source = operator.body
    reader = session.readStream.format("kafka").options(**client_settings(source.topic))
    frame = (
        reader.option("subscribe", source.topic.name)
        .option("startingOffsets", source.start)
        .option("maxOffsetsPerTrigger", MOST_RECORDS)
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    return frame.select(
        functions.lit(operator.name).alias("target"),
        frame["partition"].cast("long").alias("place"),
        frame["offset"].alias("count"),
        functions.lit(b"").alias("ids"),
        frame["value"].alias("payload"),
    )


def write_topic(sink: Operator, edges: Mapping[str, Edge], made: "DataFrame") -> int:
    """Write the rows for a topic; give how many records that was."""
    rows = made.filter(made.target.isin([*edges]))
    count = rows.agg({"count": "sum"}).first()
    total = int(count[0] or 0) if count is not None else 0
    if total:
        topic, dump, key = sink.body.topic, sink.body.dump, sink.body.key
        function = _messages(dict(edges), topic.name, dump, key)
        _save(rows.mapInArrow(function, MESSAGES), topic)
    return total


def write_letters(
    sink: Operator, session: "SparkSession", letters: list[Any], ids: list[int]
) -> None:
    """Write dead letters to a topic."""
    topic, dump = sink.body.topic, sink.body.dump
    rows = [
        (None, dump(letter), [("dsp-id", f"{each:x}".encode())], topic.name)
        for letter, each in zip(letters, ids, strict=True)
    ]
    _save(session.createDataFrame(rows, MESSAGES), topic)


def _save(messages: "DataFrame", topic: "KafkaTopic") -> None:
    settings = client_settings(topic) | {
        "kafka.acks": "all",
        "kafka.enable.idempotence": "true",
        "kafka.compression.type": topic.settings.compression,
    }
    messages.write.format("kafka").options(**settings).option("includeHeaders", "true").save()


def _messages(
    edges: Mapping[str, Edge],
    topic: str,
    dump: Callable[[Any], bytes],
    key: Callable[[Any], str | bytes] | None,
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def dsp_messages(rows: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        schema = pa.schema(
            [
                ("key", pa.binary()),
                ("value", pa.binary()),
                ("headers", header),
                ("topic", pa.string()),
            ]
        )
        for batch in rows:
            for parcel in parcels_of(batch):
                values = edges[parcel.target].codec.decode(parcel.payload)
                values = values if isinstance(values, list) else values.to_pylist()
                ids = unpack_ids(parcel.ids, parcel.count)
                made = [
                    {
                        "key": _bytes(key(value)) if key is not None else None,
                        "value": dump(value),
                        "headers": [{"key": "dsp-id", "value": f"{each:x}".encode()}],
                        "topic": topic,
                    }
                    for value, each in zip(values, ids, strict=True)
                ]
                yield pa.RecordBatch.from_pylist(made, schema)

    return dsp_messages


def _bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key
