"""The lock that users hold: ``async with mutex.enter():``.

``GroupMutex`` knows no transport: it is handed a function that takes events to a machine, and is
told of the machine's effects. ``open_mutex`` runs one over any transport by a driver of its own;
``RoutedMutex`` is for processes that have one endpoint and a router above it, as the engine has.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from dsp.core.driver import MachineDriver
from dsp.core.machine import Cancelled, Machine, Received, Reject, Send, Tick
from dsp.core.types import NodeId, Peer
from dsp.errors import ClosedError, LeaseLost, LocalProtocolError
from dsp.mutex.events import (
    Admit,
    EnterRequested,
    ExitRequested,
    JoinRequested,
    LeaveRequested,
    Left,
    MemberRemoved,
    MutexEffect,
    MutexEvent,
    Revoke,
    Settled,
    Superseded,
)
from dsp.mutex.member import Member
from dsp.mutex.seat import Seat
from dsp.mutex.wire import MutexCodec
from dsp.transport.base import Transport

__all__ = ["Entry", "GroupMutex", "RoutedMutex", "open_mutex"]

Present = Callable[["Entry"], Awaitable[None]]


@dataclass(slots=True, eq=False)
class Entry:
    """One stay inside.

    Attributes:
        number: the fencing number; show it with every effect.
        numbers: the number for each edge, where the node takes several.
        lost: why the entry is over before its holder left; None while it is not.
    """

    number: int
    numbers: tuple[tuple[str, int], ...] = ()
    lost: str | None = None

    def check(self) -> None:
        """Raise if this process has heard that the entry is over.

        It may be over without this process having heard: only the resource can tell, by the number.

        Raises:
            LeaseLost: it is.
        """
        if self.lost is not None:
            raise LeaseLost(self.number, reason=self.lost)


@dataclass(slots=True)
class _Request:
    token: int
    admitted: "asyncio.Future[Entry]"
    entry: Entry | None = field(default=None)


class GroupMutex:
    """Group mutual exclusion for the tasks of one member.

    Tasks of one member take turns in the order in which they ask; members of one group are inside
    together; members of two groups never are.

    Args:
        submit: takes an event to the machine, whose effects then reach ``perform``, in order.
        present: called with each entry before its block begins, to show the number to the resource
            that it guards. What raises ``LeaseLost`` makes the request begin again.
    """

    def __init__(
        self, submit: Callable[[MutexEvent], None], *, present: Present | None = None
    ) -> None:
        self._submit = submit
        self._present = present
        self._turn = asyncio.Lock()
        self._tokens = itertools.count(1)
        self._request: _Request | None = None
        self._joined = asyncio.Event()
        self._left = asyncio.Event()
        self._closed = False

    # -- for users ------------------------------------------------------------------------

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[Entry]:
        """Be inside while the block lasts.

        Cancelled while it waits, the request is withdrawn. Cancelled inside, the block ends like
        any other. Any number of tasks may call it; they take turns.

        Raises:
            LeaseLost: on leaving, if the entry was over before; what the block did may have been
                refused, and others may have been inside.
            ClosedError: the lock was closed.
        """
        async with self._turn:
            entry = await self._get_in()
            try:
                yield entry
            finally:
                self._request = None
                if entry.lost is None and not self._closed:
                    self._leave(entry)
            entry.check()

    async def joined(self) -> None:
        """Wait until all members know this one. Entering waits for it by itself."""
        await self._joined.wait()

    async def leave(self) -> None:
        """Leave both groups for good, after the visits that are under way.

        Raises:
            ClosedError: the lock was closed.
        """
        async with self._turn:
            self._require_open()
            self._submit(LeaveRequested())
        await self._left.wait()

    def remove(self, member: NodeId) -> None:
        """Say that a member is gone for good, where that is known: no majority has to agree."""
        self._require_open()
        self._submit(MemberRemoved(member))

    # -- for who runs the machine ---------------------------------------------------------

    def perform(self, effect: MutexEffect) -> None:
        """Take an effect of the machine that is not a message."""
        request = self._request
        match effect:
            case Admit(token):
                if request is not None and request.token == token and not request.admitted.done():
                    request.entry = Entry(effect.number, effect.numbers)
                    request.admitted.set_result(request.entry)
            case Revoke(token, reason):
                if request is not None and request.token == token and request.entry is not None:
                    request.entry.lost = reason
            case Settled():
                self._joined.set()
            case Left():
                self._left.set()
            case _:
                raise LocalProtocolError(f"the lock does not perform {effect!r}")

    def close(self) -> None:
        """Fail whoever waits; nobody gets in any more."""
        self._closed = True
        if self._request is not None and not self._request.admitted.done():
            self._request.admitted.set_exception(ClosedError("the lock was closed"))

    # -- inside ---------------------------------------------------------------------------

    async def _get_in(self) -> Entry:
        while True:
            self._require_open()
            token = next(self._tokens)
            waiter: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
            request = self._request = _Request(token, waiter)
            try:
                self._submit(EnterRequested(token))
                entry = await waiter
                if self._present is not None and entry.lost is None:
                    await self._present(entry)
                if entry.lost is None:
                    return entry
            except LeaseLost as refusal:
                self._refused(request.entry, refusal)
            except BaseException:
                self._request = None
                lost = request.entry is not None and request.entry.lost is not None
                if not self._closed and not lost:
                    self._submit(Cancelled(token))
                raise

    def _leave(self, entry: Entry) -> None:
        try:
            self._submit(ExitRequested())
        except LocalProtocolError:
            # Revoked, and the news of it is still on its way from the machine to us.
            entry.lost = "others held this member for dead"

    def _refused(self, entry: Entry | None, refusal: LeaseLost) -> None:
        if entry is not None and entry.lost is None:
            # The machine revokes the entry, and begins anew with everybody.
            edges = [edge for edge, number in entry.numbers if number == refusal.number]
            self._submit(Superseded(refusal.highest, edges[0] if edges else ""))

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the lock was closed")


class RoutedMutex:
    """A lock whose messages go through somebody else's endpoint.

    Args:
        machine: a ``Member``, or a ``Chain`` of several.
        send: takes a message to a member, now, in order.
        present: see ``GroupMutex``.
        rejected: told of messages that no correct member sends.
    """

    def __init__(
        self,
        machine: Machine[MutexEvent, MutexEffect],
        send: Callable[[NodeId, Hashable], None],
        *,
        present: Present | None = None,
        rejected: Callable[[Reject], None] = lambda reject: None,
    ) -> None:
        self.machine = machine
        self.mutex = GroupMutex(self.submit, present=present)
        self._send = send
        self._rejected = rejected
        self._timer: asyncio.TimerHandle | None = None

    def receive(self, sender: NodeId, message: Hashable) -> None:
        """Hand in a message that came for this lock."""
        self.submit(Received(sender, message))

    def submit(self, event: MutexEvent) -> None:
        """Hand in any other event: ``JoinRequested`` first, ``PeerLost`` when a member is gone."""
        loop = asyncio.get_running_loop()
        effects = self.machine.handle(event, loop.time())
        self._stop_timer()
        deadline = self.machine.next_deadline()
        if deadline is not None:
            self._timer = loop.call_at(deadline, self.submit, Tick())
        for effect in effects:
            match effect:
                case Send(to, message):
                    self._send(to, message)
                case Reject():
                    self._rejected(effect)
                case _:
                    self.mutex.perform(effect)

    def close(self) -> None:
        """Fail whoever waits, and take no more time. Nothing is sent: leave before, if you can."""
        self._stop_timer()
        self.mutex.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


@asynccontextmanager
async def open_mutex(
    transport: Transport,
    groups: tuple[Sequence[Peer], Sequence[Peer]],
    *,
    present: Present | None = None,
    quorum: bool = True,
    patience: float = 1.0,
    check: bool = False,
) -> AsyncIterator[GroupMutex]:
    """Take part in mutual exclusion of two groups over a transport, while the block lasts.

    Args:
        transport: a started session; this lock reads its CONTROL lane.
        groups: the members that are known, this one among them. One other member is enough to find
            all, if it is known to them.
        present: see ``GroupMutex``.
        quorum: whether a majority is needed to hold a suspect for dead. Without it, of two halves
            that do not hear each other both go on, and only the resource's ``Fence`` is left.
        patience: seconds without a new suspicion before suspects are held for dead; not below the
            session's ``heartbeat_every``.
        check: check the machine's invariants after every step.

    At the end of the block the member leaves in good order.
    """
    contact = transport.contact
    names = tuple(tuple(peer.id for peer in group) for group in groups)
    member = Member(
        Seat(contact.id, (names[0], names[1])),
        generation=transport.epoch,
        quorum=quorum,
        patience=patience,
    )

    def address_of(name: NodeId) -> str:
        if name == contact.id:
            return contact.address
        peer = driver.peers.get(name)
        return "" if peer is None else peer.address

    def learn(name: NodeId, address: str) -> None:
        if name not in driver.peers:
            driver.add_peer(Peer(name, address))

    driver: MachineDriver[MutexEvent, MutexEffect] = MachineDriver(
        member,
        transport,
        MutexCodec(address_of, learn),
        peers=(peer for group in groups for peer in group if peer.id != contact.id),
        perform=lambda effect: mutex.perform(effect),
        check=check,
    )
    mutex = GroupMutex(driver.submit, present=present)
    try:
        async with driver:
            driver.submit(JoinRequested())
            yield mutex
            with suppress(LocalProtocolError):  # it has left already
                driver.submit(LeaveRequested())
    finally:
        mutex.close()
