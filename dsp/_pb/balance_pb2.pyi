from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BalanceFrame(_message.Message):
    __slots__ = ("operator", "matrices", "reply")
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    MATRICES_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    operator: str
    matrices: BalanceMatrices
    reply: BalanceReply
    def __init__(self, operator: _Optional[str] = ..., matrices: _Optional[_Union[BalanceMatrices, _Mapping]] = ..., reply: _Optional[_Union[BalanceReply, _Mapping]] = ...) -> None: ...

class BalanceMatrices(_message.Message):
    __slots__ = ("rows", "columns", "seed", "counts", "seconds")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    columns: int
    seed: int
    counts: _containers.RepeatedScalarFieldContainer[float]
    seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, rows: _Optional[int] = ..., columns: _Optional[int] = ..., seed: _Optional[int] = ..., counts: _Optional[_Iterable[float]] = ..., seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class BalanceRequest(_message.Message):
    __slots__ = ("epoch", "estimate")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    ESTIMATE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    estimate: float
    def __init__(self, epoch: _Optional[int] = ..., estimate: _Optional[float] = ...) -> None: ...

class BalanceReply(_message.Message):
    __slots__ = ("epoch", "difference")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCE_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    difference: float
    def __init__(self, epoch: _Optional[int] = ..., difference: _Optional[float] = ...) -> None: ...
