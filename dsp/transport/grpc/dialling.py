"""The dialling half: one stream for each peer and lane that we send to, opened again when lost."""

import asyncio
import logging
import random
from typing import TYPE_CHECKING

import grpc
import grpc.aio

from dsp.errors import CodecError, ConnectError, PeerUnreachable
from dsp.transport.base import Lane, Peer
from dsp.transport.grpc.addresses import Address, parse_address
from dsp.transport.grpc.errors import ClosedEarlyError, RefusedError, map_errors
from dsp.transport.grpc.link import GrpcLink
from dsp.transport.grpc.options import channel_options
from dsp.transport.grpc.shared import GrpcEndpoint
from dsp.transport.grpc.wire import (
    END,
    METHOD,
    SERVICE,
    Hello,
    Progress,
    Refusal,
    Welcome,
    decode_answer,
    messages_of,
)

if TYPE_CHECKING:
    Call = grpc.aio.StreamStreamCall[bytes, bytes]

__all__ = ["DiallingEndpoint"]

logger = logging.getLogger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
LONGEST_REFUSED_PAUSE = 5.0  # until somebody has changed something

CLOSED_EARLY_IS_REFUSED = 3
"""Attempts in a row after which a peer that closes without a word is taken to refuse us."""


class DiallingEndpoint(GrpcEndpoint):
    """Opens streams to peers and writes frames to them."""

    _channel_credentials: "grpc.ChannelCredentials | None" = None

    def _connect(self, to: Peer, lane: Lane) -> GrpcLink:
        self._address_of(to)
        link = GrpcLink(to, lane, self._config)
        self._spawn(self._serve_link(link), f"{lane.value} to {to.id}")
        return link

    def _readdress(self, link: GrpcLink, to: Peer) -> None:
        self._address_of(to)
        before = link.peer
        self._undelivered(before, link.lane, link.move(to))
        link.cut()

    def _wake(self, link: GrpcLink) -> None:
        link.wanted.set()

    def _address_of(self, peer: Peer) -> Address:
        try:
            address = parse_address(peer.address, self.scheme)
        except ValueError as error:
            raise PeerUnreachable(f"{peer}: {error}") from error
        if address.is_wildcard:
            raise PeerUnreachable(f"{peer}: {address.host} is every host and so nobody's")
        return address

    # -- life of a link -------------------------------------------------------------------

    async def _serve_link(self, link: GrpcLink) -> None:
        pause = FIRST_PAUSE
        while True:
            while not link.waiting():
                link.wanted.clear()
                await link.wanted.wait()
            before = link.moved()
            refused = await self._attempt(link)
            if link.moved() != before:
                pause = FIRST_PAUSE
            else:
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_REFUSED_PAUSE if refused else LONGEST_PAUSE)

    async def _attempt(self, link: GrpcLink) -> bool:
        """Have one connection to the peer, first to last; tell whether it was refused.

        In a task of its own: where a call was cancelled, gRPC raises ``CancelledError`` in whoever
        uses it, and that must not be taken for our own end.
        """
        work = self._converse(link, link.peer)
        task = self._start_task(work, f"connection, {link.lane.value} to {link.peer.id}")
        link.attempt(task)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if task.cancelled() or (error := task.exception()) is None:
            return False
        if isinstance(error, RefusedError | CodecError):
            self._tell_fault(link, str(error), refused=True)
            return True
        if isinstance(error, ClosedEarlyError):
            link.closed_early += 1
            if link.closed_early >= CLOSED_EARLY_IS_REFUSED:
                self._tell_fault(link, f"{error}: {self._closed_early_hint}", refused=True)
                return True
        if not isinstance(error, ConnectError):
            raise error
        self._tell_fault(link, str(error), refused=False)
        return False

    def _tell_fault(self, link: GrpcLink, reason: str, *, refused: bool) -> None:
        """Tell it once: we go on trying, and each attempt would say the same."""
        self._problem(self._about(link), reason)
        if link.reported == reason:
            return
        link.reported = reason
        if refused:
            logger.error("%s: %s refused: %s", self._name, link.peer, reason)
            self._refused(link.peer, reason)
        else:
            logger.warning("%s: %s", self._name, reason)

    @property
    def _closed_early_hint(self) -> str:
        if self._names is None:
            return "if it is a grpcs:// endpoint, it takes no plaintext peers: use grpcs:// too"
        return (
            "most likely it does not trust our certificate: its ca_file must vouch for our "
            "certificate_file, which must not have expired"
        )

    @staticmethod
    def _about(link: GrpcLink) -> str:
        return f"{link.lane.value} to {link.peer.id}"

    # -- one connection -------------------------------------------------------------------

    async def _converse(self, link: GrpcLink, peer: Peer) -> None:
        """Dial the peer and write frames until the stream is over.

        Raises:
            ConnectError: the peer is away, or the stream broke.
            RefusedError: one of the two does not want to talk to the other.
            CodecError: what answers is no dsp endpoint.
        """
        async with self._channel(peer) as channel:
            call: Call = channel.stream_stream(f"/{SERVICE}/{METHOD}")()
            try:
                welcome = await self._greet(link, peer, call)
                lost = link.resume(resumed=welcome.resumed, received=welcome.received)
                self._undelivered(peer, link.lane, lost)
                self._connected(link, peer)
                writer = self._spawn(
                    self._write_frames(link, peer, call, welcome.max_frame_bytes),
                    f"frames, {link.lane.value} to {peer.id}",
                )
                try:
                    await self._listen(link, peer, call)
                finally:
                    writer.cancel()
                    self._left(peer, "the stream to it is over")
            finally:
                call.cancel()

    def _channel(self, peer: Peer) -> grpc.aio.Channel:
        target = self._address_of(peer).target
        if self._channel_credentials is None or self._names is None:
            return grpc.aio.insecure_channel(target, channel_options(self._config, None))
        if (reason := self._names.may_dial(peer)) is not None:
            raise RefusedError(f"{peer}: {reason}")
        options = channel_options(self._config, self._names.expected(peer))
        return grpc.aio.secure_channel(target, self._channel_credentials, options)

    async def _greet(self, link: GrpcLink, peer: Peer, call: "Call") -> Welcome:
        most = self._config.max_frame_bytes
        hello = Hello(
            self.contact,
            link.lane,
            most,
            link.sequence_id,
            link.window_frames,
            link.window_bytes,
        )
        try:
            async with asyncio.timeout(self._config.connect_timeout):
                with map_errors(f"dialling {peer}"):
                    await call.write(hello.encode())
                    data = await call.read()
        except TimeoutError as error:
            raise ConnectError(
                f"dialling {peer}: no answer for {self._config.connect_timeout} s "
                f"(transport.connect_timeout)"
            ) from error
        if not isinstance(data, bytes):
            raise ConnectError(f"dialling {peer}: it ends the stream without an answer")
        answer = decode_answer(data)
        match answer:
            case Refusal(reason):
                raise RefusedError(f"dialling {peer}: it says: {reason}")
            case Progress():
                raise CodecError(f"dialling {peer}: it answers before it was asked")
        if answer.peer.id != peer.id:
            raise ConnectError(f"dialling {peer}: {answer.peer} answers in its place")
        return answer

    def _connected(self, link: GrpcLink, peer: Peer) -> None:
        if link.connected_before:
            self._reconnected(peer)
        link.connected_before = True
        link.reported = None
        link.closed_early = 0
        self._problem(self._about(link), None)
        self._joined(peer)

    async def _listen(self, link: GrpcLink, peer: Peer, call: "Call") -> None:
        """Take in what the peer confirms, until the stream is over."""
        with map_errors(f"the stream to {peer}"):
            while isinstance(data := await call.read(), bytes):
                match decode_answer(data):
                    case Progress(received):
                        link.progress(received)
                        self._handed_over()
                    case Refusal(reason):
                        raise RefusedError(f"{peer} says: {reason}")
                    case Welcome():
                        raise CodecError(f"{peer} answers twice")

    async def _write_frames(self, link: GrpcLink, peer: Peer, call: "Call", most: int) -> None:
        """Write frames until we close or the stream breaks, which the listener then tells."""
        try:
            with map_errors(f"the stream to {peer}"):
                while True:
                    payloads = link.take_pack(most)
                    if payloads:
                        for message in messages_of(payloads):
                            await call.write(message)
                        self._handed_over()
                    elif (too_large := link.take_too_large(most)) is not None:
                        reason = f"{peer.id} takes frames of {most} bytes at most"
                        self._undelivered(peer, link.lane, [too_large], reason)
                        self._handed_over()
                    elif self._is_closing and len(link.queue) == 0:
                        await call.write(END)
                        return
                    else:
                        link.wanted.clear()
                        await link.wanted.wait()
        except (ConnectError, RefusedError) as error:
            logger.debug("%s: %s", self._name, error)
