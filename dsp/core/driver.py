"""Runs one machine on asyncio, over one transport.

All that a machine must not do is done here: waiting, sending, timing, waking tasks, logging. One
``TaskGroup`` holds every task, so none ends unnoticed: what a reader, the timer or an effect raises
ends the driver and comes out of its ``async with`` block.

``handle`` is never kept waiting. Effects are performed in order: at once as far as they need not
wait, which spares a turn of the loop for each message, and by one task from the first that does. A
message that finds its queue full goes to a pump of its own for that peer and lane, so a slow peer
delays nobody else.
While DATA messages are waiting there, no DATA is read; CONTROL is always read, because two drivers
that stopped reading until the other reads would wait for ever.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar, cast

from dsp.core.machine import (
    Cancelled,
    Fail,
    Machine,
    PeerAppeared,
    PeerLost,
    Received,
    Reject,
    Resolve,
    Send,
    SendFailed,
    Tick,
)
from dsp.core.outgoing import MessageCodec, Outgoing
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import (
    ClosedError,
    CodecError,
    EndOfStream,
    LocalProtocolError,
    ProtocolError,
)
from dsp.transport.base import Frame, Inbound, PeerDown, PeerUp, Transport, Undelivered

__all__ = ["MessageCodec", "MachineDriver", "Step"]

logger = logging.getLogger(__name__)

HISTORY = 1000
EventT = TypeVar("EventT")
EffectT = TypeVar("EffectT")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a machine: what went in, and what came out."""

    time: float
    event: object
    effects: tuple[object, ...]


async def _no_effects(effect: object) -> NoReturn:
    raise LocalProtocolError(f"nobody performs {effect!r}: give the driver a perform function")


class MachineDriver(Generic[EventT, EffectT]):
    """Runs a machine while its ``async with`` block lasts.

    Args:
        machine: the protocol.
        transport: a started transport. The driver reads it and does not close it.
        codec: how messages become bytes.
        peers: addresses of the peers known at the start; others are learnt as they speak.
        perform: performs the machine's own effects, in order. What it returns is awaited, and later
            effects wait for that; None if there is nothing to wait for.
        lanes: the lanes that this machine reads.
        check: call ``check_invariants`` after every step.
        max_pending: how many messages may wait for full queues before the driver gives up.
        drain_timeout: how long leaving the block waits for effects that are still to be performed.
        observe: called with every step, for traces.
        undelivered: told of frames that did not arrive on lanes that this machine does not read,
            where the application itself sends there. Without it they count as the machine's own.
    """

    def __init__(
        self,
        machine: Machine[EventT, EffectT],
        transport: Transport,
        codec: MessageCodec,
        *,
        peers: Iterable[Peer] = (),
        perform: Callable[[EffectT], Awaitable[None] | None] = _no_effects,
        lanes: tuple[Lane, ...] = (Lane.CONTROL,),
        check: bool = False,
        max_pending: int = 10_000,
        drain_timeout: float = 5.0,
        observe: Callable[[Step], None] | None = None,
        undelivered: Callable[[Undelivered], None] | None = None,
    ) -> None:
        self.machine = machine
        self.history: deque[Step] = deque(maxlen=HISTORY)
        self.rejected = 0
        self._transport = transport
        self._codec = codec
        self._peers = {peer.id: peer for peer in peers}
        self._perform_own = perform
        self._lanes = lanes
        self._check = check
        self._drain_timeout = drain_timeout
        self._observe = observe
        self._undelivered = undelivered
        self._effects: deque[object] = deque()
        # What the effect that was begun last waits for; it is no longer among the others.
        self._unfinished: Awaitable[None] | None = None
        self._performing = False
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._rearm = asyncio.Event()
        self._armed: float | None = None
        self._outgoing = Outgoing(
            transport,
            codec,
            self._peers,
            spawn=self._spawn,
            failed=lambda lost: self._common(SendFailed(lost.to, (lost.message,), lost.lane)),
            max_pending=max_pending,
        )
        self._outgoing.progress = self._work.set
        self._tokens = itertools.count(1)
        self._waiters: dict[Hashable, asyncio.Future[Any]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._workers: dict[asyncio.Task[None], None] = {}
        self._started = False
        self._fatal: BaseException | None = None

    # -- for users ------------------------------------------------------------------------

    @property
    def peers(self) -> Mapping[NodeId, Peer]:
        """Every peer whose address is known."""
        return self._peers

    def add_peer(self, peer: Peer) -> None:
        """Make a peer's address known."""
        self._peers[peer.id] = peer

    def submit(self, event: EventT) -> None:
        """Give the machine a local event, now. Its effects follow in order.

        Raises:
            LocalProtocolError: the machine's state does not allow it; nothing changed.
            ClosedError: the driver is not running.
        """
        self._require_running()
        self._step(event)

    async def ask(self, make_event: Callable[[Hashable], EventT]) -> Any:  # noqa: ANN401
        """Give the machine a request and wait until it resolves.

        Args:
            make_event: makes the event from the token that the machine puts into its ``Resolve``
                or ``Fail`` effect.

        Cancelled, the machine gets ``Cancelled(token)`` and withdraws the request. That event may
        come after the ``Resolve``, if both happened in the same step of the loop.

        Raises:
            ProtocolError: the machine failed the request.
            ClosedError: the driver stopped first.
        """
        self._require_running()
        token = next(self._tokens)
        waiter = self._waiters[token] = asyncio.get_running_loop().create_future()
        try:
            self._step(make_event(token))
            return await waiter
        except asyncio.CancelledError:
            if self._tasks is not None:
                self._step(cast("EventT", Cancelled(token)))
            raise
        finally:
            del self._waiters[token]

    async def __aenter__(self) -> Self:
        if self._started:
            raise ClosedError("a driver runs once; make a new one")
        self._started = True
        group = asyncio.TaskGroup()
        self._tasks = await group.__aenter__()
        for lane in self._lanes:
            self._spawn(self._read(lane), f"{lane.value} reader")
        self._spawn(self._keep_time(), "timer")
        self._spawn(self._perform_effects(), "effects")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        group = self._tasks
        assert group is not None
        try:
            if exc is None and self._fatal is None:
                await self._drain()
        finally:
            self._tasks = None
            for worker in list(self._workers):
                worker.cancel()
            for waiter in self._waiters.values():
                if not waiter.done():
                    waiter.set_exception(ClosedError("the driver stopped"))
            await group.__aexit__(exc_type, exc, traceback)

    # -- one step -------------------------------------------------------------------------

    def _step(self, event: EventT) -> None:
        now = asyncio.get_running_loop().time()
        try:
            effects = self.machine.handle(event, now)
            if self._check:
                self.machine.check_invariants()
        except LocalProtocolError:
            raise
        except BaseException as error:
            # Whoever submitted the event gets it, and so does the block that runs the driver.
            error.add_note(f"while the machine handled {event!r}")
            self._fatal = error
            self._work.set()
            raise
        step = Step(now, event, tuple(effects))
        self.history.append(step)
        if self._observe is not None:
            self._observe(step)
        if effects:
            self._effects.extend(effects)
            self._perform_now()
        deadline = self.machine.next_deadline()
        if deadline is not None and (self._armed is None or deadline < self._armed):
            self._rearm.set()

    # -- tasks ----------------------------------------------------------------------------

    async def _read(self, lane: Lane) -> None:
        while True:
            if lane is Lane.DATA:
                await self._outgoing.data_flows.wait()
            try:
                inbound = await self._transport.receive(lane)
            except EndOfStream:
                return
            self._take(inbound)

    def _take(self, inbound: Inbound) -> None:
        match inbound:
            case Frame(sender, lane, payload):
                self._peers[sender.id] = sender
                try:
                    message = self._codec.decode(payload)
                except CodecError as error:
                    self._reject(sender.id, str(error))
                else:
                    self._common(Received(sender.id, message, lane))
                self._transport.done(inbound)
            case PeerUp(peer):
                self._peers[peer.id] = peer
                self._common(PeerAppeared(peer.id))
            case PeerDown(peer, reason):
                logger.info("peer %s is gone: %s", peer.id, reason)
                self._common(PeerLost(peer.id))
            case Undelivered(lane=lane) if self._undelivered and lane not in self._lanes:
                self._undelivered(inbound)
            case Undelivered(peer, lane, payloads):
                messages = tuple(self._codec.decode(payload) for payload in payloads)
                self._common(SendFailed(peer.id, messages, lane))

    async def _keep_time(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._armed = self.machine.next_deadline()
            self._rearm.clear()
            if self._armed is not None and self._armed <= loop.time():
                self._common(Tick())
                await asyncio.sleep(0)  # a deadline that stays in the past must not stop the loop
                continue
            try:
                async with asyncio.timeout_at(self._armed):
                    await self._rearm.wait()
            except TimeoutError:
                continue  # the deadline has come, or has moved: look again

    async def _perform_effects(self) -> None:
        while True:
            if self._fatal is not None:
                raise self._fatal
            if self._unfinished is not None:
                await self._unfinished
                self._unfinished = None
                self._perform_now()
                continue
            if not self._outgoing.pending:
                self._idle.set()
            self._work.clear()
            await self._work.wait()

    def _perform_now(self) -> None:
        """Perform effects until one has to be waited for, which the task does."""
        if self._performing or self._unfinished is not None:
            return  # whoever is at it goes on with those that were added
        self._performing = True
        try:
            while self._effects and self._unfinished is None:
                self._unfinished = self._perform(self._effects.popleft())
        except BaseException as error:
            self._fatal = error
        finally:
            self._performing = False
        if self._unfinished is not None or self._fatal is not None:
            self._idle.clear()
            self._work.set()

    def _perform(self, effect: object) -> Awaitable[None] | None:
        match effect:
            case Send():
                self._outgoing.send(effect)
            case Resolve(token, value):
                waiter = self._waiters.get(token)
                if waiter is not None and not waiter.done():
                    waiter.set_result(value)
            case Fail(token, error):
                waiter = self._waiters.get(token)
                if waiter is not None and not waiter.done():
                    waiter.set_exception(ProtocolError(error))
            case Reject(sender, reason):
                self._reject(sender, reason)
            case _:
                return self._perform_own(cast("EffectT", effect))
        return None

    # -- inside ---------------------------------------------------------------------------

    def _common(self, event: object) -> None:
        """Hand on an event that every machine takes; a machine's own union includes it."""
        self._step(cast("EventT", event))

    def _reject(self, sender: NodeId, reason: str) -> None:
        self.rejected += 1
        logger.warning("message of %s rejected: %s", sender, reason)

    async def _drain(self) -> None:
        self._work.set()
        if self._unfinished is None and not self._outgoing.pending:
            return
        self._idle.clear()
        try:
            async with asyncio.timeout(self._drain_timeout):
                await self._idle.wait()
        except TimeoutError:
            waiting = len(self._effects) + self._outgoing.pending
            waiting += self._unfinished is not None
            logger.warning(
                "driver stopped with %d effects not performed after %g s",
                waiting,
                self._drain_timeout,
            )

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        assert self._tasks is not None
        task = self._tasks.create_task(work, name=f"dsp {name}")
        self._workers[task] = None
        task.add_done_callback(lambda ended: self._workers.pop(ended, None))

    def _require_running(self) -> None:
        if self._tasks is None:
            raise ClosedError("the driver is not running")
