"""The half that all adapters share: life cycle, bounded queues per link, inboxes, counters.

An adapter says how to open an endpoint, how to push the queue of a link into the network, and how
to let go. Everything that is easy to get wrong about waiting, cancelling and closing is here.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from dsp.errors import ClosedError, EndOfStream, FrameTooLarge
from dsp.transport.base import (
    Frame,
    HealthState,
    Inbound,
    Lane,
    LaneStatistics,
    NodeId,
    Peer,
    PeerDown,
    PeerUp,
    Transport,
    TransportHealth,
    TransportStatistics,
    Undelivered,
)
from dsp.transport.condition import Condition
from dsp.transport.epochs import epoch_of_start
from dsp.transport.link import TURN_BYTES, TURN_PER_FRAME, LaneCounters, Link
from dsp.transport.passage import Inbox
from dsp.transport.queues import BoundedQueue
from dsp.transport.states import HEALTH, State
from dsp.transport.watchdog import Stall, Watchdog

if TYPE_CHECKING:
    from dsp.config import TransportConfig

__all__ = ["Link", "AdapterTransport"]


LinkT = TypeVar("LinkT", bound=Link)


class AdapterTransport(Transport, Generic[LinkT]):
    """Base of the transports that talk to a network themselves.

    Subclasses implement the five methods at the end of this class and call ``_arrived``,
    ``_peer_up``, ``_peer_down``, ``_rejected`` and ``_handed_over`` as things happen.
    """

    def __init__(self, config: "TransportConfig", node: NodeId) -> None:
        self._config = config
        self._node = node
        self._state = State.NEW
        self._epoch = 0
        self._failure: BaseException | None = None
        self._links: dict[tuple[NodeId, Lane], LinkT] = {}
        self._up: dict[NodeId, Peer] = {}
        self._counters = {lane: LaneCounters() for lane in Lane}
        self._inboxes: dict[Lane, Inbox] = {
            lane: BoundedQueue(
                config.receive_queue_frames,
                config.receive_queue_bytes,
                on_room=lambda lane=lane: self._room(lane),  # type: ignore[misc]
            )
            for lane in Lane
        }
        self._progress: asyncio.Event = asyncio.Event()
        self._closed: asyncio.Event = asyncio.Event()
        self._progress_at: float | None = None
        self._sent_at_once = self._received_at_once = 0
        self._when_moved: Callable[[], None] = lambda: None
        self._condition = Condition(self._name)
        self._watchdog = Watchdog(config.stall_after, lambda: self._links, self._stalled)

    # -- the interface --------------------------------------------------------------------

    async def start(self) -> None:
        if self._state is not State.NEW:
            raise ClosedError(f"{self._name} was started before; make a new endpoint")
        self._state = State.OPEN
        self._loop = asyncio.get_running_loop()
        try:
            self._epoch = self._next_epoch()
            await self._open()
        except BaseException:
            self.abort()
            raise

    @property
    def epoch(self) -> int:
        return self._epoch

    async def send(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        size = len(payload)
        if lane is Lane.DATA:
            self._sent_at_once += size + TURN_PER_FRAME
            if self._sent_at_once >= TURN_BYTES:
                self._sent_at_once = 0
                await asyncio.sleep(0)  # before the frame is accepted: cancelled, it is not
        link = self._link(to, payload, lane)
        if not link.queue.try_put(payload, size):
            await link.queue.put(payload, size)
        self._accepted(link, size)

    def send_nowait(self, to: Peer, payload: bytes, *, lane: Lane) -> None:
        link = self._link(to, payload, lane)
        if not link.queue and self._hand_over(link, payload):
            self._handed_over_at_once(lane, len(payload))
            return
        link.queue.put_nowait(payload, len(payload))
        self._accepted(link, len(payload))

    async def receive(self, lane: Lane) -> Inbound:
        if self._state is State.NEW:
            raise ClosedError(f"{self._name} is not started")
        if self._received_at_once >= TURN_BYTES:
            self._received_at_once = 0
            await asyncio.sleep(0)  # before a frame is taken: cancelled, none is lost
        inbound = await self._inboxes[lane].get()
        if isinstance(inbound, Frame) and lane is Lane.DATA:
            self._received_at_once += len(inbound.payload) + TURN_PER_FRAME
        return inbound

    def done(self, frame: Frame) -> None:
        """Nothing to do: only a durable transport keeps a frame after ``receive``."""

    def statistics(self) -> TransportStatistics:
        return TransportStatistics(
            {lane: self._lane_statistics(lane) for lane in Lane},
            peers_up=len(self._up),
            faults=dict(self._condition.faults),
        )

    def health(self) -> TransportHealth:
        now = self._loop.time() if self._state is not State.NEW else 0.0
        return self._condition.health(
            HealthState.FAILED if self._failure is not None else HEALTH[self._state],
            self._failure,
            self._links,
            self._up,
            [stall for stall in self._watchdog.look(now) if self._is_open],
            received=sum(map(len, self._inboxes.values())),
            last_progress=None if self._progress_at is None else now - self._progress_at,
        )

    def divert(self, lane: Lane, inbox: Inbox) -> None:
        """Put what comes in on a lane elsewhere. For a layer above, before ``start``."""
        if self._state is not State.NEW:
            raise ClosedError(f"{self._name} is started; divert it before")
        self._inboxes[lane] = inbox

    def room(self, lane: Lane) -> None:
        """There is room again in an inbox that was diverted."""
        if self._is_open:
            self._room(lane)

    def is_full(self, to: NodeId, lane: Lane) -> bool:
        """Tell a layer above that has a queue of its own whether a frame would only wait here."""
        return False

    def when_moved(self, callback: Callable[[], None]) -> None:
        """Call this whenever frames have left a queue. For a layer above, before ``start``."""
        self._when_moved = callback

    def send_halves_nowait(self, to: Peer, start: bytes, rest: bytes, *, lane: Lane) -> None:
        """Send a frame that is not put together yet, as ``send_nowait`` does."""
        self.send_nowait(to, b"".join((start, rest)), lane=lane)

    async def aclose(self) -> None:
        if self._state is State.NEW:
            self._finish(State.CLOSED)
        if self._state is not State.OPEN:
            await self._closed.wait()
            return
        self._state = State.CLOSING
        try:
            for link in self._links.values():
                link.queue.end(self._was_closed)
            async with asyncio.timeout(self._config.drain_timeout):
                await self._flush()
        except TimeoutError:
            pass  # what is left is reported as Undelivered by _finish
        finally:
            if self._is_open:  # not aborted meanwhile
                self._finish(State.CLOSED)

    def abort(self) -> None:
        if self._state in (State.CLOSED, State.ABORTED):
            return
        self._finish(State.ABORTED)

    def _next_epoch(self) -> int:
        return epoch_of_start(self._config.epoch_file)

    # -- for subclasses to call -----------------------------------------------------------

    @property
    def _name(self) -> str:
        return f"{self.scheme} endpoint {self._node!r}"

    @property
    def _is_open(self) -> bool:
        return self._state in (State.OPEN, State.CLOSING)

    @property
    def _is_closing(self) -> bool:
        return self._state is not State.OPEN

    def _has_room(self, lane: Lane, size: int) -> bool:
        return self._inboxes[lane].has_room(size)

    def _arrived(self, sender: Peer, lane: Lane, payload: bytes, receipt: object = None) -> None:
        """Put a frame into the inbox. The adapter asks ``_has_room`` first or waits in its reader.

        A frame is never refused here: the bound is kept by whoever reads from the network.
        """
        self._peer_up(sender)
        self._progress_at = self._loop.time()
        self._counters[lane].receive(1, len(payload))
        self._inboxes[lane].force(Frame(sender, lane, payload, receipt), len(payload))

    def _arrived_together(
        self, sender: Peer, lane: Lane, payloads: tuple[bytes, ...], receipt: object
    ) -> None:
        """Put frames of one sender into the inbox, all in one step."""
        self._peer_up(sender)
        self._progress_at = self._loop.time()
        sizes = [len(payload) for payload in payloads]
        total = sum(sizes)
        self._counters[lane].receive(len(payloads), total)
        inbox = self._inboxes[lane]
        assert isinstance(inbox, BoundedQueue)
        inbox.force_all(
            [
                (Frame(sender, lane, payload, receipt), size)
                for payload, size in zip(payloads, sizes, strict=True)
            ],
            total,
        )

    def _peer_up(self, peer: Peer) -> None:
        known = self._up.get(peer.id)
        if known is not peer and self._is_open:
            self._up[peer.id] = peer  # the same object next time: to compare them costs more
            if known != peer:
                self._inboxes[Lane.CONTROL].force(PeerUp(peer), 0)

    def _peer_down(self, peer: Peer, reason: str) -> None:
        if self._up.pop(peer.id, None) is not None and self._is_open:
            self._inboxes[Lane.CONTROL].force(PeerDown(peer, reason), 0)

    def _refused(self, peer: Peer, reason: str) -> None:
        """A peer cannot be talked to, and trying again will not help by itself: say so."""
        self._up.pop(peer.id, None)
        if self._is_open:
            self._inboxes[Lane.CONTROL].force(PeerDown(peer, reason, refused=True), 0)

    def _reconnected(self, peer: Peer) -> None:
        self._condition.reconnects[peer.id] += 1

    def _problem(self, about: str, what: str | None) -> None:
        """Something that ``health`` tells is wrong, or, with None, is right again."""
        self._condition.problem(about, what)

    def _fault(self, cause: str, details: str) -> None:
        """Something went wrong with a peer or a stranger: it is counted and logged."""
        self._condition.fault(cause, details)

    def _rejected(self, lane: Lane) -> None:
        self._counters[lane].rejected += 1

    def _handed_over(self) -> None:
        """Frames left a link's queue for the network."""
        self._progress_at = self._loop.time()
        self._progress.set()
        self._when_moved()

    def _handed_over_at_once(self, lane: Lane, size: int) -> None:
        """A frame went past the queue."""
        self._counters[lane].accept(size)
        self._progress_at = self._loop.time()

    def _undelivered(self, peer: Peer, lane: Lane, payloads: list[bytes], reason: str = "") -> None:
        if payloads:
            self._counters[lane].undelivered += len(payloads)
            self._inboxes[Lane.CONTROL].force(Undelivered(peer, lane, tuple(payloads), reason), 0)

    def _fail(self, error: BaseException) -> None:
        """Something broke that no caller waits for: end everything, and tell every caller why."""
        if self._failure is None and self._is_open:
            self._failure = error
            self.abort()

    # -- inside ---------------------------------------------------------------------------

    def _link(self, to: Peer, payload: bytes, lane: Lane) -> LinkT:
        if self._state is not State.OPEN:
            raise (
                self._was_closed()
                if self._state is not State.NEW
                else ClosedError(f"{self._name} is not started")
            )
        if len(payload) > self.guarantees.max_frame_bytes:
            raise FrameTooLarge(
                f"{len(payload)} bytes to {to.id!r} on {lane.value}: {self._name} takes at most "
                f"{self.guarantees.max_frame_bytes} (transport.max_frame_bytes)"
            )
        link = self._links.get((to.id, lane))
        if link is None:
            link = self._links[to.id, lane] = self._connect(to, lane)
        elif link.peer is not to and link.peer.address != to.address:
            self._readdress(link, to)
        return link

    def _accepted(self, link: LinkT, size: int) -> None:
        self._counters[link.lane].accept(size)
        self._wake(link)
        if self._watchdog.timer is None and link.waiting():
            self._watchdog.watch(self._loop)

    async def _flush(self) -> None:
        while self._is_open and any(link.waiting() for link in self._links.values()):
            self._progress.clear()
            await self._progress.wait()

    def _finish(self, state: State) -> None:
        was_open = self._state is not State.NEW
        self._state = state
        self._watchdog.stop()
        try:
            if was_open:
                self._release()
        finally:
            for link in self._links.values():
                link.queue.end(self._was_closed)
                self._undelivered(link.peer, link.lane, link.pending())
            for inbox in self._inboxes.values():
                if state is State.ABORTED:
                    inbox.drain()
                    inbox.end(self._was_closed)
                else:
                    inbox.end(self._ended)
            self._up.clear()
            self._closed.set()
            self._progress.set()  # who closes waits in vain if it is aborted meanwhile

    def _stalled(self, stall: Stall) -> None:
        link = self._links[stall.key]
        self._condition.stalled(link, stall, connected=link.peer.id in self._up)

    def _was_closed(self) -> ClosedError:
        if self._failure is None:
            return ClosedError(f"{self._name} was closed")
        error = ClosedError(f"{self._name} broke: {self._failure!r}")
        error.__cause__ = self._failure
        return error

    def _ended(self) -> EndOfStream:
        return EndOfStream(f"{self._name} was closed and everything before that was received")

    def _lane_statistics(self, lane: Lane) -> LaneStatistics:
        inbox = self._inboxes[lane]
        queues = [link.queue for link in self._links.values() if link.lane is lane]
        return self._counters[lane].snapshot(queues, inbox)

    # -- for subclasses to implement ------------------------------------------------------

    @abstractmethod
    async def _open(self) -> None:
        """Open the endpoint; on failure raise ``ConnectError``."""

    @abstractmethod
    def _connect(self, to: Peer, lane: Lane) -> LinkT:
        """Make the link to a peer, without waiting. Raise ``PeerUnreachable`` for a bad address."""

    @abstractmethod
    def _readdress(self, link: LinkT, to: Peer) -> None:
        """The peer moved: the same link goes to another address from now on."""

    @abstractmethod
    def _wake(self, link: LinkT) -> None:
        """A frame was added to the link's queue: hand over what can be handed over now."""

    def _hand_over(self, link: LinkT, payload: bytes) -> bool:
        """Hand a frame over at once, past the empty queue of its link; tell whether that went."""
        return False

    @abstractmethod
    def _release(self) -> None:
        """Let go of everything at once. Called exactly once, and not if ``start`` never was."""

    def _room(self, lane: Lane) -> None:
        """The inbox of a lane has room again."""
