"""Groupings that send whole batches: to splitting one over many, frames of a few records follow."""

from abc import abstractmethod

from dsp.core.types import NodeId
from dsp.stream.groupings.base import Distribution, Ways
from dsp.stream.parcels import Made, Sent
from dsp.stream.tokens import Token

__all__ = ["RoundRobin", "LeastWork", "Broadcast"]


class Whole(Distribution):
    """Sends each batch to one successor, cut to what that one takes at once."""

    def __init__(self, ways: Ways) -> None:
        super().__init__(ways)
        self._turn = 0

    @abstractmethod
    def next(self) -> NodeId | None:
        """Choose one that has room."""

    async def emit(self, made: Made, token: Token) -> None:
        ways, batch = self._ways, made.batch
        start, total = 0, len(batch)
        while start < total:
            name = self.next()
            if name is None:
                await ways.wait()
                continue
            part = batch.part(start, start + ways.account(name).batch)
            whole = part is batch
            ways.assign(name, part, [token.hold()], made.payload if whole else None)
            start += len(part)

    @property
    def takes_more(self) -> bool:
        room = self._ways.room
        return any(room(name) > 0 for name in self._ways.routes())

    def emit_at_once(self, made: Made, token: Token) -> bool:
        turn, ways = self._turn, self._ways
        name = self.next()
        if name is None or len(made.batch) > ways.account(name).batch:
            self._turn = turn
            return False
        ways.assign(name, made.batch, [token.hold()], made.payload)
        return True

    def emit_anyway(self, made: Made, token: Token) -> None:
        ways, batch = self._ways, made.batch
        start, total = 0, len(batch)
        while start < total:
            name = self.next() or ways.routes()[0]
            part = batch.part(start, start + ways.account(name).batch)
            ways.assign(name, part, [token.hold()])
            start += len(part)

    def emit_again(self, sent: Sent) -> bool:
        name = self.next()
        if name is not None:
            self._ways.assign_again(sent, name)
        return name is not None


class RoundRobin(Whole):
    """Successors take turns; who has no room is passed over."""

    def next(self) -> NodeId | None:
        routes, turn = self._ways.routes(), self._turn
        for step in range(len(routes)):
            name = routes[(turn + step) % len(routes)]
            if self._ways.room(name) > 0:
                self._turn = (turn + step + 1) % len(routes)
                return name
        return None


class LeastWork(Whole):
    """The successor with the least work before it, by what it has not executed and its speed.

    How many records may be under way to a successor follows from its speed: so what it has not
    executed, by that, is a time. Where it is the same, as while there is nothing, they take turns.
    What waits there would not do: who is busy with its last record would look as free as the idle.
    """

    def next(self) -> NodeId | None:
        ways, routes, turn = self._ways, self._ways.routes(), self._turn
        best: NodeId | None = None
        least = 0.0
        for step in range(len(routes)):
            name = routes[(turn + step) % len(routes)]
            account = ways.account(name)
            share = account.unexecuted / account.window
            if (best is None or share < least) and ways.room(name) > 0:
                best, least = name, share
                self._turn = (turn + step + 1) % len(routes)
                if not account.unexecuted:
                    break
        return best


class Broadcast(Distribution):
    """Every successor gets every batch."""

    async def emit(self, made: Made, token: Token) -> None:
        ways = self._ways
        told: set[NodeId] = set()
        while missing := [name for name in ways.routes() if name not in told]:
            name = next((each for each in missing if ways.room(each) > 0), None)
            if name is None:
                await ways.wait()
                continue
            told.add(name)
            ways.assign(name, made.batch, [token.hold()], made.payload)

    @property
    def takes_more(self) -> bool:
        return all(self._ways.room(name) > 0 for name in self._ways.routes())

    def emit_anyway(self, made: Made, token: Token) -> None:
        for name in self._ways.routes():
            self._ways.assign(name, made.batch, [token.hold()], made.payload)

    def emit_again(self, sent: Sent) -> bool:
        if sent.to in self._ways.routes():
            self._ways.assign_again(sent, sent.to)
        else:
            # The others have theirs, and this one was for nobody else.
            sent.release()
        return True
