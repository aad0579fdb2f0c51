"""Groupings that balance load: a scheduler machine chooses, by what it knows of each successor."""

from collections.abc import Sequence

from dsp._pb.balance_pb2 import BalanceFrame, BalanceRequest
from dsp._pb.engine_pb2 import EngineProgress
from dsp.balance.events import (
    Assign,
    Departing,
    Offered,
    Piggyback,
    SchedulerEffect,
    SchedulerEvent,
    Worked,
)
from dsp.balance.wire import from_frame, to_request
from dsp.core.machine import Machine, PeerAppeared, PeerLost, Received, Reject
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.stream.batch import Batch
from dsp.stream.groupings.base import Ways
from dsp.stream.groupings.owners import divided, keys_of
from dsp.stream.groupings.split import Split
from dsp.stream.parcels import Made, Progress, Sent
from dsp.stream.tokens import Token

__all__ = ["Balanced"]

Scheduler = Machine[SchedulerEvent, SchedulerEffect]


class Balanced(Split):
    """Asks a scheduler for each record.

    Args:
        ways: to the successors.
        scheduler: chooses.
        bounded: whether only who has room is chosen. Else what was chosen waits for room.
    """

    def __init__(self, ways: Ways, scheduler: Scheduler, *, bounded: bool) -> None:
        super().__init__(ways)
        self.scheduler = scheduler
        self._bounded = bounded
        self._names: list[NodeId] = []
        self._known: tuple[NodeId, ...] = ()
        self._homeless: list[tuple[Batch, Token]] = []

    @property
    def records(self) -> int:
        return super().records + sum(len(batch) for batch, _ in self._homeless)

    def prepare(self, batch: Batch) -> Made:
        assert self._edge.key is not None
        return Made(self._edge, batch, keys=keys_of(batch, self._edge.key))

    async def emit(self, made: Made, token: Token) -> None:
        ways, batch, keys = self._ways, made.batch, self._keys(made)
        start, total = 0, len(keys)
        self.view_changed()
        while start < total:
            taken = self._give(batch.part(start, total), keys[start:], token, self._bounded)
            start += taken
            ways.linger()
            if not taken:
                await ways.wait()
        limits = ways.limits
        while self._gathering.records > max(limits.window, limits.enough):
            await ways.wait()

    def _keys(self, made: Made) -> list[bytes]:
        assert self._edge.key is not None
        return keys_of(made.batch, self._edge.key) if made.keys is None else made.keys

    def _add(self, made: Made, token: Token) -> None:
        # What comes back has to go somewhere, whether there is room or not.
        self._give(made.batch, self._keys(made), token, False)

    def _give(self, batch: Batch, keys: list[bytes], token: Token, bounded: bool) -> int:
        """Let the scheduler choose; give how many records found somebody."""
        ways, gathering = self._ways, self._gathering
        room = (
            [max(0, ways.space(name) - gathering.waiting_for(name)) for name in self._names]
            if bounded
            else None
        )
        (effect,) = self.scheduler.handle(Offered(keys, room), ways.now())
        assert isinstance(effect, Assign)
        targets = effect.targets
        if not targets:
            return 0
        for name, part in divided(batch, targets).items():
            gathering.add(name, part, token, effect.work[name])
        return len(targets)

    def emit_again(self, sent: Sent) -> bool:
        if sent.to in self._names:
            self.scheduler.handle(Worked(sent.to, len(sent.ids)), self._ways.now())
        return super().emit_again(sent)

    def _asked(self, name: NodeId, behind: float) -> BalanceRequest | None:
        for effect in self.scheduler.handle(Departing(name, behind), self._ways.now()):
            if isinstance(effect, Piggyback):
                return to_request(effect.request)
        return None

    # -- what is heard --------------------------------------------------------------------

    def progress(self, sender: NodeId, progress: Progress | EngineProgress) -> None:
        if progress.worked:
            self.scheduler.handle(Worked(sender, progress.worked), self._ways.now())
        super().progress(sender, progress)

    def hear(self, sender: NodeId, frame: BalanceFrame) -> Sequence[str]:
        try:
            event = Received(sender, from_frame(frame))
        except CodecError as error:
            return [str(error)]
        effects = self.scheduler.handle(event, self._ways.now())
        return [effect.reason for effect in effects if isinstance(effect, Reject)]

    def view_changed(self) -> None:
        for name in self._look():
            for batch, token, _ in self._gathering.take_back(name):
                self._homeless.append((batch, token))
        if not self._names:
            return
        waiting, self._homeless = self._homeless, []
        for batch, token in waiting:
            self._add(Made(self._edge, batch), token)
            token.release()

    def _look(self) -> list[NodeId]:
        """Tell the scheduler who came and who went; give those who went."""
        routes = self._ways.routes()
        if routes == self._known:
            return []
        now = self._ways.now()
        gone = [name for name in self._names if name not in routes]
        for name in gone:
            self._names.remove(name)
            self.scheduler.handle(PeerLost(name), now)
        for name in routes:
            if name not in self._names:
                self._names.append(name)
                self.scheduler.handle(PeerAppeared(name), now)
        self._known = routes
        return gone
