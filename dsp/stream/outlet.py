"""What goes from an instance to its successors: choice, room, and what is not done yet.

A batch is *assigned* when a successor is chosen for it. From then on it is kept, with the tokens of
the inputs that it came of, until the successor says that it is done. Whoever is lost gives back its
batches: they are assigned again, under the same numbers.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dsp._pb.balance_pb2 import BalanceFrame, BalanceRequest
from dsp._pb.engine_pb2 import EngineProgress
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.stream.batch import Batch
from dsp.stream.codecs import Payload, encode
from dsp.stream.fitting import fit
from dsp.stream.graph import Edge
from dsp.stream.groupings.making import Groupings, make_distribution
from dsp.stream.parcels import VALUE_BYTES, Account, Limits, Made, Progress, Sent
from dsp.stream.surroundings import Relay, Surroundings
from dsp.stream.tokens import Token, holding

if TYPE_CHECKING:
    from dsp.stream.groupings.base import Distribution

__all__ = ["Outlet"]


class Outlet:
    """Sends what an instance makes.

    Args:
        instance: what is around.
        edges: to the successors' operators, and how much may be under way on each.
        keep: whether batches are kept until they are done.
        groupings: what the configuration says about them.
        relay: the way to successors in this process that may have nothing else to do; None if
            there is none.
    """

    def __init__(
        self,
        instance: Surroundings,
        edges: Sequence[tuple[Edge, Limits]],
        *,
        keep: bool,
        groupings: Groupings | None = None,
        relay: Relay | None = None,
    ) -> None:
        self._relay = relay
        self._instance = instance
        self._edges = {edge.target: edge for edge, _ in edges}
        self._limits = {edge.target: limits for edge, limits in edges}
        self._keep = keep
        self._sequence = 0
        self._accounts: dict[NodeId, Account] = {}
        self._distributions: dict[str, Distribution] = {
            edge.target: make_distribution(_EdgeWays(self, edge, limits), groupings)
            for edge, limits in edges
        }
        self._open: dict[int, Sent] = {}
        self._homeless: list[Sent] = []
        self._more_room = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self.sent_records = dict.fromkeys(self._edges, 0)
        self.again = 0
        self.burying = 0
        self.on_idle: Callable[[], None] = lambda: None

    # -- questions ------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nothing is gathered, homeless, not done, or about to be a dead letter."""
        return not (self._open or self._homeless or self.burying or self._gathered)

    @property
    def unfinished(self) -> int:
        """Batches that are not done."""
        return len(self._open) + len(self._homeless)

    def waiting(self, operator: str) -> int:
        """Records for an operator that none of its instances has begun to work on."""
        waiting = self._distributions[operator].records
        for name in self._instance.routes(operator):
            if (account := self._accounts.get(name)) is not None:
                waiting += account.records
        return waiting

    @property
    def _gathered(self) -> int:
        return sum(each.records for each in self._distributions.values())

    def prepares(self, edge: Edge, records: int) -> bool:
        """Whether ``prepare`` takes time for a batch of so many records."""
        return self._distributions[edge.target].prepares(records)

    def prepare(self, edge: Edge, batch: Batch) -> Made:
        """Do for an edge what can be done where a batch was made, which is a worker thread.

        Raises:
            CodecError: the codec of the edge cannot hold a record.
        """
        return self._distributions[edge.target].prepare(batch)

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
        await self._distributions[made.edge.target].emit(made, token)

    def emit_at_once(self, made: Made, token: Token) -> bool:
        """Send what was made of an input if one successor takes it whole, as most often.

        Returns:
            Whether it is sent; else ``emit`` is to be awaited.
        """
        return self._distributions[made.edge.target].emit_at_once(made, token)

    @property
    def takes_more(self) -> bool:
        """Whether there is room for what comes of another batch, at every operator."""
        return all(each.takes_more for each in self._distributions.values())

    def emit_anyway(self, made: Made, token: Token) -> None:
        """Send what was made of one batch, for which there was room; it may be more than that."""
        distribution = self._distributions[made.edge.target]
        if not distribution.emit_at_once(made, token):
            distribution.emit_anyway(made, token)

    def _linger(self) -> None:
        """See to it that what is gathered leaves in a while, if not before."""
        waiting = [target for target, each in self._distributions.items() if each.records]
        if self._timer is None and waiting:
            pause = min(self._limits[target].linger for target in waiting)
            self._timer = asyncio.get_running_loop().call_later(pause, self._linger_over)

    def _linger_over(self) -> None:
        self._timer = None
        for each in self._distributions.values():
            each.flush()

    def _room_at(self, name: NodeId, edge: Edge) -> int:
        """Records that a successor takes now, as one batch."""
        account, most = self._account(name, edge), self._limits[edge.target].size
        if account.records >= account.window or account.size >= most:
            return 0
        return account.batch

    def _account(self, name: NodeId, edge: Edge) -> Account:
        account = self._accounts.get(name)
        if account is None:
            # Of a newcomer nothing is known but that its siblings take so much.
            limits = self._limits[edge.target]
            known = [self._accounts.get(each) for each in self._instance.routes(edge.target)]
            window = min((each.window for each in known if each), default=limits.window)
            batch = min((each.batch for each in known if each), default=limits.batch)
            account = Account(min(window, limits.window), min(batch, limits.batch))
            self._accounts[name] = account
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
        payload: Payload | None = None,
        request: BalanceRequest | None = None,
    ) -> None:
        local = self._instance.is_local(to)
        if local and self._relay is not None and request is None:
            left = self._relay.relay(to, batch)
            if left is not None:
                self._relayed(edge, to, batch, tokens, left)
                return
        if not local and payload is None:
            # Grouped by key, records are encoded when enough of them are together.
            batch, payload = self._encoded(edge, batch, tokens)
            if not len(batch):
                for token in tokens:
                    token.release()
                return
        self._sequence += 1
        size = len(payload) if payload is not None else VALUE_BYTES * len(batch)
        kept = batch if local or payload is None else None
        number = self._sequence
        self._dispatch(
            Sent(number, edge, to, kept, payload, batch.ids, batch.born, size, tokens, request)
        )

    def _relayed(
        self, edge: Edge, to: NodeId, batch: Batch, tokens: list[Token], left: Token
    ) -> None:
        """A successor has processed a batch: note it, unless it is done altogether."""
        self.sent_records[edge.target] += len(batch)
        if self._relay is not None and self._keep and not left.is_done:
            self._sequence += 1
            size = VALUE_BYTES * len(batch)
            number, ids, born = self._sequence, batch.ids, batch.born
            sent = Sent(number, edge, to, batch, None, ids, born, size, tokens)
            self._open[number] = sent
            self._account(to, edge)  # without it, what is told of it would not be heard
            self._instance.assigned(to, 1)
            self._relay.adopt(sent, left)
            return
        for token in tokens:
            token.release()

    def _assign_again(self, sent: Sent, to: NodeId) -> None:
        self.again += 1
        sent.to, sent.request = to, None
        if self._instance.is_local(to):
            sent.batch = sent.whole()
        elif sent.payload is None:
            batch, sent.payload = self._encoded(sent.edge, sent.whole(), sent.tokens)
            if not len(batch):
                sent.release()
                return
            sent.ids = batch.ids
        self._dispatch(sent)

    def _encoded(self, edge: Edge, batch: Batch, tokens: list[Token]) -> tuple[Batch, Payload]:
        """Give the bytes of what the codec can hold; the rest become dead letters."""
        try:
            return batch, encode(edge.codec, batch.values)
        except CodecError:
            batch, unfit = fit(edge, batch)
            self._instance.unfit(unfit, batch.born, holding(tokens))
            return batch, encode(edge.codec, batch.values) if len(batch) else b""

    def _dispatch(self, sent: Sent) -> None:
        account = self._account(sent.to, sent.edge)
        account.records += len(sent.ids)
        account.size += sent.size
        account.unexecuted += len(sent.ids)
        self.sent_records[sent.edge.target] += len(sent.ids)
        self._open[sent.sequence] = sent
        self._instance.assigned(sent.to, 1)
        self._instance.transmit(sent)
        if not self._keep:
            sent.release()

    # -- what is heard --------------------------------------------------------------------

    def progress(self, sender: NodeId, progress: Progress | EngineProgress) -> None:
        """A successor tells how far it is."""
        account = self._accounts.get(sender)
        if account is None:
            return
        account.records = max(0, account.records - progress.records)
        account.size = max(0, account.size - progress.bytes)
        account.unexecuted = max(0, account.unexecuted - progress.worked)
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
        for each in self._distributions.values():
            each.progress(sender, progress)
        self._rehouse()
        self._more_room.set()
        self._tell_if_idle()

    def balance(self, sender: NodeId, frame: BalanceFrame) -> Sequence[str]:
        """A successor tells of its load; give what is wrong with that."""
        distribution = self._distributions.get(frame.operator)
        if distribution is None:
            return [f"nothing is sent to an operator {frame.operator!r}"]
        return distribution.hear(sender, frame)

    def _tell_if_idle(self) -> None:
        if self.idle:
            self.on_idle()

    def view_changed(self) -> None:
        """Successors came or went."""
        for each in self._distributions.values():
            each.view_changed()
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
            account.unexecuted = max(0, account.unexecuted - len(sent.ids))
        self._instance.confirmed(sent.to, 1)
        self._homeless.append(sent)
        self._rehouse()
        self._tell_if_idle()

    def _rehouse(self) -> None:
        """Assign again what came back, as far as there is room."""
        waiting, self._homeless = self._homeless, []
        for sent in waiting:
            if not self._distributions[sent.edge.target].emit_again(sent):
                self._homeless.append(sent)

    def close(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _EdgeWays:
    """The ways to the successors of one edge, for its grouping."""

    def __init__(self, outlet: Outlet, edge: Edge, limits: Limits) -> None:
        self.edge, self.limits = edge, limits
        self._outlet = outlet
        self.linger, self.wait = outlet._linger, outlet._wait
        self.is_local = outlet._instance.is_local
        self.assign_again = outlet._assign_again
        self.now = asyncio.get_running_loop().time

    def sent_again(self) -> None:
        self._outlet.again += 1

    def routes(self) -> tuple[NodeId, ...]:
        return self._outlet._instance.routes(self.edge.target)

    def account(self, name: NodeId) -> Account:
        return self._outlet._account(name, self.edge)

    def room(self, name: NodeId) -> int:
        return self._outlet._room_at(name, self.edge)

    def space(self, name: NodeId) -> int:
        account = self.account(name)
        return account.window - account.records if account.size < self.limits.size else 0

    def assign(
        self,
        name: NodeId,
        batch: Batch,
        tokens: list[Token],
        payload: Payload | None = None,
        request: BalanceRequest | None = None,
    ) -> None:
        self._outlet._assign(self.edge, name, batch, tokens, payload, request)
