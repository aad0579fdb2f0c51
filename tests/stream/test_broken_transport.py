"""A transport that breaks ends the host, with the cause; one that is closed ends it in peace."""

from typing import Any

import pytest

from dsp.config import TransportConfig
from dsp.core.types import Lane, NodeId
from dsp.errors import ClosedError
from dsp.stream.router import Router
from dsp.transport.session import create_session


class Listening(Router):
    def _start(self, work: Any, name: str) -> None:  # noqa: ANN401
        work.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("broken", [False, True])
async def test_listening_tells_what_broke(broken: bool) -> None:
    transport = create_session(TransportConfig(url="zmq://127.0.0.1:0"), NodeId("here"))
    async with transport:
        router = Listening(transport, 1.0, None)
        if not broken:
            transport.abort()
            await router._listen(Lane.DATA)
            return
        transport._fail(RuntimeError("out of order"))
        with pytest.raises(ClosedError, match="out of order"):
            await router._listen(Lane.DATA)
