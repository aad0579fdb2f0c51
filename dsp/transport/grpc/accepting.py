"""The accepting half: streams that peers open, read into the inboxes at the reader's pace."""

import asyncio
import logging
from collections import OrderedDict
from typing import TYPE_CHECKING

import grpc

from dsp.errors import CodecError, ConnectError
from dsp.transport.base import Lane, NodeId
from dsp.transport.grpc.errors import RefusedError, map_errors
from dsp.transport.grpc.shared import GrpcEndpoint
from dsp.transport.grpc.wire import FrameReader, Hello, Progress, Refusal, Welcome, decode_hello

if TYPE_CHECKING:
    import grpc.aio

    from dsp.config import TransportConfig

    Context = grpc.aio.ServicerContext[bytes, bytes]

__all__ = ["AcceptingEndpoint"]

logger = logging.getLogger(__name__)

# When the sender is told what has arrived: it keeps frames until then. See ``GrpcLink``.
CONFIRMS_PER_WINDOW = 4
CONFIRM_SECONDS = 0.05

MOST_REMEMBERED = 10_000
"""Links whose counts are kept after their streams have ended; the oldest are forgotten."""


class _Count:
    """How many frames of one link were taken, over all its streams."""

    def __init__(self, sequence_id: int) -> None:
        self.sequence_id = sequence_id
        self.received = 0


class _Incoming:
    """A stream that a peer has opened."""

    def __init__(self, hello: Hello, count: _Count) -> None:
        self.peer = hello.peer
        self.lane = hello.lane
        self.count = count
        self._confirm_frames = hello.window_frames // CONFIRMS_PER_WINDOW
        self._confirm_bytes = hello.window_bytes // CONFIRMS_PER_WINDOW
        self.due = asyncio.Event()  # time to confirm, or to look whether the stream is over
        self.ending = False
        self.ended = asyncio.Event()
        self._bytes = 0
        self._confirmed = count.received
        self._timer: asyncio.TimerHandle | None = None

    def took(self, size: int, loop: asyncio.AbstractEventLoop) -> None:
        """A message of this size is in the inbox."""
        self._bytes += size
        if (
            self._bytes >= self._confirm_bytes
            or self.count.received - self._confirmed >= self._confirm_frames
        ):
            self.due.set()
        elif self._timer is None:
            self._timer = loop.call_later(CONFIRM_SECONDS, self.due.set)

    def progress(self) -> bytes:
        """Give the message that confirms all that was taken."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._bytes = 0
        self._confirmed = self.count.received
        return Progress(self.count.received).encode()

    def end(self) -> None:
        """Take no more, and confirm what was taken."""
        self.ending = True
        self.due.set()


class AcceptingEndpoint(GrpcEndpoint):
    """Serves the streams that peers open."""

    def __init__(self, config: "TransportConfig", node: NodeId) -> None:
        super().__init__(config, node)
        self._incoming: OrderedDict[tuple[NodeId, Lane], _Incoming] = OrderedDict()
        self._takes_no_more = False
        self._turns = {lane: asyncio.Lock() for lane in Lane}
        self._space = {lane: asyncio.Event() for lane in Lane}

    def _room(self, lane: Lane) -> None:
        self._space[lane].set()

    async def _serve_stream(self, _requests: object, context: "Context") -> None:
        """Handle one call of gRPC. Cancelled by gRPC when the other end is gone."""
        lane = Lane.CONTROL  # until the hello says which
        try:
            hello = await self._read_hello(context)
            lane = hello.lane
            self._admit(hello, context)
            await self._serve_peer(hello, context)
        except (CodecError, RefusedError) as error:
            self._rejected(lane)
            self._fault("refused a stream", f"{context.peer()}: {error}")
            await self._refuse(context, str(error))
        except ConnectError as error:
            logger.debug("%s: %s", self._name, error)

    async def _refuse(self, context: "Context", reason: str) -> None:
        try:
            with map_errors("refusing a stream"):
                await context.write(Refusal(reason).encode())
        except ConnectError as error:
            logger.debug("%s: %s", self._name, error)  # gone before it heard

    async def _read_hello(self, context: "Context") -> Hello:
        try:
            async with asyncio.timeout(self._config.connect_timeout):
                with map_errors("a stream before its hello"):
                    data = await context.read()
        except TimeoutError as error:
            raise CodecError(f"no hello for {self._config.connect_timeout} s") from error
        if not isinstance(data, bytes):  # EOF, which the stubs leave out
            raise CodecError("a stream that ends before its hello")
        return decode_hello(data)

    def _admit(self, hello: Hello, context: "Context") -> None:
        if self._takes_no_more or not self._is_open:
            raise ConnectError(f"{hello.peer} comes while we close")  # no refusal: we may return
        if self._names is not None:
            reason = self._names.may_enter(hello.peer, context.auth_context())
            if reason is not None:
                raise RefusedError(f"{hello.peer.id!r}: {reason}")

    async def _serve_peer(self, hello: Hello, context: "Context") -> None:
        peer, lane = hello.peer, hello.lane
        incoming, resumed = await self._register(hello)
        reader: asyncio.Task[None] | None = None
        self._joined(peer)
        try:
            most = self._config.max_frame_bytes
            welcome = Welcome(self.contact, most, resumed, incoming.count.received)
            with map_errors(f"a stream from {peer}"):
                await context.write(welcome.encode())
                reader = self._start_task(
                    self._read_frames(incoming, context), f"{lane.value} from {peer.id}"
                )
                reader.add_done_callback(lambda _: incoming.due.set())
                while not (incoming.ending or reader.done()):
                    await incoming.due.wait()
                    incoming.due.clear()
                    await context.write(incoming.progress())
                reader.cancel()  # from here on nothing more is taken
                await asyncio.wait([reader])
                if reader.cancelled() or reader.exception() is None:
                    await context.write(incoming.progress())
        finally:
            if reader is not None:
                reader.cancel()
            incoming.progress()  # stops its timer
            incoming.ended.set()
            self._left(peer, "the stream from it is over")
        if not reader.cancelled():
            reader.result()

    async def _register(self, hello: Hello) -> tuple[_Incoming, bool]:
        """Make room for a stream: an earlier one of the same peer and lane ends first.

        Who dials again knows that the earlier one is dead, even if we have not noticed.
        """
        key = (hello.peer.id, hello.lane)
        earlier = self._incoming.get(key)
        resumed = earlier is not None and earlier.count.sequence_id == hello.sequence_id
        # Shared from now on, so that whoever comes next finds what is taken in the meantime.
        count = earlier.count if earlier is not None and resumed else _Count(hello.sequence_id)
        incoming = self._incoming[key] = _Incoming(hello, count)
        self._incoming.move_to_end(key)
        try:
            if earlier is not None:
                earlier.end()
                async with asyncio.timeout(self._config.connect_timeout):
                    await earlier.ended.wait()
        except TimeoutError as error:
            incoming.ended.set()
            raise ConnectError(f"an earlier stream of {hello.peer} does not end") from error
        except BaseException:
            incoming.ended.set()
            raise
        self._forget_old()
        return incoming, resumed

    def _forget_old(self) -> None:
        excess = len(self._incoming) - MOST_REMEMBERED
        if excess > 0:
            over = [key for key, each in self._incoming.items() if each.ended.is_set()]
            for key in over[:excess]:
                del self._incoming[key]

    async def _read_frames(self, incoming: _Incoming, context: "Context") -> None:
        """Take frames until the stream ends well.

        Raises:
            ConnectError: it broke.
            CodecError: what came is no pack.
        """
        peer, lane, count = incoming.peer, incoming.lane, incoming.count
        reader, turn = FrameReader(self._config.max_frame_bytes), self._turns[lane]
        loop = self._loop
        with map_errors(f"a stream from {peer}"):
            while True:
                message = await context.read()
                if not isinstance(message, bytes):  # EOF, which the stubs leave out
                    raise ConnectError(f"the stream from {peer} broke")
                if not message:
                    return
                for payload in reader.frames(message):
                    if turn.locked() or not self._has_room(lane, len(payload)):
                        await self._wait_for_room(lane, len(payload))
                    self._arrived(peer, lane, payload)
                    count.received += 1
                incoming.took(len(message), loop)

    async def _wait_for_room(self, lane: Lane, size: int) -> None:
        """Wait our turn. Meanwhile we read no more, so that HTTP/2 holds the sender back."""
        async with self._turns[lane]:
            while not self._has_room(lane, size):
                self._space[lane].clear()
                await self._space[lane].wait()

    async def _end_incoming(self) -> None:
        """Let every peer know what we have of its frames, and end its streams."""
        self._takes_no_more = True
        streams = [each for each in self._incoming.values() if not each.ended.is_set()]
        for each in streams:
            each.end()
        for each in streams:
            await each.ended.wait()
