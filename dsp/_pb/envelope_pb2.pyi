from dsp._pb import balance_pb2 as _balance_pb2
from dsp._pb import mutex_pb2 as _mutex_pb2
from dsp._pb import scaling_pb2 as _scaling_pb2
from dsp._pb import engine_pb2 as _engine_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Envelope(_message.Message):
    __slots__ = ("version", "source", "destination", "scale_duplication", "scale_duplication_ack", "scale_deletion", "scale_deletion_ack", "scale_start", "scale_keep", "scale_evict", "mutex", "balance", "engine_batch", "engine_progress", "engine_demand", "engine_end", "engine_end_ack", "engine_retire", "engine_stop", "engine_report", "engine_gone", "engine_core", "engine_enter", "engine_entered", "engine_exit", "engine_share", "custom")
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
    MUTEX_FIELD_NUMBER: _ClassVar[int]
    BALANCE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_BATCH_FIELD_NUMBER: _ClassVar[int]
    ENGINE_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ENGINE_DEMAND_FIELD_NUMBER: _ClassVar[int]
    ENGINE_END_FIELD_NUMBER: _ClassVar[int]
    ENGINE_END_ACK_FIELD_NUMBER: _ClassVar[int]
    ENGINE_RETIRE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_STOP_FIELD_NUMBER: _ClassVar[int]
    ENGINE_REPORT_FIELD_NUMBER: _ClassVar[int]
    ENGINE_GONE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_CORE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_ENTER_FIELD_NUMBER: _ClassVar[int]
    ENGINE_ENTERED_FIELD_NUMBER: _ClassVar[int]
    ENGINE_EXIT_FIELD_NUMBER: _ClassVar[int]
    ENGINE_SHARE_FIELD_NUMBER: _ClassVar[int]
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
    mutex: _mutex_pb2.MutexFrame
    balance: _balance_pb2.BalanceFrame
    engine_batch: _engine_pb2.EngineBatch
    engine_progress: _engine_pb2.EngineProgress
    engine_demand: _engine_pb2.EngineDemand
    engine_end: _engine_pb2.EngineEnd
    engine_end_ack: _engine_pb2.EngineEndAck
    engine_retire: _engine_pb2.EngineRetire
    engine_stop: _engine_pb2.EngineStop
    engine_report: _engine_pb2.EngineReport
    engine_gone: _engine_pb2.EngineGone
    engine_core: _engine_pb2.EngineCore
    engine_enter: _engine_pb2.EngineEnter
    engine_entered: _engine_pb2.EngineEntered
    engine_exit: _engine_pb2.EngineExit
    engine_share: _engine_pb2.EngineShare
    custom: Custom
    def __init__(self, version: _Optional[int] = ..., source: _Optional[str] = ..., destination: _Optional[str] = ..., scale_duplication: _Optional[_Union[_scaling_pb2.ScaleDuplication, _Mapping]] = ..., scale_duplication_ack: _Optional[_Union[_scaling_pb2.ScaleDuplicationAck, _Mapping]] = ..., scale_deletion: _Optional[_Union[_scaling_pb2.ScaleDeletion, _Mapping]] = ..., scale_deletion_ack: _Optional[_Union[_scaling_pb2.ScaleDeletionAck, _Mapping]] = ..., scale_start: _Optional[_Union[_scaling_pb2.ScaleStart, _Mapping]] = ..., scale_keep: _Optional[_Union[_scaling_pb2.ScaleKeep, _Mapping]] = ..., scale_evict: _Optional[_Union[_scaling_pb2.ScaleEvict, _Mapping]] = ..., mutex: _Optional[_Union[_mutex_pb2.MutexFrame, _Mapping]] = ..., balance: _Optional[_Union[_balance_pb2.BalanceFrame, _Mapping]] = ..., engine_batch: _Optional[_Union[_engine_pb2.EngineBatch, _Mapping]] = ..., engine_progress: _Optional[_Union[_engine_pb2.EngineProgress, _Mapping]] = ..., engine_demand: _Optional[_Union[_engine_pb2.EngineDemand, _Mapping]] = ..., engine_end: _Optional[_Union[_engine_pb2.EngineEnd, _Mapping]] = ..., engine_end_ack: _Optional[_Union[_engine_pb2.EngineEndAck, _Mapping]] = ..., engine_retire: _Optional[_Union[_engine_pb2.EngineRetire, _Mapping]] = ..., engine_stop: _Optional[_Union[_engine_pb2.EngineStop, _Mapping]] = ..., engine_report: _Optional[_Union[_engine_pb2.EngineReport, _Mapping]] = ..., engine_gone: _Optional[_Union[_engine_pb2.EngineGone, _Mapping]] = ..., engine_core: _Optional[_Union[_engine_pb2.EngineCore, _Mapping]] = ..., engine_enter: _Optional[_Union[_engine_pb2.EngineEnter, _Mapping]] = ..., engine_entered: _Optional[_Union[_engine_pb2.EngineEntered, _Mapping]] = ..., engine_exit: _Optional[_Union[_engine_pb2.EngineExit, _Mapping]] = ..., engine_share: _Optional[_Union[_engine_pb2.EngineShare, _Mapping]] = ..., custom: _Optional[_Union[Custom, _Mapping]] = ...) -> None: ...

class Custom(_message.Message):
    __slots__ = ("type", "payload")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    type: str
    payload: bytes
    def __init__(self, type: _Optional[str] = ..., payload: _Optional[bytes] = ...) -> None: ...
