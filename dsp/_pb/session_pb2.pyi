from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SessionSegment(_message.Message):
    __slots__ = ("version", "kind", "epoch", "peer_epoch", "sequence", "payloads", "windows")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[SessionSegment.Kind]
        KIND_HELLO: _ClassVar[SessionSegment.Kind]
        KIND_DATA: _ClassVar[SessionSegment.Kind]
        KIND_STATUS: _ClassVar[SessionSegment.Kind]
        KIND_BYE: _ClassVar[SessionSegment.Kind]
    KIND_UNSPECIFIED: SessionSegment.Kind
    KIND_HELLO: SessionSegment.Kind
    KIND_DATA: SessionSegment.Kind
    KIND_STATUS: SessionSegment.Kind
    KIND_BYE: SessionSegment.Kind
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PEER_EPOCH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PAYLOADS_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    version: int
    kind: SessionSegment.Kind
    epoch: int
    peer_epoch: int
    sequence: int
    payloads: _containers.RepeatedScalarFieldContainer[bytes]
    windows: _containers.RepeatedCompositeFieldContainer[SessionWindow]
    def __init__(self, version: _Optional[int] = ..., kind: _Optional[_Union[SessionSegment.Kind, str]] = ..., epoch: _Optional[int] = ..., peer_epoch: _Optional[int] = ..., sequence: _Optional[int] = ..., payloads: _Optional[_Iterable[bytes]] = ..., windows: _Optional[_Iterable[_Union[SessionWindow, _Mapping]]] = ...) -> None: ...

class SessionWindow(_message.Message):
    __slots__ = ("received", "items", "size")
    RECEIVED_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    received: int
    items: int
    size: int
    def __init__(self, received: _Optional[int] = ..., items: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...
