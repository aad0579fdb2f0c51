"""What goes from an instance to its successors: choice, room, and what is not done yet.

A batch is *assigned* when a successor is chosen for it. From then on it is kept, with the tokens of
the inputs that it came of, until the successor says that it is done. Whoever is lost gives back its
batches: they are assigned again, under the same numbers.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from dsp._pb.engine_pb2 import EngineProgress
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.stream.batch import Batch
from dsp.stream.codecs import encode
from dsp.stream.fitting import fit
from dsp.stream.graph import Edge, Grouping
from dsp.stream.groupings import Owners
from dsp.stream.keyed import Gathering
from dsp.stream.parcels import VALUE_BYTES, Account, Limits, Made, Sent
from dsp.stream.steps import Failure
from dsp.stream.tokens import Token

__all__ = ["Outlet", "Surroundings"]


class Surroundings(Protocol):
    """What an outlet needs of its instance."""

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        """The successors that records may be assigned to."""
        ...

    def assigned(self, to: NodeId, batches: int) -> None:
        """Batches will be sent."""
        ...

    def confirmed(self, by: NodeId, batches: int) -> None:
        """Batches are done, or will not arrive."""
        ...

    def transmit(self, sent: Sent) -> None:
        """Send a batch."""
        ...

    def is_local(self, name: NodeId) -> bool:
        """Whether an instance is in this process."""
        ...

    def blocked(self, waiting: bool) -> None:
        """Outputs begin or cease to wait for room."""
        ...

    def unfit(self, failures: Sequence[Failure]) -> None:
        """Records that the codec of an edge cannot hold are left out."""
        ...


class Outlet:
    """Sends what an instance makes.

    Args:
        instance: what is around.
        edges: to the successors' operators, and how much may be under way on each.
        keep: whether batches are kept until they are done.
    """

    def __init__(
        self, instance: Surroundings, edges: Sequence[tuple[Edge, Limits]], *, keep: bool
    ) -> None:
        self._instance = instance
        self._edges = {edge.target: edge for edge, _ in edges}
        self._limits = {edge.target: limits for edge, limits in edges}
        self._keep = keep
        self._sequence = 0
        self._turn = dict.fromkeys(self._edges, 0)
        self._accounts: dict[NodeId, Account] = {}
        self._gatherings = {
            edge.target: Gathering(
                edge,
                instance.routes,
                partial(self._room_at, edge=edge),
                self._assign,
                limits.enough,
            )
            for edge, limits in edges
            if edge.grouping is Grouping.KEY
        }
        self._open: dict[int, Sent] = {}
        self._homeless: list[Sent] = []
        self._more_room = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.sent_records = dict.fromkeys(self._edges, 0)
        self.again = 0
        self.on_idle: Callable[[], None] = lambda: None

    # -- questions ------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing is gathered, homeless or not done."""
        return not self._open and not self._homeless and not self._gathered

    @property
    def unfinished(self) -> int:
        """Batches that are not done."""
        return len(self._open) + len(self._homeless)

    @property
    def _gathered(self) -> int:
        return sum(each.records for each in self._gatherings.values())

    def owners(self, edge: Edge) -> Owners:
        """Give the present owners of keys at the other end of an edge."""
        return self._gatherings[edge.target].owners

    def wants_bytes(self, edge: Edge, records: int) -> bool:
        """Whether that many records on an edge are best encoded by who made them."""
        if edge.grouping is Grouping.KEY:
            return False
        routes = self._instance.routes(edge.target)
        return any(
            not self._instance.is_local(name) and records <= self._account(name, edge).batch
            for name in routes
        )

    def largest_batch(self) -> int:
        """Records that every successor takes at once."""
        most = [
            self._account(name, edge).batch
            for edge in self._edges.values()
            for name in self._instance.routes(edge.target)
        ]
        return max(most, default=1)

    # -- sending --------------------------------------------------------------------------

    async def emit(self, made: Made, token: Token) -> None:
        """Send what was made of an input; wait while there is no room.

        Args:
            made: the records.
            token: of the input; held for every batch that is sent.
        """
        match made.edge.grouping:
            case Grouping.KEY:
                await self._emit_by_key(made, token)
            case Grouping.BROADCAST:
                await self._emit_to_all(made, token)
            case Grouping.ROUND_ROBIN:
                await self._emit_to_one(made, token)

    async def _emit_to_one(self, made: Made, token: Token) -> None:
        edge, batch = made.edge, made.batch
        start, total = 0, len(batch)
        while start < total:
            name = self._next(edge)
            if name is None:
                await self._wait()
                continue
            end = start + self._account(name, edge).batch
            part = batch.part(start, end)
            whole = part is batch
            self._assign(edge, name, part, [token.hold()], made.payload if whole else None)
            start += len(part)

    async def _emit_to_all(self, made: Made, token: Token) -> None:
        edge = made.edge
        told: set[NodeId] = set()
        while missing := [n for n in self._instance.routes(edge.target) if n not in told]:
            name = next((n for n in missing if self._room_at(n, edge) > 0), None)
            if name is None:
                await self._wait()
                continue
            told.add(name)
            self._assign(edge, name, made.batch, [token.hold()], made.payload)

    async def _emit_by_key(self, made: Made, token: Token) -> None:
        edge = made.edge
        gathering, limits = self._gatherings[edge.target], self._limits[edge.target]
        while not self._instance.routes(edge.target):
            await self._wait()
        is_split = made.owners is not None and made.owners is gathering.owners
        gathering.add(made.batch, token, made.parts if is_split else None)
        self._linger()
        while gathering.records > max(limits.window, limits.enough):
            await self._wait()

    def _linger(self) -> None:
        """See to it that what is gathered leaves in a while, if not before."""
        waiting = [each.edge.target for each in self._gatherings.values() if each.records]
        if self._timer is None and waiting:
            pause = min(self._limits[target].linger for target in waiting)
            self._timer = asyncio.get_running_loop().call_later(pause, self._linger_over)

    def _linger_over(self) -> None:
        self._timer = None
        for gathering in self._gatherings.values():
            gathering.flush_all()

    def _next(self, edge: Edge) -> NodeId | None:
        """The successor whose turn it is, of those that have room."""
        routes = self._instance.routes(edge.target)
        turn = self._turn[edge.target]
        for step in range(len(routes)):
            name = routes[(turn + step) % len(routes)]
            if self._room_at(name, edge) > 0:
                self._turn[edge.target] = (turn + step + 1) % len(routes)
                return name
        return None

    def _room_at(self, name: NodeId, edge: Edge) -> int:
        """Records that a successor takes now, as one batch."""
        account, most = self._account(name, edge), self._limits[edge.target].size
        if account.records >= account.window or account.size >= most:
            return 0
        return account.batch

    def _account(self, name: NodeId, edge: Edge) -> Account:
        account = self._accounts.get(name)
        if account is None:
            limits = self._limits[edge.target]
            account = self._accounts[name] = Account(limits.window, limits.batch)
        return account

    async def _wait(self) -> None:
        self._more_room.clear()
        self._instance.blocked(True)
        try:
            await self._more_room.wait()
        finally:
            self._instance.blocked(False)

    def _assign(
        self,
        edge: Edge,
        to: NodeId,
        batch: Batch,
        tokens: list[Token],
        payload: bytes | None = None,
    ) -> None:
        local = self._instance.is_local(to)
        if not local and payload is None:
            try:
                payload = encode(edge.codec, batch.values)
            except CodecError:
                # Grouped by key, records are encoded when enough of them are together.
                batch, unfit = fit(edge, batch)
                self._instance.unfit(unfit)
                payload = encode(edge.codec, batch.values)
        self._sequence += 1
        size = len(payload) if payload is not None else VALUE_BYTES * len(batch)
        kept = batch if local or payload is None else None
        number = self._sequence
        self._dispatch(Sent(number, edge, to, kept, payload, batch.ids, batch.born, size, tokens))

    def _dispatch(self, sent: Sent) -> None:
        account = self._account(sent.to, sent.edge)
        account.records += len(sent.ids)
        account.size += sent.size
        self.sent_records[sent.edge.target] += len(sent.ids)
        self._open[sent.sequence] = sent
        self._instance.assigned(sent.to, 1)
        self._instance.transmit(sent)
        if not self._keep:
            sent.release()

    # -- what is heard --------------------------------------------------------------------

    def progress(self, sender: NodeId, progress: EngineProgress) -> None:
        """A successor tells how far it is."""
        account = self._accounts.get(sender)
        if account is None:
            return
        account.records = max(0, account.records - progress.records)
        account.size = max(0, account.size - progress.bytes)
        if progress.window and progress.batch:
            account.window, account.batch = progress.window, progress.batch
        finished = 0
        for sequence in progress.done:
            sent = self._open.get(sequence)
            if sent is not None and sent.to == sender:
                del self._open[sequence]
                finished += 1
                sent.release()
        if progress.delivered:
            mine = [s for s in self._open.values() if s.to == sender][: progress.delivered]
            for sent in mine:
                del self._open[sent.sequence]
            finished += len(mine)
        if finished:
            self._instance.confirmed(sender, finished)
        for gathering in self._gatherings.values():
            gathering.flush(sender)
        self._rehouse()
        self._more_room.set()
        self._tell_if_idle()

    def _tell_if_idle(self) -> None:
        if self.idle:
            self.on_idle()

    def view_changed(self) -> None:
        """Successors came or went."""
        for gathering in self._gatherings.values():
            gathering.view_changed()
        self._rehouse()
        self._linger()
        self._more_room.set()

    # -- loss -----------------------------------------------------------------------------

    def lost(self, name: NodeId) -> None:
        """A successor is dead: all that it had and had not dealt with goes to others."""
        self._accounts.pop(name, None)
        for sent in [sent for sent in self._open.values() if sent.to == name]:
            del self._open[sent.sequence]
            if self._keep:
                self._homeless.append(sent)
        self.view_changed()
        self._tell_if_idle()

    def returned(self, sequence: int) -> None:
        """A batch did not arrive: it goes to whoever is there."""
        sent = self._open.pop(sequence, None)
        if sent is None:
            return
        account = self._accounts.get(sent.to)
        if account is not None:
            account.records = max(0, account.records - len(sent.ids))
            account.size = max(0, account.size - sent.size)
        self._instance.confirmed(sent.to, 1)
        self._homeless.append(sent)
        self._rehouse()
        self._tell_if_idle()

    def _rehouse(self) -> None:
        """Assign again what came back, as far as there is room."""
        waiting, self._homeless = self._homeless, []
        for sent in waiting:
            edge = sent.edge
            gathering = self._gatherings.get(edge.target)
            routes = self._instance.routes(edge.target)
            if edge.grouping is Grouping.BROADCAST and sent.to not in routes:
                # The others have theirs, and this one was for nobody else.
                sent.release()
                continue
            if gathering is not None and routes:
                token = Token(sent.release)
                gathering.add(sent.whole(), token)
                token.release()
                self.again += 1
                gathering.flush_all()
                continue
            name = sent.to if edge.grouping is Grouping.BROADCAST else self._next(edge)
            if name is None:
                self._homeless.append(sent)
                continue
            self.again += 1
            sent.to = name
            if self._instance.is_local(name):
                sent.batch = sent.whole()
            elif sent.payload is None:
                sent.payload = encode(edge.codec, sent.whole().values)
            self._dispatch(sent)

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
