"""Settings of the transport: where, how much may wait, and how long."""

from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from dsp.config.grpc import GrpcConfig
from dsp.config.kafka import KafkaConfig
from dsp.config.section import Section, between_fields
from dsp.config.session import SessionConfig
from dsp.config.url import MAX_URL_CHARS, check_url
from dsp.config.zmq import ZmqConfig

__all__ = ["TransportConfig", "DEFAULT_URL"]

DEFAULT_URL: Final = "sim://world/node"

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
_GIB: Final = 1024 * _MIB

_Frames = Annotated[int, Field(ge=1, le=_MIB)]
_QueueBytes = Annotated[int, Field(ge=_KIB, le=16 * _GIB)]


class TransportConfig(Section):
    """The ``[transport]`` table: how this endpoint talks to its peers."""

    # The section of one kind of transport is one more field, with its model as type and an
    # instance of it as default: loading, schema and reference page follow from that.
    url: Annotated[str, AfterValidator(check_url)] = Field(
        default=DEFAULT_URL,
        max_length=MAX_URL_CHARS,
        description=(
            "Address of this endpoint; its scheme chooses the transport, as in "
            "zmq://0.0.0.0:5555. Holds nothing secret: it appears in logs and goes to peers."
        ),
    )
    send_queue_frames: _Frames = Field(
        default=1024,
        description=(
            "Frames that may wait per (peer, lane) to be sent; a full queue makes the sender "
            "wait. More rides out longer pauses of a peer; fewer lets backpressure reach the "
            "source sooner and leaves less to send again when a peer dies."
        ),
    )
    send_queue_bytes: _QueueBytes = Field(
        default=16 * _MIB,
        description=(
            "Bytes that may wait per (peer, lane) to be sent, whichever bound is met first. "
            "Worst-case memory is this times two lanes times the number of peers."
        ),
    )
    receive_queue_frames: _Frames = Field(
        default=1024,
        description=(
            "Frames that may wait per lane to be received, from all peers together; when full, "
            "peers are held back. More evens out bursts; fewer keeps latency low under load."
        ),
    )
    receive_queue_bytes: _QueueBytes = Field(
        default=16 * _MIB,
        description=(
            "Bytes that may wait per lane to be received, whichever bound is met first. "
            "Worst-case memory is this times two lanes."
        ),
    )
    # After the queues: a field's check sees the fields before it.
    max_frame_bytes: int = Field(
        default=4 * _MIB,
        ge=_KIB,
        le=_GIB,
        description=(
            "Bytes of the largest frame, sent or received; checked before anything is parsed. "
            "At most send_queue_bytes and receive_queue_bytes, or it would never fit. Larger "
            "frames cost less per record; smaller ones hold up others for less time."
        ),
    )
    drain_timeout: float = Field(
        default=5.0,
        ge=0.0,
        le=3600.0,
        description=(
            "Seconds that closing waits for queued frames to leave; 0 leaves at once. Longer "
            "leaves less to send again; shorter makes restarts quick."
        ),
    )
    connect_timeout: float = Field(
        default=5.0,
        ge=0.01,
        le=3600.0,
        description=(
            "Seconds that one attempt to reach a peer may take. Longer suits slow links; "
            "shorter notices sooner that a peer is away."
        ),
    )

    stall_after: float = Field(
        default=10.0,
        ge=0.1,
        le=3600.0,
        description=(
            "Seconds without movement after which a connected peer for which frames wait is "
            "reported as stalled, in the log and by health(). Shorter reports sooner; longer "
            "leaves slow readers in peace."
        ),
    )
    epoch_file: str | None = Field(
        default=None,
        description=(
            "File in which this endpoint, and no other, keeps the number of its last start. Peers "
            "refuse a start whose number is not above the last; by default the number is the wall "
            "clock. Set it where a clock may be set back: a machine without a battery for it."
        ),
    )
    kafka: KafkaConfig = Field(
        default=KafkaConfig(), description="How kafka:// talks to its brokers."
    )

    session: SessionConfig = Field(
        default=SessionConfig(), description="Sessions, which make any transport reliable."
    )

    zmq: ZmqConfig = Field(
        default=ZmqConfig(), description="The mesh behind zmq+tcp:// and zmq+ipc://."
    )

    grpc: GrpcConfig = Field(default=GrpcConfig(), description="Endpoints of grpc:// and grpcs://.")

    @field_validator("max_frame_bytes")
    @classmethod
    def _fits_the_queues(cls, value: int, info: ValidationInfo) -> int:
        queues = ("send_queue_bytes", "receive_queue_bytes")
        # A queue bound that is itself wrong is absent here, and reported on its own.
        small = {name: info.data[name] for name in queues if info.data.get(name, value) < value}
        if small:
            bounds = " and ".join(f"{name} ({bound})" for name, bound in small.items())
            raise between_fields(
                f"{value} is over {bounds}: such a frame would never fit",
                *small,
                hint="lower max_frame_bytes or raise the queue's bound",
            )
        return value

    @classmethod
    def lan(cls, url: str | None = None) -> Self:
        """Machines in one room: room for bursts, and short waits because answers are quick.

        Args:
            url: address of this endpoint; the default of the model without it.
        """
        return cls._preset(url, 2048, 32 * _MIB, 8 * _MIB, drain=2.0, connect=2.0)

    @classmethod
    def wan(cls, url: str | None = None) -> Self:
        """Sites far apart: deep queues fill a long link, small frames do not hold it, long waits.

        Args:
            url: address of this endpoint; the default of the model without it.
        """
        return cls._preset(url, 8192, 64 * _MIB, 1 * _MIB, drain=30.0, connect=15.0)

    @classmethod
    def edge(cls, url: str | None = None) -> Self:
        """Small gateways: at most a few MiB per peer, small frames, patience with weak links.

        Args:
            url: address of this endpoint; the default of the model without it.
        """
        return cls._preset(url, 128, 1 * _MIB, 256 * _KIB, drain=10.0, connect=15.0)

    @classmethod
    def _preset(
        cls,
        url: str | None,
        frames: int,
        queue_bytes: int,
        frame_bytes: int,
        *,
        drain: float,
        connect: float,
    ) -> Self:
        values: dict[str, object] = {
            "send_queue_frames": frames,
            "send_queue_bytes": queue_bytes,
            "receive_queue_frames": frames,
            "receive_queue_bytes": queue_bytes,
            "max_frame_bytes": frame_bytes,
            "drain_timeout": drain,
            "connect_timeout": connect,
        }
        # Left out rather than set to the default: as an override, a preset keeps a file's URL.
        if url is not None:
            values["url"] = url
        return cls.model_validate(values)
