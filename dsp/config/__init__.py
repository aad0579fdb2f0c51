"""Configuration: models, and the one place that reads files and the environment.

The names are loaded on first use: a program that never reads a configuration never pays for
importing pydantic.
"""

from typing import TYPE_CHECKING

from dsp.lazy import lazy_names

if TYPE_CHECKING:
    from dsp.config.faults import ConfigFaults, Fault, Source
    from dsp.config.grpc import GrpcConfig
    from dsp.config.load import Examination, examine, load_config
    from dsp.config.models import Config, NodeConfig
    from dsp.config.scaling import ScaleRules, ScalingConfig
    from dsp.config.schema import json_schema
    from dsp.config.session import SessionConfig
    from dsp.config.transport import TransportConfig
    from dsp.config.zmq import ZmqConfig

__all__ = [
    "Config",
    "NodeConfig",
    "SessionConfig",
    "TransportConfig",
    "ZmqConfig",
    "GrpcConfig",
    "ScalingConfig",
    "ScaleRules",
    "load_config",
    "examine",
    "Examination",
    "ConfigFaults",
    "Fault",
    "Source",
    "json_schema",
]

_HOMES = {
    "Config": "models",
    "NodeConfig": "models",
    "SessionConfig": "session",
    "TransportConfig": "transport",
    "ZmqConfig": "zmq",
    "GrpcConfig": "grpc",
    "ScalingConfig": "scaling",
    "ScaleRules": "scaling",
    "load_config": "load",
    "examine": "load",
    "Examination": "load",
    "ConfigFaults": "faults",
    "Fault": "faults",
    "Source": "faults",
    "json_schema": "schema",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
