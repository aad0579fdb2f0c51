from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScaleMember(_message.Message):
    __slots__ = ("id", "address", "operator", "generation")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    operator: str
    generation: int
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ..., operator: _Optional[str] = ..., generation: _Optional[int] = ...) -> None: ...

class ScaleDuplication(_message.Message):
    __slots__ = ("operator", "generation", "newcomers")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    NEWCOMERS_FIELD_NUMBER: _ClassVar[int]
    operator: str
    generation: int
    newcomers: _containers.RepeatedCompositeFieldContainer[ScaleMember]
    def __init__(self, operator: _Optional[str] = ..., generation: _Optional[int] = ..., newcomers: _Optional[_Iterable[_Union[ScaleMember, _Mapping]]] = ...) -> None: ...

class ScaleDuplicationAck(_message.Message):
    __slots__ = ("linked",)
    LINKED_FIELD_NUMBER: _ClassVar[int]
    linked: bool
    def __init__(self, linked: bool = ...) -> None: ...

class ScaleDeletion(_message.Message):
    __slots__ = ("operator",)
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    operator: str
    def __init__(self, operator: _Optional[str] = ...) -> None: ...

class ScaleDeletionAck(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ScaleStart(_message.Message):
    __slots__ = ("neighbours", "bereaved")
    NEIGHBOURS_FIELD_NUMBER: _ClassVar[int]
    BEREAVED_FIELD_NUMBER: _ClassVar[int]
    neighbours: _containers.RepeatedCompositeFieldContainer[ScaleMember]
    bereaved: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, neighbours: _Optional[_Iterable[_Union[ScaleMember, _Mapping]]] = ..., bereaved: _Optional[_Iterable[str]] = ...) -> None: ...

class ScaleKeep(_message.Message):
    __slots__ = ("you",)
    YOU_FIELD_NUMBER: _ClassVar[int]
    you: bool
    def __init__(self, you: bool = ...) -> None: ...

class ScaleEvict(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
