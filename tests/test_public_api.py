"""What users may rely on: the names of each public module, and a docstring for each.

A name that leaves this list breaks somebody's program; a name that joins it has to be kept.
"""

import inspect
import types
from importlib import import_module
from typing import Any

import pytest
from google.protobuf.message import Message

PUBLIC: dict[str, str] = {
    "dsp": """__version__ Config TransportConfig load_config Lane NodeId Peer Transport
        create_transport Session create_session Guarantees Inbound Frame PeerUp PeerDown
        Undelivered GroupMutex open_mutex Fence
        Pipeline Stream run App Source QueueSource Sink Collector DspError""",
    "dsp.errors": """DspError ConfigError MissingExtraError TransportError ConnectError
        PeerUnreachable WouldBlock FrameTooLarge ClosedError BusyError EndOfStream CodecError
        ProtocolError LocalProtocolError RemoteProtocolError MutexError LeaseLost OverloadError
        SimulationError StalledError InvariantError""",
    "dsp.config": """Config NodeConfig SessionConfig TransportConfig ZmqConfig GrpcConfig
        ScalingConfig ScaleRules load_config examine Examination ConfigFaults Fault Source
        json_schema""",
    "dsp.core.types": "NodeId Lane Peer",
    "dsp.core.machine": """Machine Received PeerAppeared PeerLost SendFailed Tick Cancelled Send
        Resolve Fail Reject CommonEvent CommonEffect""",
    "dsp.core.driver": "MessageCodec MachineDriver Step",
    "dsp.core.envelope": "WIRE_VERSION Envelope Custom encode_envelope decode_envelope",
    "dsp.core.randomness": "derive_seed derive_random",
    "dsp.transport.base": """Lane NodeId Peer Guarantees Frame PeerUp PeerDown Undelivered Inbound
        LaneStatistics TransportStatistics HealthState LinkHealth TransportHealth Transport""",
    "dsp.transport.registry": "Registration known_schemes transport_class create_transport",
    "dsp.transport.session": "Session create_session",
    "dsp.transport.health": "HealthState LinkHealth TransportHealth",
    "dsp.transport.adapter": "Link AdapterTransport",
    "dsp.scaling.events": """Member Duplication DuplicationAck Deletion DeletionAck Start Keep Evict
        ScaleMessage ScaleOutRequested Spawned SpawnFailed LeaveRequested Assigned Delivered
        QueueEmptied ScaleEvent Spawn Activate Drain Terminate Stop Deserted ScaleEffect""",
    "dsp.scaling.machine": "ScaleMachine",
    "dsp.scaling.place": "Place",
    "dsp.scaling.status": "Status TRANSITIONS WORKING",
    "dsp.scaling.wire": "ScaleCodec to_envelope from_envelope",
    "dsp.scaling.deciders": """Observation Report Decision Stay STAY Duplicate Leave Retire Decider
        Thresholds Probabilistic Ranked Centralised Threshold Bounds Bounded DECIDERS
        make_decider configured_decider Watcher Proactive AutoscalePlus proactive_settings""",
    "dsp.scaling.service": "Scalable ScaleRequest ScaleTrigger TriggerCounts",
    "dsp.mutex.service": "Entry GroupMutex RoutedMutex open_mutex",
    "dsp.mutex.fence": "Fence",
    "dsp.mutex.events": """Req Ack PermissionMessage Hello Welcome Bye Expelled MembershipMessage
        Carried EnterRequested ExitRequested Linked Unlinked JoinRequested LeaveRequested
        MemberRemoved Superseded MutexEvent Admit Revoke Settled Left MutexEffect""",
    "dsp.mutex.seat": "Groups Seat",
    "dsp.mutex.status": "Status TRANSITIONS Phase",
    "dsp.mutex.member": "Member",
    "dsp.mutex.chain": "Chain",
    "dsp.mutex.edges": "Edge edges_in_order edges_of",
    "dsp.mutex.two_fgme": "TwoFGME",
    "dsp.mutex.ra1": "RA1 RaRequest RaReply",
    "dsp.mutex.ra2": "RA2 VectorRequest VectorReply RaStart",
    "dsp.mutex.arbiter_token": "ArbiterToken Want Grant Done TokenWanted Token",
    "dsp.mutex.wire": "MutexCodec to_envelope from_envelope",
    "dsp.transport.kafka.endpoint": "KafkaTransport",
    "dsp.stream.sources": """Source SourceContext Chunk Unreadable Position IterableSource
        AsyncIterableSource QueueSource LinesSource JsonLinesSource CsvSource ParquetSource
        TcpLinesSource KafkaSource Journaled""",
    "dsp.stream.sinks": """Sink SinkBroken PartlyWritten CallableSink Collector FileSink
        JsonLinesSink CsvSink ParquetSink JournalSink KafkaSink""",
    "dsp.spark": """map_in_arrow pandas_udf udf failed_record FailedRecord run_graph GraphRun stage
        sql column SparkStage SparkSettings Lease hold SparkError SparkUnavailable SparkConflict
        SparkUnreachable SchemaMismatch RecordFailed JobFailed""",
    "dsp.testing": """World Host HostMain LinkConditions Packet Rule Verdict PASS DROP Deliver""",
    "dsp.testing.contract": "TransportContract ContractHarness",
    "dsp.testing.kafka": """KafkaBroker start_broker start_cluster find_broker ExternalBroker
        BrokerOptions Listener KafkaUnavailable KafkaStartError KAFKA_VERSION cache_folder
        find_java""",
    "dsp.testing.spark": """start_cluster Cluster start_connect_server ConnectServer Daemon
        SparkStartError""",
    "dsp.stream.bodies": "BatchFailed BulkBody Traced",
    "dsp.testing.explorer": """Model View Run Script Stimulus tell crash leave join call LaneRules
        Absent Notice Snapshot rebase_floats explore explore_many explore_orders find_starvation
        random_walks replay Result Progress Violation WorkerError Kind Step Reaction Action
        ActionKind""",
}


def documentable(value: object) -> bool:
    """Tell classes and functions from values and aliases; messages are documented in proto/."""
    if isinstance(value, type):
        return not issubclass(value, Message)
    return inspect.isfunction(value)


def members(cls: type) -> list[tuple[str, Any]]:
    """Give what a class itself adds for its users."""
    return [
        (name, value)
        for name, value in vars(cls).items()
        if not name.startswith("_")
        and isinstance(value, types.FunctionType | property | classmethod | staticmethod)
    ]


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_pinned(module: str) -> None:
    assert sorted(import_module(module).__all__) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_exist_and_are_documented(module: str) -> None:
    loaded = import_module(module)
    assert loaded.__doc__
    bare = []
    for name in loaded.__all__:
        value = getattr(loaded, name)
        # A dataclass without a docstring gets its signature for one.
        if documentable(value) and (not value.__doc__ or value.__doc__.startswith(f"{name}(")):
            bare.append(name)
    assert bare == []


@pytest.mark.parametrize("module", PUBLIC)
def test_public_methods_are_documented(module: str) -> None:
    loaded = import_module(module)
    bare = []
    for name in loaded.__all__:
        cls = getattr(loaded, name)
        if not isinstance(cls, type) or not documentable(cls):
            continue
        for method, value in members(cls):
            function = getattr(value, "__func__", value)
            # An override without a docstring has its base's: getdoc finds it by the class.
            if not (function.__doc__ or inspect.getdoc(getattr(cls, method))):
                bare.append(f"{name}.{method}")
    assert bare == []


def test_lazy_names_of_the_package() -> None:
    import dsp

    assert {*dsp.__all__} <= {*dir(dsp)}
    for name in dsp.__all__:
        assert getattr(dsp, name) is getattr(dsp, name)
    with pytest.raises(AttributeError, match="'dsp' has no attribute 'nothing'"):
        dsp.nothing  # noqa: B018
