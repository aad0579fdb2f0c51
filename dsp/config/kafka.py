"""Settings of the transport over Apache Kafka."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from dsp.config.section import Section

__all__ = ["KafkaConfig"]

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_WEEK_MS: Final = 7 * 24 * 3600 * 1000

# TOML has text and no paths.
_File = Annotated[Path | None, Field(strict=False)]


class KafkaConfig(Section):
    """The ``[transport.kafka]`` table: how ``kafka://`` talks to its brokers."""

    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT",
        description=(
            "What the port of the brokers speaks. PLAINTEXT and SASL_PLAINTEXT let everybody on "
            "the way read all records; SSL and SASL_SSL encrypt, and cost some CPU."
        ),
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512",
        description=(
            "How the password is proved with SASL_PLAINTEXT and SASL_SSL. PLAIN sends it as it "
            "is: use it with SASL_SSL only. SCRAM never sends it."
        ),
    )
    username: str | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="Name of the user, with SASL_PLAINTEXT and SASL_SSL.",
    )
    password_file: _File = Field(
        default=None,
        description=(
            "File whose first line is the user's password. A file, because settings are printed "
            "and the environment is inherited; let nobody else read it."
        ),
    )
    ca_file: _File = Field(
        default=None,
        description=(
            "PEM file with the authority that signs the brokers' certificates, with SSL and "
            "SASL_SSL. Left out, the authorities of the system are trusted."
        ),
    )
    certificate_file: _File = Field(
        default=None,
        description=(
            "PEM file with the certificate that this endpoint shows to the brokers, where they "
            "ask for one (mutual TLS)."
        ),
    )
    key_file: _File = Field(
        default=None,
        description=(
            "PEM file with the private key of certificate_file; left out, the key is in that "
            "file. Let nobody else read it."
        ),
    )
    replication_factor: int = Field(
        default=-1,
        ge=-1,
        le=1000,
        description=(
            "Copies that the brokers keep of an inbox, set when it is created; -1 is the "
            "brokers' own default. With 1 a broker's disk is the only copy; with 3 a broker may "
            "die, and each record is written three times. 0 means -1."
        ),
    )
    min_insync_replicas: int = Field(
        default=0,
        ge=0,
        le=1000,
        description=(
            "Copies that must have a record before it is acknowledged, set when the inbox is "
            "created; 0 is the brokers' own default. Above 1, no single broker's death loses a "
            "record; sending waits while fewer copies are up."
        ),
    )
    retention_ms: int = Field(
        default=_WEEK_MS,
        ge=-1,
        le=2**53,
        description=(
            "Milliseconds for which an inbox keeps records, received or not, set when it is "
            "created; -1 keeps them for ever. A process that is away for longer loses what was "
            "sent to it; longer takes more disk on the brokers."
        ),
    )
    request_timeout: float = Field(
        default=30.0,
        ge=1.0,
        le=3600.0,
        description=(
            "Seconds that a broker may take for one answer before the connection is made anew. "
            "Longer suits brokers under load; shorter leaves a dead connection sooner."
        ),
    )
    commit_interval: float = Field(
        default=0.2,
        ge=0.0,
        le=60.0,
        description=(
            "Seconds for which frames that are done with are gathered into one commit; 0 commits "
            "at once. Longer costs the brokers less; shorter leaves less to come again after a "
            "crash."
        ),
    )
    in_flight_bytes: int = Field(
        default=4 * _MIB,
        ge=_KIB,
        le=1024 * _MIB,
        description=(
            "Bytes per (peer, lane) that are on their way to a broker and not acknowledged, "
            "beside those in the queue. More fills longer links; less leaves less to send again "
            "when a producer must be made anew."
        ),
    )
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = Field(
        default="none",
        description=(
            "How records are compressed on the way and on the brokers' disks. lz4 is quick and "
            "zstd small; none is best where the link is not the limit."
        ),
    )
