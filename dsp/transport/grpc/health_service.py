"""The standard health service of gRPC, for load balancers and ``grpc_health_probe``."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from dsp._pb.grpc_stream_pb2 import HealthQuestion, HealthReply
from dsp.transport.base import HealthState, Transport
from dsp.transport.grpc.wire import SERVICE

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]

__all__ = ["health_handler"]

NAME = "grpc.health.v1.Health"
LOOK_SECONDS = 0.5
"""How often a watcher's endpoint is looked at: health has no event to wait for."""

_SERVICES = ("", SERVICE)
_SERVING = (HealthState.OK, HealthState.DEGRADED)


def health_handler(transport: Transport) -> grpc.GenericRpcHandler:
    """Give the handler that answers for an endpoint.

    It serves while its state is ``OK`` or ``DEGRADED``: what is degraded still works, for others.
    """

    async def check(request: bytes, context: "Context") -> bytes:
        service = await _service(request, context)
        if service not in _SERVICES:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {service[:100]!r} here")
        return _reply(_status(transport))

    async def watch(request: bytes, context: "Context") -> AsyncIterator[bytes]:
        service = await _service(request, context)
        last = None
        while True:
            status = _status(transport)
            if service not in _SERVICES:
                status = HealthReply.STATUS_SERVICE_UNKNOWN
            if status != last:
                last = status
                yield _reply(status)
            await asyncio.sleep(LOOK_SECONDS)

    return grpc.method_handlers_generic_handler(
        NAME,
        {
            "Check": grpc.unary_unary_rpc_method_handler(check),
            "Watch": grpc.unary_stream_rpc_method_handler(watch),
        },
    )


async def _service(request: bytes, context: "Context") -> str:
    try:
        return HealthQuestion.FromString(request).service
    except DecodeError:
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not a HealthCheckRequest")


def _status(transport: Transport) -> HealthReply.Status:
    serving = transport.health().state in _SERVING
    return HealthReply.STATUS_SERVING if serving else HealthReply.STATUS_NOT_SERVING


def _reply(status: HealthReply.Status) -> bytes:
    return HealthReply(status=status).SerializeToString()
