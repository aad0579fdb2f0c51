"""The machines of a session: one for each peer, what goes into them and what comes of it."""

import logging
from abc import abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from dsp.core.machine import Received, Reject, Send, Tick
from dsp.core.outgoing import Outgoing
from dsp.core.session.durable import DurableMachine
from dsp.core.session.machine import SessionEvent, SessionMachine
from dsp.core.session.segments import (
    CloseRequested,
    Deliver,
    Ended,
    Established,
    LinkRefused,
    Phase,
    Segment,
    SegmentKind,
    SessionLimits,
    Superseded,
    Suspected,
)
from dsp.core.session.wire import SegmentCodec, split
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, PeerUnreachable, WouldBlock
from dsp.transport.adapter import AdapterTransport
from dsp.transport.base import Frame, Transport
from dsp.transport.conversation import Conversation, Intake, Parcel, SessionLink

if TYPE_CHECKING:
    import asyncio

    from dsp.config import TransportConfig

__all__ = ["Conversing"]

logger = logging.getLogger(__name__)

MAX_PENDING_SEGMENTS = 100_000
# From here on it costs less to hand over two parts than to put them together.
SPLIT_BYTES = 64 * 1024


class Conversing(AdapterTransport[SessionLink]):
    """The half of a session that feeds machines and carries out their effects."""

    def __init__(
        self,
        adapter: Transport,
        config: "TransportConfig",
        node: NodeId,
        limits: SessionLimits,
    ) -> None:
        super().__init__(config, node)
        self._adapter = adapter
        self._below = adapter if isinstance(adapter, AdapterTransport) else None
        # Conversations with frames that wait until the adapter has handed some over.
        self._held: dict[Conversation, None] = {}
        self._limits = limits
        self._codec = SegmentCodec()
        self._conversations: dict[NodeId, Conversation] = {}
        self._addresses: dict[NodeId, Peer] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._parting = False
        # The frame of a durable adapter that is being taken; None when it was delivered.
        self._logged: Frame | None = None
        self._outgoing = Outgoing(
            adapter,
            self._codec,
            self._addresses,
            spawn=self._spawn,
            failed=self._send_failed,
            max_pending=MAX_PENDING_SEGMENTS,
        )
        self._outgoing.progress = self._adapter_has_room

    def _next_epoch(self) -> int:
        return 0  # the adapter has one, and takes it when it starts

    def _below_is_full(self, conversation: Conversation, lane: Lane) -> bool:
        """Tell whether a segment would only wait in the adapter; if so, it tells when that ends."""
        peer = conversation.peer.id
        if not self._outgoing.idle and self._outgoing.waiting(peer, lane):
            return True
        if self._below is None or lane is Lane.CONTROL or not self._below.is_full(peer, lane):
            return False
        self._held[conversation] = None
        return True

    def _adapter_moved(self) -> None:
        # Not at once: this may be in the middle of what one event of a machine led to.
        if self._held:
            held, self._held = self._held, {}
            for conversation in held:
                self._pump_soon(conversation)

    def _adapter_has_room(self) -> None:
        for conversation in self._conversations.values():
            for link in conversation.links.values():
                if link.queue:
                    self._pump(conversation, link)

    @abstractmethod
    def _pump_soon(self, conversation: Conversation) -> None:
        """``_pump`` both lanes when the loop comes round."""

    @abstractmethod
    def _pump(self, conversation: Conversation, link: SessionLink) -> None:
        """Submit what waits in a link's queue, as far as there is room."""

    @abstractmethod
    def _tell_taken(self, intake: Intake) -> None:
        """Tell the machine what the application took of a lane."""

    def _send_failed(self, effect: Send) -> None:
        """The adapter refused a segment that had waited for room."""
        self._give_up(self._conversations[effect.to], "the transport below does not reach it")

    def _conversation(self, peer: Peer) -> Conversation:
        conversation = self._conversations.get(peer.id)
        if conversation is None:
            kind = DurableMachine if self._adapter.guarantees.durable else SessionMachine
            machine = kind(peer.id, self._adapter.epoch, self._limits)
            if self._parting:
                machine.handle(CloseRequested(), self._loop.time())
            conversation = self._conversations[peer.id] = Conversation(peer, machine)
            self._addresses[peer.id] = peer
        elif conversation.peer is not peer:
            conversation.peer = self._addresses[peer.id] = peer
        return conversation

    def _feed(self, conversation: Conversation, event: SessionEvent, due: float = 0.0) -> None:
        now = self._loop.time()
        if now < due:  # a loop fires timers that are due within the resolution of its clock
            now = due
        flows = False
        for effect in conversation.machine.handle(event, now):
            if isinstance(effect, Send):
                self._transmit(conversation, effect)
            elif isinstance(effect, Deliver):
                self._arrived_together(
                    conversation.peer,
                    effect.lane,
                    effect.payloads,
                    self._receipt(conversation, effect),
                )
            else:
                self._carry_out(conversation, effect)
                flows = True
        # Acknowledgements make room, and so does whatever is neither data nor a message.
        if flows or (
            isinstance(event, Received)
            and cast("Segment", event.message).kind is not SegmentKind.DATA
        ):
            moved = 0
            for link in conversation.links.values():
                if link.queue:
                    self._pump(conversation, link)
                moved += link.moved()
            # A heartbeat is no progress: what is connected and stands still must be seen.
            if moved != conversation.moved:
                conversation.moved = moved
                self._handed_over()
            self._progress.set()  # whoever closes looks whether the good-byes are over
        # The earliest that a machine ever asks for is the time of an acknowledgement.
        if conversation.armed is None or conversation.armed > now + self._limits.acknowledge_after:
            self._arm(conversation)

    def _receipt(self, conversation: Conversation, effect: Deliver) -> object:
        if self._logged is None:
            return conversation.intakes[effect.lane]
        frame, self._logged = self._logged, None
        return Parcel(frame, len(effect.payloads))

    def _carry_out(
        self,
        conversation: Conversation,
        effect: Established | Suspected | Ended | Reject | Superseded,
    ) -> None:
        if isinstance(effect, Established):
            conversation.refusal = None
            self._peer_up(conversation.peer)
        elif isinstance(effect, Suspected):
            self._peer_down(conversation.peer, effect.reason)
        elif isinstance(effect, Ended):
            self._over(conversation, effect)
        elif isinstance(effect, Reject):
            self._rejected(Lane.CONTROL)
            logger.warning("%s broke the session protocol: %s", effect.sender, effect.reason)
        else:
            reason = (
                "a newer incarnation of this node is known there: this one is stale, or its clock "
                "was set back (transport.epoch_file)"
            )
            logger.error("%s refuses %s: %s", conversation.peer.id, self._node, reason)
            self._problem(f"stale at {conversation.peer.id}", f"{conversation.peer.id}: {reason}")
            self._refused(conversation.peer, reason)

    def _transmit(self, conversation: Conversation, effect: Send) -> None:
        segment = cast("Segment", effect.message)
        again = segment.sequence <= conversation.handed[effect.lane]
        if again and self._outgoing.waiting(effect.to, effect.lane):
            return  # what waits for a slow adapter is enough: more of it would not be sooner there
        if not again:
            conversation.handed[effect.lane] = segment.sequence
        try:
            if not self._outgoing.idle:
                self._outgoing.send(effect)
                return
            halves = split(segment, SPLIT_BYTES) if self._below is not None else None
            if self._below is not None and halves is not None:
                self._below.send_halves_nowait(conversation.peer, *halves, lane=effect.lane)
            else:
                data = self._codec.encode(segment)
                self._adapter.send_nowait(conversation.peer, data, lane=effect.lane)
        except WouldBlock:
            self._outgoing.send(effect)
        except PeerUnreachable as error:
            self._give_up(conversation, str(error))
        except ClosedError as error:
            if not self._is_closing:  # nobody but us closes it, so it broke
                self._fail(error)

    def _give_up(self, conversation: Conversation, reason: str) -> None:
        """The adapter says that asking is in vain: end the session, once this step is through.

        It may say so in the middle of what one event of the machine led to.
        """
        epoch = conversation.machine.epoch

        def give_up() -> None:
            if self._is_open and conversation.machine.epoch == epoch:
                self._feed(conversation, LinkRefused(reason))

        self._loop.call_soon(give_up)

    def _over(self, conversation: Conversation, ended: Ended) -> None:
        """A session ended: name every frame that was accepted and not acknowledged."""
        peer = conversation.peer
        lost = list(conversation.begin_anew(ended))
        if not ended.refused:
            self._peer_down(peer, ended.reason)
        elif any(frames for _, frames in lost) or conversation.refusal != ended.reason:
            # A peer that we must not answer may ask again and again: that is told once.
            conversation.refusal = ended.reason
            self._refused(peer, ended.reason)
        for lane, frames in lost:
            self._undelivered(peer, lane, frames)
        self._handed_over()

    # -- time and tasks -------------------------------------------------------------------

    def _arm(self, conversation: Conversation) -> None:
        deadline = conversation.machine.next_deadline()
        if deadline is None or (conversation.armed is not None and conversation.armed <= deadline):
            return  # an early timer finds nothing due and arms itself anew
        if conversation.timer is not None:
            conversation.timer.cancel()
        conversation.armed = deadline
        conversation.timer = self._loop.call_at(deadline, self._tick, conversation)

    def _tick(self, conversation: Conversation) -> None:
        # What the application took goes with the acknowledgement that is due, not after it. While
        # the clock counts as armed nothing sets it for what is due anyway.
        for intake in conversation.intakes.values():
            self._tell_taken(intake)
        due, conversation.armed = conversation.armed, None
        conversation.timer = None
        if self._is_open:
            self._feed(conversation, Tick(), due or 0.0)
            if conversation.machine.phase is Phase.CLOSED:
                self._progress.set()  # whoever closes waits for the end of the good-byes

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = self._loop.create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if not (self._is_closing and isinstance(error, ClosedError)):
            self._fail(error)
