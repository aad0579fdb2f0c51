from dsp._pb import scaling_pb2 as _scaling_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Envelope(_message.Message):
    __slots__ = ("version", "source", "destination", "scale_duplication", "scale_duplication_ack", "scale_deletion", "scale_deletion_ack", "scale_start", "scale_keep", "scale_evict", "custom")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DESTINATION_FIELD_NUMBER: _ClassVar[int]
    SCALE_DUPLICATION_FIELD_NUMBER: _ClassVar[int]
    SCALE_DUPLICATION_ACK_FIELD_NUMBER: _ClassVar[int]
    SCALE_DELETION_FIELD_NUMBER: _ClassVar[int]
    SCALE_DELETION_ACK_FIELD_NUMBER: _ClassVar[int]
    SCALE_START_FIELD_NUMBER: _ClassVar[int]
    SCALE_KEEP_FIELD_NUMBER: _ClassVar[int]
    SCALE_EVICT_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_FIELD_NUMBER: _ClassVar[int]
    version: int
    source: str
    destination: str
    scale_duplication: _scaling_pb2.ScaleDuplication
    scale_duplication_ack: _scaling_pb2.ScaleDuplicationAck
    scale_deletion: _scaling_pb2.ScaleDeletion
    scale_deletion_ack: _scaling_pb2.ScaleDeletionAck
    scale_start: _scaling_pb2.ScaleStart
    scale_keep: _scaling_pb2.ScaleKeep
    scale_evict: _scaling_pb2.ScaleEvict
    custom: Custom
    def __init__(self, version: _Optional[int] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ..., scale_duplication: _Optional[_Union[_scaling_pb2.ScaleDuplication, _Mapping]] = ..., scale_duplication_ack: _Optional[_Union[_scaling_pb2.ScaleDuplicationAck, _Mapping]] = ..., scale_deletion: _Optional[_Union[_scaling_pb2.ScaleDeletion, _Mapping]] = ..., scale_deletion_ack: _Optional[_Union[_scaling_pb2.ScaleDeletionAck, _Mapping]] = ..., scale_start: _Optional[_Union[_scaling_pb2.ScaleStart, _Mapping]] = ..., scale_keep: _Optional[_Union[_scaling_pb2.ScaleKeep, _Mapping]] = ..., scale_evict: _Optional[_Union[_scaling_pb2.ScaleEvict, _Mapping]] = ..., custom: _Optional[_Union[Custom, _Mapping]] = ...) -> None: ...

class Custom(_message.Message):
    __slots__ = ("type", "payload")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    type: str
    payload: bytes
    def __init__(self, type: _Optional[str] = ..., payload: _Optional[bytes] = ...) -> None: ...
