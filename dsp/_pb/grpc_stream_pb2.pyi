from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StreamHello(_message.Message):
    __slots__ = ("version", "node", "address", "lane", "max_frame_bytes", "sequence_id", "window_frames", "window_bytes")
    class Lane(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        LANE_UNSPECIFIED: _ClassVar[StreamHello.Lane]
        LANE_CONTROL: _ClassVar[StreamHello.Lane]
        LANE_DATA: _ClassVar[StreamHello.Lane]
    LANE_UNSPECIFIED: StreamHello.Lane
    LANE_CONTROL: StreamHello.Lane
    LANE_DATA: StreamHello.Lane
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    MAX_FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FRAMES_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    version: int
    node: str
    address: str
    lane: StreamHello.Lane
    max_frame_bytes: int
    sequence_id: int
    window_frames: int
    window_bytes: int
    def __init__(self, version: _Optional[int] = ..., node: _Optional[str] = ..., address: _Optional[str] = ..., lane: _Optional[_Union[StreamHello.Lane, str]] = ..., max_frame_bytes: _Optional[int] = ..., sequence_id: _Optional[int] = ..., window_frames: _Optional[int] = ..., window_bytes: _Optional[int] = ...) -> None: ...

class StreamAnswer(_message.Message):
    __slots__ = ("welcome", "refusal", "progress")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    welcome: StreamWelcome
    refusal: StreamRefusal
    progress: StreamProgress
    def __init__(self, welcome: _Optional[_Union[StreamWelcome, _Mapping]] = ..., refusal: _Optional[_Union[StreamRefusal, _Mapping]] = ..., progress: _Optional[_Union[StreamProgress, _Mapping]] = ...) -> None: ...

class StreamWelcome(_message.Message):
    __slots__ = ("version", "node", "address", "max_frame_bytes", "resumed", "received")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    MAX_FRAME_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESUMED_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    version: int
    node: str
    address: str
    max_frame_bytes: int
    resumed: bool
    received: int
    def __init__(self, version: _Optional[int] = ..., node: _Optional[str] = ..., address: _Optional[str] = ..., max_frame_bytes: _Optional[int] = ..., resumed: bool = ..., received: _Optional[int] = ...) -> None: ...

class StreamRefusal(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class StreamProgress(_message.Message):
    __slots__ = ("received",)
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    received: int
    def __init__(self, received: _Optional[int] = ...) -> None: ...

class HealthQuestion(_message.Message):
    __slots__ = ("service",)
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    service: str
    def __init__(self, service: _Optional[str] = ...) -> None: ...

class HealthReply(_message.Message):
    __slots__ = ("status",)
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATUS_UNKNOWN: _ClassVar[HealthReply.Status]
        STATUS_SERVING: _ClassVar[HealthReply.Status]
        STATUS_NOT_SERVING: _ClassVar[HealthReply.Status]
        STATUS_SERVICE_UNKNOWN: _ClassVar[HealthReply.Status]
    STATUS_UNKNOWN: HealthReply.Status
    STATUS_SERVING: HealthReply.Status
    STATUS_NOT_SERVING: HealthReply.Status
    STATUS_SERVICE_UNKNOWN: HealthReply.Status
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: HealthReply.Status
    def __init__(self, status: _Optional[_Union[HealthReply.Status, str]] = ...) -> None: ...
