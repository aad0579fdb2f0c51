from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MutexFrame(_message.Message):
    __slots__ = ("edge", "number", "request", "ack", "hello", "welcome", "bye", "expelled", "ra_request", "ra_reply", "vector_request", "vector_reply", "ra_start", "want", "grant", "done", "token_wanted", "token", "published_request", "published_ack", "published_end")
    EDGE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    BYE_FIELD_NUMBER: _ClassVar[int]
    EXPELLED_FIELD_NUMBER: _ClassVar[int]
    RA_REQUEST_FIELD_NUMBER: _ClassVar[int]
    RA_REPLY_FIELD_NUMBER: _ClassVar[int]
    VECTOR_REQUEST_FIELD_NUMBER: _ClassVar[int]
    VECTOR_REPLY_FIELD_NUMBER: _ClassVar[int]
    RA_START_FIELD_NUMBER: _ClassVar[int]
    WANT_FIELD_NUMBER: _ClassVar[int]
    GRANT_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_WANTED_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_REQUEST_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_ACK_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_END_FIELD_NUMBER: _ClassVar[int]
    edge: str
    number: int
    request: MutexRequest
    ack: MutexAck
    hello: MutexHello
    welcome: MutexWelcome
    bye: MutexBye
    expelled: MutexExpelled
    ra_request: MutexRequest
    ra_reply: MutexNothing
    vector_request: MutexVector
    vector_reply: MutexVector
    ra_start: MutexVector
    want: MutexNothing
    grant: MutexNothing
    done: MutexNothing
    token_wanted: MutexNothing
    token: MutexToken
    published_request: MutexRequest
    published_ack: MutexPublishedAck
    published_end: MutexRequest
    def __init__(self, edge: _Optional[str] = ..., number: _Optional[int] = ..., request: _Optional[_Union[MutexRequest, _Mapping]] = ..., ack: _Optional[_Union[MutexAck, _Mapping]] = ..., hello: _Optional[_Union[MutexHello, _Mapping]] = ..., welcome: _Optional[_Union[MutexWelcome, _Mapping]] = ..., bye: _Optional[_Union[MutexBye, _Mapping]] = ..., expelled: _Optional[_Union[MutexExpelled, _Mapping]] = ..., ra_request: _Optional[_Union[MutexRequest, _Mapping]] = ..., ra_reply: _Optional[_Union[MutexNothing, _Mapping]] = ..., vector_request: _Optional[_Union[MutexVector, _Mapping]] = ..., vector_reply: _Optional[_Union[MutexVector, _Mapping]] = ..., ra_start: _Optional[_Union[MutexVector, _Mapping]] = ..., want: _Optional[_Union[MutexNothing, _Mapping]] = ..., grant: _Optional[_Union[MutexNothing, _Mapping]] = ..., done: _Optional[_Union[MutexNothing, _Mapping]] = ..., token_wanted: _Optional[_Union[MutexNothing, _Mapping]] = ..., token: _Optional[_Union[MutexToken, _Mapping]] = ..., published_request: _Optional[_Union[MutexRequest, _Mapping]] = ..., published_ack: _Optional[_Union[MutexPublishedAck, _Mapping]] = ..., published_end: _Optional[_Union[MutexRequest, _Mapping]] = ...) -> None: ...

class MutexNothing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MutexRequest(_message.Message):
    __slots__ = ("time",)
    TIME_FIELD_NUMBER: _ClassVar[int]
    time: int
    def __init__(self, time: _Optional[int] = ...) -> None: ...

class MutexAck(_message.Message):
    __slots__ = ("renew", "end")
    RENEW_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    renew: int
    end: bool
    def __init__(self, renew: _Optional[int] = ..., end: bool = ...) -> None: ...

class MutexMember(_message.Message):
    __slots__ = ("id", "address", "group")
    ID_FIELD_NUMBER: _ClassVar[int]
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    id: str
    address: str
    group: int
    def __init__(self, id: _Optional[str] = ..., address: _Optional[str] = ..., group: _Optional[int] = ...) -> None: ...

class MutexHello(_message.Message):
    __slots__ = ("generation", "group", "members")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    group: int
    members: _containers.RepeatedCompositeFieldContainer[MutexMember]
    def __init__(self, generation: _Optional[int] = ..., group: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MutexMember, _Mapping]]] = ...) -> None: ...

class MutexWelcome(_message.Message):
    __slots__ = ("generation", "mine", "members")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    MINE_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    mine: int
    members: _containers.RepeatedCompositeFieldContainer[MutexMember]
    def __init__(self, generation: _Optional[int] = ..., mine: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MutexMember, _Mapping]]] = ...) -> None: ...

class MutexBye(_message.Message):
    __slots__ = ("members",)
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[MutexMember]
    def __init__(self, members: _Optional[_Iterable[_Union[MutexMember, _Mapping]]] = ...) -> None: ...

class MutexExpelled(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class MutexVector(_message.Message):
    __slots__ = ("counts", "request")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    counts: _containers.RepeatedScalarFieldContainer[int]
    request: int
    def __init__(self, counts: _Optional[_Iterable[int]] = ..., request: _Optional[int] = ...) -> None: ...

class MutexToken(_message.Message):
    __slots__ = ("wanted",)
    WANTED_FIELD_NUMBER: _ClassVar[int]
    wanted: bool
    def __init__(self, wanted: bool = ...) -> None: ...

class MutexPublishedAck(_message.Message):
    __slots__ = ("renew", "end")
    RENEW_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    renew: bool
    end: bool
    def __init__(self, renew: bool = ..., end: bool = ...) -> None: ...
