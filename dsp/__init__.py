"""Decentralised stream processing for edge and fog machines, on asyncio.

The names below are what most programs need. They are loaded on first use: ``import dsp`` itself
imports nothing but the standard library's basics.
"""

from typing import TYPE_CHECKING

from dsp.lazy import lazy_names

if TYPE_CHECKING:
    from dsp.config import Config, TransportConfig, load_config
    from dsp.core.types import Lane, NodeId, Peer
    from dsp.errors import DspError
    from dsp.mutex.fence import Fence
    from dsp.mutex.service import GroupMutex, open_mutex
    from dsp.stream.app import App, run
    from dsp.stream.pipeline import Pipeline, Stream
    from dsp.stream.sinks.base import Collector, Sink
    from dsp.stream.sources.base import QueueSource, Source
    from dsp.transport.base import (
        Frame,
        Guarantees,
        Inbound,
        PeerDown,
        PeerUp,
        Transport,
        Undelivered,
    )
    from dsp.transport.registry import create_transport
    from dsp.transport.session import Session, create_session

__all__ = [
    "__version__",
    "Pipeline",
    "Stream",
    "run",
    "App",
    "Source",
    "QueueSource",
    "Sink",
    "Collector",
    "Config",
    "TransportConfig",
    "load_config",
    "Lane",
    "NodeId",
    "Peer",
    "Transport",
    "create_transport",
    "Session",
    "create_session",
    "Guarantees",
    "Inbound",
    "Frame",
    "PeerUp",
    "PeerDown",
    "Undelivered",
    "GroupMutex",
    "open_mutex",
    "Fence",
    "DspError",
]

__version__ = "0.1.0"

_HOMES = {
    "Pipeline": "stream.pipeline",
    "Stream": "stream.pipeline",
    "run": "stream.app",
    "App": "stream.app",
    "Source": "stream.sources.base",
    "QueueSource": "stream.sources.base",
    "Sink": "stream.sinks.base",
    "Collector": "stream.sinks.base",
    "Config": "config",
    "TransportConfig": "config",
    "load_config": "config",
    "Lane": "core.types",
    "NodeId": "core.types",
    "Peer": "core.types",
    "Transport": "transport.base",
    "create_transport": "transport.registry",
    "Session": "transport.session",
    "create_session": "transport.session",
    "Guarantees": "transport.base",
    "Inbound": "transport.base",
    "Frame": "transport.base",
    "PeerUp": "transport.base",
    "PeerDown": "transport.base",
    "Undelivered": "transport.base",
    "GroupMutex": "mutex.service",
    "open_mutex": "mutex.service",
    "Fence": "mutex.fence",
    "DspError": "errors",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
