"""Between the endpoint of a process and the instances in it: what goes where."""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import orjson

from dsp._pb.engine_pb2 import EngineBatch, EngineGone, EngineProgress
from dsp.core.envelope import Envelope, decode_envelope, encode_envelope
from dsp.core.machine import Send
from dsp.core.outgoing import Outgoing
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, CodecError, EndOfStream
from dsp.scaling.events import ScaleMessage
from dsp.scaling.wire import from_envelope, to_envelope
from dsp.stream.addresses import Addresses
from dsp.stream.batch import Batch
from dsp.stream.codecs import Payload
from dsp.stream.inlet import Arrival
from dsp.stream.parcels import Progress, Sent
from dsp.stream.tokens import Token
from dsp.stream.wire import decode_batch, encode_batch
from dsp.transport.base import Frame, Inbound, PeerDown, PeerUp, Transport, Undelivered

if TYPE_CHECKING:
    from dsp.stream.instance import Instance

__all__ = ["Router"]

logger = logging.getLogger(__name__)

MAX_PENDING = 100_000


class _Bytes:
    """Messages that are bytes already."""

    def encode(self, message: bytes) -> bytes:
        return message

    def decode(self, data: bytes) -> Hashable:
        return data


class Router:
    """Hands messages and batches to instances, here or elsewhere.

    Args:
        transport: a started session.
        lost_after: seconds of suspicion after which a process is taken for dead.
        heard: called with each report that comes here.
    """

    def __init__(
        self,
        transport: Transport,
        lost_after: float,
        heard: Callable[[dict[str, Any]], None] | None,
    ) -> None:
        self.addresses = Addresses()
        self.instances: dict[NodeId, Instance] = {}
        self._transport = transport
        self._me = transport.contact.id
        self._lost_after = lost_after
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._peers: dict[NodeId, Peer] = {}
        self._suspects: dict[NodeId, asyncio.TimerHandle] = {}
        self._lost: set[NodeId] = set()
        self._local: list[tuple[NodeId, NodeId, Envelope | Progress, ScaleMessage | None]] = []
        self._outgoing = Outgoing(
            transport,
            _Bytes(),
            self._peers,
            spawn=self._start,
            failed=self._send_failed,
            max_pending=MAX_PENDING,
        )

    @property
    def peer(self) -> Peer:
        """How others reach this process."""
        return self._transport.contact

    @abstractmethod
    def _start(self, work: Any, name: str) -> None:  # noqa: ANN401
        """Start a task whose end is noticed."""

    # -- sending --------------------------------------------------------------------------

    def is_local(self, name: NodeId) -> bool:
        """Whether an instance is, or was, in this process."""
        peer = self.addresses.peer(name)
        return peer is not None and peer.id == self._me

    def address(self, name: NodeId) -> str:
        """Where an instance is."""
        return self.addresses.get(name, "")

    def introduce(self, name: NodeId, address: str) -> None:
        """Note where an instance is."""
        self.addresses[name] = address

    def post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None:
        """Send a message to an instance, on the CONTROL lane."""
        self._post(source, to, envelope, None)

    def post_scale(self, source: NodeId, to: NodeId, message: ScaleMessage) -> None:
        """Send a message of the scale protocol."""
        if self.is_local(to):
            self._post(source, to, Envelope(), message)
        else:
            self._post(source, to, to_envelope(message, self.addresses), message)

    def post_progress(self, source: NodeId, to: NodeId, progress: Progress) -> None:
        """Tell an instance how far another one is."""
        if self.is_local(to):
            self._post_here(source, to, progress, None)
            return
        message = EngineProgress(
            done=progress.done,
            delivered=progress.delivered,
            records=progress.records,
            bytes=progress.bytes,
            window=progress.window,
            batch=progress.batch,
            worked=progress.worked,
        )
        self._post(source, to, Envelope(engine_progress=message), None)

    def _post_here(
        self, source: NodeId, to: NodeId, told: Envelope | Progress, message: ScaleMessage | None
    ) -> None:
        # Not at once: the sender may be in the middle of a step.
        if not self._local:
            self._loop.call_soon(self._deliver_local)
        self._local.append((source, to, told, message))

    def _post(
        self, source: NodeId, to: NodeId, envelope: Envelope, message: ScaleMessage | None
    ) -> None:
        if self.is_local(to):
            self._post_here(source, to, envelope, message)
            return
        peer = self.addresses.peer(to)
        if peer is None:
            logger.warning("no address of %s: a message of %s is not sent", to, source)
            return
        envelope.source, envelope.destination = source, to
        self._peers[peer.id] = peer
        self._send(Send(peer.id, encode_envelope(envelope), Lane.CONTROL))

    def _send(self, effect: Send) -> None:
        # Whoever closes the transport ends the instances too, but timers of theirs may come first.
        # What they do not tell now, nobody counts on: it is sent again, to others.
        with suppress(ClosedError):
            self._outgoing.send(effect)

    def _deliver_local(self) -> None:
        waiting, self._local = self._local, []
        for source, to, told, message in waiting:
            instance = self.instances.get(to)
            if instance is None:
                continue
            if isinstance(told, Progress):
                instance.progressed(source, told)
            else:
                instance.hear(source, told, message)

    def hand_over(self, source: NodeId, sent: Sent, arrival: Arrival) -> None:
        """Give a batch to an instance of this process."""
        instance = self.instances.get(sent.to)
        if instance is not None:
            instance.arrive(arrival)

    def relay(self, source: str, to: NodeId, batch: Batch) -> Token | None:
        """Let an instance of this process process a batch of an operator now, if it can."""
        instance = self.instances.get(to)
        return instance.process_now(source, batch) if instance is not None else None

    def adopt(self, to: NodeId, arrival: Arrival, token: Token) -> None:
        """Leave a batch that was processed to the inlet of who processed it."""
        instance = self.instances.get(to)
        if instance is not None:  # else it broke, and all that it had is sent again
            instance.inlet.adopt(arrival, token)

    def send_batch(
        self, source: NodeId, to: NodeId, message: EngineBatch, payload: Payload
    ) -> None:
        """Send a batch to an instance of another process."""
        peer = self.addresses.peer(to)
        if peer is None:
            logger.warning("no address of %s: a batch of %s is not sent", to, source)
            return
        self._peers[peer.id] = peer
        data = encode_batch(source, to, message, payload)
        self._send(Send(peer.id, data, Lane.DATA))

    def _send_failed(self, effect: Send) -> None:
        # Its address is none that this transport reaches: to send again, now, would end here again.
        if effect.to not in self._lost:
            logger.warning("process %s cannot be reached, and is taken for lost", effect.to)
            self._lost.add(effect.to)
            self._loop.call_soon(self._lose, effect.to)

    def finished(self, frame: Frame) -> None:
        """A frame is dealt with."""
        self._transport.done(frame)

    # -- receiving ------------------------------------------------------------------------

    async def _listen(self, lane: Lane) -> None:
        while True:
            try:
                inbound = await self._transport.receive(lane)
            except EndOfStream:
                return
            except ClosedError as error:
                if error.__cause__ is None:
                    return
                raise  # it broke, and who sends does not tell
            self._take(inbound)

    def _take(self, inbound: Inbound) -> None:
        match inbound:
            case Frame():
                try:
                    self._route(inbound)
                except CodecError as error:
                    logger.warning("frame of %s rejected: %s", inbound.sender, error)
                    self._transport.done(inbound)
            case PeerUp(peer):
                if (timer := self._suspects.pop(peer.id, None)) is not None:
                    timer.cancel()
            case PeerDown(peer, reason):
                if peer.id not in self._suspects and peer.id not in self._lost:
                    logger.info("process %s is suspected: %s", peer.id, reason)
                    self._suspects[peer.id] = self._loop.call_later(
                        self._lost_after, self._lose, peer.id
                    )
            case Undelivered():
                self._returned(inbound)

    def _route(self, frame: Frame) -> None:
        batch = decode_batch(frame.payload) if frame.lane is Lane.DATA else None
        envelope = decode_envelope(frame.payload) if batch is None else batch[0]
        source, destination = NodeId(envelope.source), NodeId(envelope.destination)
        body = envelope.WhichOneof("body")
        if body == "engine_report":
            if self._heard is not None:
                self._heard(orjson.loads(envelope.engine_report.figures))
            self._transport.done(frame)
            return
        # Who speaks is at the other end: a newcomer may be heard before it is introduced.
        if self.addresses.peer(source) != frame.sender and source:
            self.addresses.put(source, frame.sender)
        instance = self.instances.get(destination)
        if body == "engine_batch":
            message = envelope.engine_batch
            payload = message.payload if batch is None else batch[1]
            if instance is None:
                logger.warning("%d records for %s, which is not here", message.records, destination)
                self._transport.done(frame)
                self.post(destination, source, Envelope(engine_gone=EngineGone()))
                return
            # Only a log has to know when a frame is dealt with. Nobody else keeps its bytes.
            kept = frame if self._transport.guarantees.durable else None
            if kept is None:
                self._transport.done(frame)
            instance.arrive(
                Arrival(
                    source,
                    message.operator,
                    message.sequence,
                    message.records,
                    len(payload),
                    message.born,
                    message=message,
                    payload=payload,
                    frame=kept,
                    request=message.request if message.HasField("request") else None,
                )
            )
            return
        scale: ScaleMessage | None = None
        if body is not None and body.startswith("scale_"):
            scale = from_envelope(envelope, self.addresses)
        if instance is not None:
            instance.hear(source, envelope, scale)
        self._transport.done(frame)

    # -- loss -----------------------------------------------------------------------------

    def _lose(self, node: NodeId) -> None:
        self._suspects.pop(node, None)
        self._lost.add(node)
        names = self.addresses.at(node)
        known = {
            name for each in self.instances.values() for name in each.machine.neighbours.members
        }
        if missed := [name for name in names if name in known]:
            logger.warning("process %s is lost, with %s", node, ", ".join(missed))
        for instance in list(self.instances.values()):
            for name in names:
                instance.lose(name)

    def _returned(self, lost: Undelivered) -> None:
        """Frames did not arrive: batches go to others, messages again, unless their end is dead."""
        if lost.peer.id in self._lost:
            return
        for payload in lost.payloads:
            envelope = decode_envelope(payload)
            instance = self.instances.get(NodeId(envelope.source))
            if instance is None:
                continue
            if lost.lane is Lane.DATA:
                instance.outlet.returned(envelope.engine_batch.sequence)
            elif lost.reason:
                logger.warning("%s takes no messages: %s", lost.peer.id, lost.reason)
            elif envelope.WhichOneof("body") != "engine_report":
                self._send(Send(lost.peer.id, payload, Lane.CONTROL))
