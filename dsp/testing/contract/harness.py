"""What the checks of the contract stand on: endpoints to try, and ways to try them."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import EndOfStream, WouldBlock
from dsp.transport.base import Frame, Inbound, Transport
from dsp.transport.registry import create_transport

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["ContractHarness", "check"]

HarnessT = TypeVar("HarnessT", bound="ContractHarness")

CLOG_FRAME = bytes(64 * 1024)
CLOG_MOST = 4000


def check(
    method: Callable[[HarnessT], Coroutine[Any, Any, None]],
) -> Callable[[HarnessT], None]:
    """Turn a coroutine method into a plain test that runs on the loop of its transport."""

    @functools.wraps(method)
    def test(self: HarnessT) -> None:
        self.run(method(self))

    del test.__wrapped__  # test runners must see a plain function
    return test


class ContractHarness(ABC):
    """How to make endpoints of the transport under test.

    Attributes:
        patience: seconds after which a check gives up waiting for something that must happen.
        grace: seconds in which a check looks whether something happens that must not.
        peers_at_once: endpoints of the check with many peers.
        slow_frames: frames of the check with a slow reader.
        cancel_steps: after how many steps of the loop a start and a close are cancelled; each value
            costs a fresh endpoint.
        small_queues: settings for endpoints that are meant to be full soon.
    """

    patience: float = 10.0
    grace: float = 0.2
    peers_at_once: int = 100
    slow_frames: int = 10_000
    cancel_steps: Iterable[int] = range(50)
    small_queues: "dict[str, Any]" = {  # noqa: RUF012 - read only
        "send_queue_frames": 8,
        "send_queue_bytes": 1024 * 1024,
        "receive_queue_frames": 8,
        "receive_queue_bytes": 1024 * 1024,
        "max_frame_bytes": 256 * 1024,
        "drain_timeout": 0.3,
    }

    @abstractmethod
    def config(self, node: str, **settings: Any) -> "TransportConfig":  # noqa: ANN401
        """Give the configuration of an endpoint.

        Called again with the same name it must give an endpoint that the same peers can reach,
        since that is how a restart is tried.
        """

    @abstractmethod
    async def send_garbage(self, endpoint: Transport) -> None:
        """Send bytes to an endpoint that no peer would send: random, truncated, oversized."""

    def run(self, trial: Coroutine[Any, Any, None]) -> None:
        """Run one check on a fresh event loop."""
        with asyncio.Runner() as runner:
            runner.run(trial)

    def make(self, node: str, **settings: Any) -> Transport:  # noqa: ANN401
        """Make an endpoint that is not started."""
        return create_transport(self.config(node, **settings), NodeId(node))

    @asynccontextmanager
    async def endpoints(self, *nodes: str, **settings: Any) -> AsyncIterator[list[Transport]]:  # noqa: ANN401
        """Start endpoints, and close them at the end."""
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(self.make(node, **settings)) for node in nodes]

    # -- ways to try ----------------------------------------------------------------------

    async def soon(self, awaitable: Coroutine[Any, Any, Any], what: str) -> Any:  # noqa: ANN401
        """Wait for something that must happen."""
        try:
            async with asyncio.timeout(self.patience):
                return await awaitable
        except TimeoutError:
            raise AssertionError(f"not within {self.patience} s: {what}") from None

    async def next_frame(self, endpoint: Transport, lane: Lane) -> Frame:
        """Receive until a frame comes; events are passed over."""
        return await self.soon(self._next_frame(endpoint, lane), f"a frame on {lane.value}")  # type: ignore[no-any-return]

    async def _next_frame(self, endpoint: Transport, lane: Lane) -> Frame:
        while True:
            inbound = await endpoint.receive(lane)
            if isinstance(inbound, Frame):
                endpoint.done(inbound)
                return inbound

    async def eventually(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds that must come to hold."""

        async def poll() -> None:
            while not condition():  # noqa: ASYNC110 - statistics have no event to wait for
                await asyncio.sleep(0.001)

        await self.soon(poll(), what)

    async def refused(
        self, expected: type[Exception], call: Coroutine[Any, Any, Any], what: str
    ) -> Exception:
        """Check that a call raises what it must, and give what it raised."""
        try:
            await self.soon(call, what)
        except expected as error:
            return error
        raise AssertionError(f"{what} did not raise {expected.__name__}")

    async def payloads(self, endpoint: Transport, lane: Lane, count: int) -> list[bytes]:
        """Receive this many frames and give their payloads."""
        return [(await self.next_frame(endpoint, lane)).payload for _ in range(count)]

    async def quiet(self, endpoint: Transport, lane: Lane) -> list[bytes]:
        """Give the payloads that still come until nothing comes for a while."""
        rest: list[bytes] = []
        while True:
            try:
                async with asyncio.timeout(self.grace):
                    rest.append((await self._next_frame(endpoint, lane)).payload)
            except TimeoutError:
                return rest

    async def remaining(self, endpoint: Transport, lane: Lane) -> list[Inbound]:
        """Receive everything up to the end of the stream."""
        found: list[Inbound] = []
        while True:
            try:
                found.append(await self.soon(endpoint.receive(lane), "the end of the stream"))
            except EndOfStream:
                return found

    async def clog(self, sender: Transport, to: Peer) -> int:
        """Fill the DATA lane to a peer that does not read; give how many frames were accepted.

        A log takes what nobody reads: with a durable transport the lane is full in this step of
        the loop, and not for long.
        """
        if sender.guarantees.durable:
            return await self._clog_for_now(sender, to)
        for accepted in range(CLOG_MOST):
            try:
                async with asyncio.timeout(self.grace):
                    await sender.send(to, numbered(accepted, CLOG_FRAME), lane=Lane.DATA)
            except TimeoutError:
                return accepted
        raise AssertionError(
            f"send never waits: {CLOG_MOST} frames of {len(CLOG_FRAME)} bytes were accepted for a "
            f"peer that does not read"
        )

    async def _clog_for_now(self, sender: Transport, to: Peer) -> int:
        accepted = full = 0
        while full < 5:  # what is in the queue may go on a little, without any answer
            full += 1
            try:
                while accepted < CLOG_MOST:
                    sender.send_nowait(to, numbered(accepted, CLOG_FRAME), lane=Lane.DATA)
                    accepted, full = accepted + 1, 0
            except WouldBlock:
                await asyncio.sleep(0)
            else:
                raise AssertionError(f"send_nowait never blocks: {CLOG_MOST} were accepted at once")
        return accepted


def numbered(number: int, filler: bytes = b"") -> bytes:
    """Make a payload that can be told from others."""
    return number.to_bytes(8, "big") + filler[8:]


def numbers(payloads: Iterable[bytes]) -> list[int]:
    """Read the numbers back."""
    return [int.from_bytes(payload[:8], "big") for payload in payloads]
