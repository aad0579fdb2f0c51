from dsp._pb import balance_pb2 as _balance_pb2
from dsp._pb import scaling_pb2 as _scaling_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EngineBatch(_message.Message):
    __slots__ = ("sequence", "operator", "records", "first_id", "ids", "id_bytes", "born", "payload", "request")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_ID_FIELD_NUMBER: _ClassVar[int]
    IDS_FIELD_NUMBER: _ClassVar[int]
    ID_BYTES_FIELD_NUMBER: _ClassVar[int]
    BORN_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    operator: str
    records: int
    first_id: int
    ids: bytes
    id_bytes: int
    born: float
    payload: bytes
    request: _balance_pb2.BalanceRequest
    def __init__(self, sequence: _Optional[int] = ..., operator: _Optional[str] = ..., records: _Optional[int] = ..., first_id: _Optional[int] = ..., ids: _Optional[bytes] = ..., id_bytes: _Optional[int] = ..., born: _Optional[float] = ..., payload: _Optional[bytes] = ..., request: _Optional[_Union[_balance_pb2.BalanceRequest, _Mapping]] = ...) -> None: ...

class EngineProgress(_message.Message):
    __slots__ = ("done", "delivered", "records", "bytes", "window", "batch", "worked")
    DONE_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    WORKED_FIELD_NUMBER: _ClassVar[int]
    done: _containers.RepeatedScalarFieldContainer[int]
    delivered: int
    records: int
    bytes: int
    window: int
    batch: int
    worked: int
    def __init__(self, done: _Optional[_Iterable[int]] = ..., delivered: _Optional[int] = ..., records: _Optional[int] = ..., bytes: _Optional[int] = ..., window: _Optional[int] = ..., batch: _Optional[int] = ..., worked: _Optional[int] = ...) -> None: ...

class EngineDemand(_message.Message):
    __slots__ = ("siblings", "load", "keeper", "pending", "expected", "latency", "usable")
    SIBLINGS_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    KEEPER_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    USABLE_FIELD_NUMBER: _ClassVar[int]
    siblings: _containers.RepeatedCompositeFieldContainer[_scaling_pb2.ScaleMember]
    load: float
    keeper: _scaling_pb2.ScaleMember
    pending: float
    expected: float
    latency: float
    usable: float
    def __init__(self, siblings: _Optional[_Iterable[_Union[_scaling_pb2.ScaleMember, _Mapping]]] = ..., load: _Optional[float] = ..., keeper: _Optional[_Union[_scaling_pb2.ScaleMember, _Mapping]] = ..., pending: _Optional[float] = ..., expected: _Optional[float] = ..., latency: _Optional[float] = ..., usable: _Optional[float] = ...) -> None: ...

class EngineShare(_message.Message):
    __slots__ = ("latency", "usable")
    LATENCY_FIELD_NUMBER: _ClassVar[int]
    USABLE_FIELD_NUMBER: _ClassVar[int]
    latency: float
    usable: float
    def __init__(self, latency: _Optional[float] = ..., usable: _Optional[float] = ...) -> None: ...

class EngineEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EngineEndAck(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EngineRetire(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EngineStop(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EngineGone(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EngineReport(_message.Message):
    __slots__ = ("figures",)
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    figures: bytes
    def __init__(self, figures: _Optional[bytes] = ...) -> None: ...

class EngineCore(_message.Message):
    __slots__ = ("members",)
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    members: _containers.RepeatedCompositeFieldContainer[_scaling_pb2.ScaleMember]
    def __init__(self, members: _Optional[_Iterable[_Union[_scaling_pb2.ScaleMember, _Mapping]]] = ...) -> None: ...

class EngineEnter(_message.Message):
    __slots__ = ("ticket",)
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ticket: int
    def __init__(self, ticket: _Optional[int] = ...) -> None: ...

class EngineEntered(_message.Message):
    __slots__ = ("ticket", "number")
    TICKET_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ticket: int
    number: int
    def __init__(self, ticket: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class EngineExit(_message.Message):
    __slots__ = ("ticket",)
    TICKET_FIELD_NUMBER: _ClassVar[int]
    ticket: int
    def __init__(self, ticket: _Optional[int] = ...) -> None: ...
