"""What comes to an instance: queue, room for more, and what senders are told."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from dsp._pb.balance_pb2 import BalanceRequest
from dsp._pb.engine_pb2 import EngineBatch
from dsp.core.types import NodeId
from dsp.stream.batch import Batch
from dsp.stream.codecs import Codec, Payload, decode
from dsp.stream.parcels import Progress
from dsp.stream.room import FIRST_ROOM
from dsp.stream.tokens import Token
from dsp.stream.wire import unpack_ids
from dsp.transport.base import Frame

__all__ = ["Arrival", "Inlet"]

# Batches of one sender that are remembered after they are done, should they be sent again.
REMEMBERED = 1024


@dataclass(slots=True, eq=False)
class Arrival:
    """A batch that came: decoded already, or still as a message."""

    sender: NodeId
    operator: str
    sequence: int
    records: int
    size: int
    born: float
    batch: Batch | None = None
    message: EngineBatch | None = None
    payload: Payload = b""
    frame: Frame | None = None
    request: BalanceRequest | None = None
    token: Token = field(init=False)

    def decoded(self, codec: Codec) -> Batch:
        """Give the batch; reads the message when first asked, wherever that is.

        Raises:
            CodecError: bytes that the codec does not know.
        """
        if self.batch is None:
            assert self.message is not None
            values: Any = decode(codec, self.payload)
            self.batch = Batch(values, unpack_ids(self.message), self.born)
        return self.batch

    def forget(self) -> None:
        """Let go of the records: they are through the body."""
        self.batch = self.message = None
        self.payload = b""


@dataclass(slots=True)
class Account:
    """What a sender is owed."""

    sender: NodeId
    near: bool = False
    done: list[int] = field(default_factory=list)
    delivered: int = 0
    worked: int = 0
    records: int = 0
    size: int = 0
    open: set[int] = field(default_factory=set)
    remembered: set[int] = field(default_factory=set)
    order: deque[int] = field(default_factory=deque)

    def remember(self, sequence: int) -> None:
        """A batch is done, and may still be sent again."""
        self.remembered.add(sequence)
        self.order.append(sequence)
        if len(self.order) > REMEMBERED:
            self.remembered.discard(self.order.popleft())


class Inlet:
    """The queue of an instance.

    Args:
        tell: sends progress to a sender.
        finished: told of each frame that is dealt with.
        at_most_once: whether batches are done when they are here.
        pause: seconds for which progress is gathered.
        grant: gives how many records may be under way here, and how many a batch may hold.
        near: whether a sender is in this process: then it is told as soon as the loop comes round.
            What it sent is let go of while it is still in the caches of the processor.
        watched: operators whose instances choose by what is executed here.
    """

    def __init__(
        self,
        tell: Callable[[NodeId, Progress], None],
        finished: Callable[[Frame], None],
        *,
        at_most_once: bool,
        pause: float,
        grant: Callable[[], tuple[int, int]],
        near: Callable[[NodeId], bool] = lambda name: False,
        watched: Collection[str] = (),
    ) -> None:
        self._tell = tell
        self._finished = finished
        self._at_most_once = at_most_once
        self._pause = pause
        self._grant = grant
        self._near = near
        self._watched = watched
        # What was granted last: half of it taken makes it worth to tell at once.
        self._granted: int | None = None
        self._soon = False
        self._takers = 0
        self._queue: deque[Arrival] = deque()
        self._accounts: dict[NodeId, Account] = {}
        self._owing: dict[NodeId, Account] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._wake = asyncio.Event()
        self.waiting = 0
        self.open = 0
        self.repeated = 0
        self.on_done: Callable[[], None] = lambda: None

    def _account(self, sender: NodeId) -> Account:
        account = self._accounts.get(sender)
        if account is None:
            account = self._accounts[sender] = Account(sender, self._near(sender))
        return account

    def put(self, arrival: Arrival) -> bool:
        """Take a batch; False if it was here before."""
        account = self._account(arrival.sender)
        if arrival.sequence in account.open or arrival.sequence in account.remembered:
            # Sent again although it came: only a session that ended in between does that.
            self.repeated += 1
            account.records += arrival.records
            account.size += arrival.size
            if arrival.operator in self._watched:
                account.worked += arrival.records
            if arrival.sequence in account.remembered and not self._at_most_once:
                account.done.append(arrival.sequence)
            self._owe(account)
            return False
        account.open.add(arrival.sequence)
        arrival.token = Token(lambda: self._done(arrival, account))
        self._queue.append(arrival)
        self.waiting += arrival.records
        self.open += 1
        self._wake.set()
        return True

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits here for a batch, or is about to get the first that came."""
        return self._takers > 0

    def adopt(self, arrival: Arrival, token: Token) -> None:
        """Take over a batch that is processed already: its sender is told when it is done."""
        account = self._account(arrival.sender)
        account.open.add(arrival.sequence)
        self.open += 1
        arrival.token = token
        token.tell(lambda: self._done(arrival, account))

    async def take(self, most: int) -> list[Arrival]:
        """Wait for batches; give as many as hold so many records, at least one."""
        while not self._queue:  # what woke us may have been taken meanwhile
            self._wake.clear()
            self._takers += 1
            try:
                await self._wake.wait()
            finally:
                self._takers -= 1
        return self._taken(most)

    def take_at_once(self) -> Arrival | None:
        """Give the next batch, if one waits."""
        return self._taken(1)[0] if self._queue else None

    def _taken(self, most: int) -> list[Arrival]:
        taken = [self._queue.popleft()]
        records = taken[0].records
        while self._queue and records + self._queue[0].records <= most:
            taken.append(self._queue.popleft())
            records += taken[-1].records
        for arrival in taken:
            account = self._accounts[arrival.sender]
            account.records += arrival.records
            account.size += arrival.size
            if self._at_most_once:
                account.delivered += 1
            self._owe(account)
        self.waiting -= records
        return taken

    def worked(self, arrival: Arrival) -> None:
        """The records of a batch went through the body: its sender may want to know that."""
        if arrival.operator not in self._watched:
            return
        account = self._accounts.get(arrival.sender)
        if account is not None:
            account.worked += arrival.records
            self._owe(account)

    def _done(self, arrival: Arrival, account: Account) -> None:
        account.open.discard(arrival.sequence)
        account.remember(arrival.sequence)
        self.open -= 1
        if arrival.frame is not None:
            self._finished(arrival.frame)
        if not self._at_most_once:
            account.done.append(arrival.sequence)
            self._owe(account)
        self.on_done()

    def _owe(self, account: Account) -> None:
        self._owing[account.sender] = account
        if account.near:
            if not self._soon:
                self._soon = True
                asyncio.get_running_loop().call_soon(self.settle)
            return
        if self._granted is None:
            # Of an instance that cannot say yet what it grants, senders assume as much.
            self._granted = self._grant()[0] or FIRST_ROOM[0]
        if 2 * account.records >= self._granted:
            # Others wait: what they are owed is little still, and goes together a little later.
            del self._owing[account.sender]
            self._settle(account)
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self.settle)

    def settle(self) -> None:
        """Tell every sender what it is owed."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._soon = False
        owing, self._owing = self._owing, {}
        for account in owing.values():
            self._settle(account)

    def _settle(self, account: Account) -> None:
        window, batch = self._grant()
        self._granted = window or None
        progress = Progress(
            done=account.done,
            delivered=account.delivered,
            records=account.records,
            bytes=account.size,
            window=window,
            batch=batch,
            worked=account.worked,
        )
        account.done = []
        account.delivered = account.worked = account.records = account.size = 0
        self._tell(account.sender, progress)

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return not self._queue

    def forget(self, sender: NodeId) -> None:
        """A sender is gone: it needs not be told any more."""
        account = self._accounts.get(sender)
        if account is not None and not account.open:
            del self._accounts[sender]
            self._owing.pop(sender, None)
