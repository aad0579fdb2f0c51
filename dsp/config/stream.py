"""Settings of the engine: how records are delivered, batched, held back and retried."""

from typing import Final, Literal

from pydantic import Field

from dsp.config.section import Section

__all__ = ["StreamConfig"]

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB


class StreamConfig(Section):
    """The ``[stream]`` table: how the engine runs a pipeline."""

    delivery: Literal["at_least_once", "at_most_once", "effectively_once"] = Field(
        default="at_least_once",
        description=(
            "at_least_once: sources forget a record when all that came of it has reached the "
            "sinks. effectively_once: and sinks drop records that come again. at_most_once: "
            "records are forgotten once the next instance has them; cheaper, and lost with it."
        ),
    )
    batch_records: int = Field(
        default=512,
        ge=1,
        le=1_000_000,
        description=(
            "Records that a source reads, or that are put together for a successor, at most. "
            "More cost less each; fewer arrive sooner."
        ),
    )
    batch_time: float = Field(
        default=0.1,
        gt=0.0,
        le=60.0,
        description=(
            "Seconds of work that a batch may hold. Slow bodies get small batches by it, so that "
            "work spreads over siblings and a leaver is soon done."
        ),
    )
    inline_time: float = Field(
        default=0.0,
        ge=0.0,
        le=1.0,
        description=(
            "Seconds that a call of a body may take on the event loop. A body that was seen to be "
            "quicker is called there, a batch at a time, which spares the hop to a worker thread, "
            "as with 0.002. While such a call lasts nothing else does, and one that hangs is not "
            "reported; 0 keeps bodies in worker threads."
        ),
    )
    linger: float = Field(
        default=0.005,
        ge=0.0,
        le=10.0,
        description=(
            "Seconds that records which are grouped by key wait for others with the same "
            "destination. Longer makes larger batches, and later records."
        ),
    )
    window_records: int = Field(
        default=8192,
        ge=1,
        le=10_000_000,
        description=(
            "Records that may be on their way or wait between two instances. More rides out "
            "bursts; fewer makes backpressure quick and scaling light."
        ),
    )
    window_bytes: int = Field(
        default=4 * _MIB,
        ge=_KIB,
        le=1024 * _MIB,
        description="Bytes that may be on their way or wait between two instances.",
    )
    window_time: float = Field(
        default=1.0,
        gt=0.0,
        le=3600.0,
        description=(
            "Seconds of work that may wait at one instance: slow bodies get a window of fewer "
            "records than window_records by it. Shorter reacts sooner; longer rides out bursts."
        ),
    )
    retries: int = Field(
        default=2,
        ge=0,
        le=1000,
        description=(
            "Times that a record on which a body raises is tried again, alone, before it goes to "
            "the dead letters. More rides out faults that pass; fewer lets the stream go on."
        ),
    )
    hang_after: float = Field(
        default=30.0,
        gt=0.0,
        le=86_400.0,
        description="Seconds after which a call of a body that does not return is reported.",
    )
    drain_timeout: float = Field(
        default=30.0,
        ge=0.0,
        le=86_400.0,
        description=(
            "Seconds that a stop waits for records under way to reach the sinks; then it ends "
            "with what is left unacknowledged, which a replayable source gives again."
        ),
    )
    lost_after: float = Field(
        default=5.0,
        ge=0.0,
        le=86_400.0,
        description=(
            "Seconds for which a process has to be suspected until its instances are taken for "
            "dead. Shorter repairs sooner; longer bears pauses."
        ),
    )
    report_every: float = Field(
        default=0.5,
        ge=0.01,
        le=3600.0,
        description="Seconds between two reports to neighbours and to whoever watches the run.",
    )
    spare_processes: int = Field(
        default=0,
        ge=0,
        le=16,
        description=(
            "Instances that each process of an elastic operator keeps in reserve: processes that "
            "have imported everything and wait to become siblings. With one a newcomer starts "
            "several times sooner; each takes about 35 MiB, and a quarter second of CPU after each "
            "use."
        ),
    )
    state_directory: str | None = Field(
        default=None,
        description=(
            "Where sources keep how far they are, so that a restarted application goes on there. "
            "Without it every run starts at the beginning."
        ),
    )
