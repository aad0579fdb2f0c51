"""``Session``: any transport, made reliable and ordered across loss, duplicates and reconnects.

A shell around one session machine per peer. It is a ``Transport`` itself, so an application never
knows the difference: what it sends arrives once and in order while both ends live, and when an end
dies the other one gets every frame that was not acknowledged, as ``Undelivered``.

Small frames that are sent in the same step of the loop travel as one segment with one number, so
that callers who send record by record do not pay for a session per record.
"""

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from dsp.core.machine import Received
from dsp.core.session.segments import (
    CloseRequested,
    Consumed,
    LinkUp,
    Phase,
    Segment,
    SessionLimits,
    Submit,
)
from dsp.core.session.wire import PAYLOAD_OVERHEAD, SEGMENT_OVERHEAD
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import CodecError, EndOfStream
from dsp.transport.adapter import AdapterTransport
from dsp.transport.base import (
    Frame,
    Guarantees,
    HealthState,
    Inbound,
    LaneStatistics,
    PeerDown,
    PeerUp,
    Transport,
    TransportHealth,
    TransportStatistics,
    Undelivered,
)
from dsp.transport.conversation import Conversation, Intake, Parcel, SessionLink, limits_of
from dsp.transport.conversing import Conversing
from dsp.transport.link import TURN_BYTES, TURN_PER_FRAME
from dsp.transport.passage import Halves, Passage
from dsp.transport.queues import BoundedQueue
from dsp.transport.registry import create_transport

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["Session", "create_session"]

logger = logging.getLogger(__name__)

GOOD_BYE_PATIENCE = 0.5


def create_session(config: "TransportConfig", node: NodeId) -> "Session":
    """Make the endpoint that a configuration describes, with sessions over it. It is not started.

    This is what an application wants: the same guarantees whatever the URL.

    Raises:
        ConfigError: unknown scheme, or settings that the transport refuses.
        MissingExtraError: the transport's extra is not installed.
    """
    return Session.from_config(config, node)


class Session(Conversing):
    """A reliable transport over another one.

    Args:
        adapter: the transport below; the session starts and closes it.
        config: the bounds of the queues; usually the adapter's own configuration.
        limits: times and windows.
    """

    scheme: ClassVar[str] = "session"

    def __init__(
        self,
        adapter: Transport,
        config: "TransportConfig",
        node: NodeId,
        *,
        limits: SessionLimits | None = None,
    ) -> None:
        super().__init__(adapter, config, node, limits or limits_of(config))
        # A segment has to fit into a frame of the adapter, with a few bytes for each payload.
        self._coalesce_bytes = min(config.session.coalesce_bytes, config.max_frame_bytes // 2)
        self._coalesce_items = max(1, config.max_frame_bytes // 2 // PAYLOAD_OVERHEAD)
        self._tell_items = max(1, self._limits.window_items // 4)
        self._tell_bytes = max(1, self._limits.window_bytes // 4)
        self._space = asyncio.Event()
        self._boxes: dict[Lane, BoundedQueue[Inbound]] = {}
        for lane, inbox in self._inboxes.items():
            assert isinstance(inbox, BoundedQueue)
            self._boxes[lane] = inbox
        self.guarantees = self._declare()

    @classmethod
    def from_config(cls, config: "TransportConfig", node: NodeId) -> Self:
        # Room for the head of a segment: a frame of the size that the user allows must fit.
        below = config.model_copy(
            update={"max_frame_bytes": config.max_frame_bytes + SEGMENT_OVERHEAD}
        )
        return cls(create_transport(below, node), config, node)

    @property
    def contact(self) -> Peer:
        return self._adapter.contact

    @property
    def epoch(self) -> int:
        return self._adapter.epoch

    def health(self) -> TransportHealth:
        own, below = super().health(), self._adapter.health()
        if isinstance(self._adapter, AdapterTransport):
            # Such as a broker that is away. What waits down there for a peer that we gave up is
            # no trouble of ours.
            lasting = tuple(self._adapter._condition.problems.values())
            if lasting and own.state is HealthState.OK:
                own = replace(own, state=HealthState.DEGRADED)
            own = replace(own, problems=own.problems + lasting)
        if below.state is HealthState.FAILED and own.state is not HealthState.CLOSED:
            own = replace(own, state=below.state, problems=own.problems + below.problems)
        return replace(own, reconnects=below.reconnects)

    def _declare(self) -> Guarantees:
        below = self._adapter.guarantees
        most = below.max_frame_bytes - SEGMENT_OVERHEAD
        # A log hands out again what was not done when its reader died.
        again = below.durable
        return replace(below, ordered=True, reliable=True, duplicates=again, max_frame_bytes=most)

    def statistics(self) -> TransportStatistics:
        own, below = super().statistics(), self._adapter.statistics()
        return replace(own, faults=dict(Counter(own.faults) + Counter(below.faults)))

    def _lane_statistics(self, lane: Lane) -> LaneStatistics:
        own, below = super()._lane_statistics(lane), self._adapter.statistics().lanes[lane]
        return replace(own, rejected_frames=own.rejected_frames + below.rejected_frames)

    # -- life -----------------------------------------------------------------------------

    async def aclose(self) -> None:
        await super().aclose()
        # After an abort, or a start that failed, the adapter may still be letting go.
        await self._adapter.aclose()

    async def retire(self) -> None:
        await self.aclose()
        await self._adapter.retire()

    async def _open(self) -> None:
        if isinstance(self._adapter, AdapterTransport):
            for lane in Lane:
                # CONTROL has always room: it carries acknowledgements, and is bounded by the
                # window of each peer.
                above = self._boxes[lane] if lane is Lane.DATA else None
                self._adapter.divert(lane, Passage(above, self._take, self._adapter_ended))
            self._adapter.when_moved(self._adapter_moved)
        await self._adapter.start()
        self.guarantees = self._declare()
        if not isinstance(self._adapter, AdapterTransport):
            for lane in Lane:
                self._spawn(self._read(lane), f"{self._name} {lane.value} reader")

    async def _flush(self) -> None:
        await super()._flush()
        self._parting = True
        for conversation in self._conversations.values():
            self._feed(conversation, CloseRequested())
        # A good-bye carries the last acknowledgement, so it is worth an answer.
        parting = self._conversations.values()
        while self._is_open and any(each.machine.phase is Phase.PARTING for each in parting):
            self._progress.clear()
            await self._progress.wait()
        # What is left now is for peers that are gone.
        if self.guarantees.durable:  # and frames, which only the log acknowledges
            await self._adapter.aclose()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(GOOD_BYE_PATIENCE):
                await self._adapter.aclose()

    def _release(self) -> None:
        self._adapter.abort()
        for conversation in self._conversations.values():
            if conversation.timer is not None:
                conversation.timer.cancel()
            for lane, lost in conversation.unacknowledged():
                self._undelivered(conversation.peer, lane, lost)
        for task in self._tasks:
            task.cancel()

    # -- sending --------------------------------------------------------------------------

    def _connect(self, to: Peer, lane: Lane) -> SessionLink:
        conversation = self._conversation(to)
        link = conversation.links[lane] = SessionLink(conversation, lane, self._config)
        return link

    def _readdress(self, link: SessionLink, to: Peer) -> None:
        # A peer lives in one place: the other lane goes there too.
        for each in self._conversation(to).links.values():
            each.peer = to

    def _wake(self, link: SessionLink) -> None:
        conversation = link.conversation
        if conversation.pump_scheduled and link.queue.bytes < self._coalesce_bytes:
            return
        if not conversation.is_open:
            self._ask(conversation, link)
        if link.lane is Lane.CONTROL or link.queue.bytes >= self._coalesce_bytes:
            self._pump(conversation, link)
        else:
            # Frames that are sent before the loop comes round again go together.
            self._pump_soon(conversation)

    def _pump_soon(self, conversation: Conversation) -> None:
        if not conversation.pump_scheduled:
            conversation.pump_scheduled = True
            self._loop.call_soon(self._pump_all, conversation)

    def _ask(self, conversation: Conversation, link: SessionLink) -> None:
        """Frames wait and there is no session: ask for one, if there can be one."""
        phase = conversation.machine.phase
        if phase is Phase.IDLE:
            self._feed(conversation, LinkUp())
        elif phase is Phase.REFUSED:  # for ever, and nobody must wait for ever
            self._undelivered(conversation.peer, link.lane, link.queue.drain())

    def _pump_all(self, conversation: Conversation) -> None:
        conversation.pump_scheduled = False
        if self._is_open:
            for link in conversation.links.values():
                if link.queue and not conversation.is_open:  # it ended meanwhile
                    self._ask(conversation, link)
                self._pump(conversation, link)

    def _pump(self, conversation: Conversation, link: SessionLink) -> None:
        machine, queue, lane = conversation.machine, link.queue, link.lane
        moved = 0
        while queue and conversation.is_open:
            if self._below_is_full(conversation, lane):
                return  # what waits shall wait here, where it is bounded
            if moved >= TURN_BYTES:
                self._pump_soon(conversation)
                return
            items, size = machine.sending[lane].room()
            most = min(items, self._coalesce_items)
            payloads, total = queue.take(most, min(size, self._coalesce_bytes))
            if not payloads:  # one that is larger than what is put together goes alone
                payloads, total = queue.take(min(items, 1), size)
            if not payloads:
                return
            moved += total
            self._feed(conversation, Submit(lane, tuple(payloads)))

    # -- receiving ------------------------------------------------------------------------

    async def receive(self, lane: Lane) -> Inbound:
        inbound = self._boxes[lane].get_nowait() if self._received_at_once < TURN_BYTES else None
        if inbound is None:
            inbound = await super().receive(lane)
        elif lane is Lane.DATA and isinstance(inbound, Frame):
            self._received_at_once += len(inbound.payload) + TURN_PER_FRAME
        if isinstance(inbound, Frame) and isinstance(inbound.receipt, Intake):
            intake = inbound.receipt
            intake.items += 1
            intake.size += len(inbound.payload)
            # A quarter of the window at a time, or in a moment if the application waits for more.
            if intake.items >= self._tell_items or intake.size >= self._tell_bytes:
                self._tell_taken(intake)
            elif not intake.scheduled and not self._boxes[lane]:
                intake.scheduled = True
                self._loop.call_later(self._limits.acknowledge_after, self._consumed, intake)
        return inbound

    def done(self, frame: Frame) -> None:
        """The log forgets a segment when all of its frames are done."""
        parcel = frame.receipt
        if isinstance(parcel, Parcel):
            parcel.left -= 1
            if parcel.left == 0:
                self._adapter.done(parcel.frame)

    def _consumed(self, intake: Intake) -> None:
        intake.scheduled = False
        self._tell_taken(intake)

    def _tell_taken(self, intake: Intake) -> None:
        conversation = intake.conversation
        if conversation.intakes[intake.lane] is intake and intake.items and self._is_open:
            items, size = intake.items, intake.size
            intake.items = intake.size = 0
            self._feed(conversation, Consumed(intake.lane, items, size))

    def _room(self, lane: Lane) -> None:
        if lane is Lane.DATA:
            self._space.set()
            if isinstance(self._adapter, AdapterTransport):
                self._adapter.room(lane)

    def _adapter_ended(self, error: Exception) -> None:
        if not self._is_closing and not isinstance(error, EndOfStream):
            self._fail(error)

    async def _read(self, lane: Lane) -> None:
        """Read from a transport that cannot hand over what comes in by itself."""
        while True:
            # What is not read stays with the adapter, which holds its peers back.
            while lane is Lane.DATA and not self._has_room(lane, 1):
                self._space.clear()
                await self._space.wait()
            try:
                inbound = await self._adapter.receive(lane)
            except EndOfStream:
                return
            self._take(inbound)

    def _take(self, inbound: Inbound) -> None:
        if isinstance(inbound, Frame):
            try:
                segment = self._decode(inbound.payload)
            except CodecError as error:
                self._rejected(inbound.lane)
                logger.warning("frame of %s rejected: %s", inbound.sender, error)
            else:
                conversation = self._conversation(inbound.sender)
                if self.guarantees.durable:
                    if conversation.machine.phase is Phase.CLOSED:
                        return  # not heard, so not done: the log has it for the next incarnation
                    self._logged = inbound
                self._feed(conversation, Received(inbound.sender.id, segment, inbound.lane))
                if self.guarantees.durable and self._logged is None:
                    return  # delivered: done when the application says so
                self._logged = None
            self._adapter.done(inbound)
        elif isinstance(inbound, PeerUp):
            conversation = self._conversation(inbound.peer)
            if conversation.machine.phase is not Phase.IDLE:
                self._feed(conversation, LinkUp())
        elif isinstance(inbound, PeerDown):
            logger.info("link to %s is down: %s", inbound.peer, inbound.reason)
            if inbound.refused:
                self._give_up(self._conversation(inbound.peer), inbound.reason)
        elif isinstance(inbound, Undelivered) and self.guarantees.durable:
            self._never_logged(inbound)
        elif isinstance(inbound, Undelivered) and inbound.reason:
            # Segments that can never arrive, and what is behind them waits for them.
            self._give_up(self._conversation(inbound.peer), inbound.reason)
        elif isinstance(inbound, Undelivered):
            # Segments that the adapter could not hand over; the machine sends them again.
            logger.info("%d segments to %s not handed over", len(inbound.payloads), inbound.peer)

    def _decode(self, data: bytes | Halves) -> Segment:
        if isinstance(data, Halves):
            return self._codec.decode_split(data.start, data.rest)
        return self._codec.decode(data)

    def _never_logged(self, lost: Undelivered) -> None:
        """The log did not take these segments, and nobody sends them again: name their frames."""
        for data in lost.payloads:
            self._undelivered(lost.peer, lost.lane, list(self._codec.decode(data).payloads))
