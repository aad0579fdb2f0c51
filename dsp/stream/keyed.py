"""Records that are grouped by key: gathered for each owner until there are enough to send."""

from collections.abc import Callable

from dsp.core.types import NodeId
from dsp.stream.batch import Batch, put_together
from dsp.stream.graph import Edge
from dsp.stream.groupings import Owners, split
from dsp.stream.tokens import Token

__all__ = ["Gathering"]


class Gathering:
    """What waits to be sent on one edge.

    Args:
        edge: grouped by key.
        routes: gives the instances at its other end.
        room: how many records may be sent to an instance now.
        send: sends a batch, with the tokens that it holds.
        enough: records that make it worth to send.
    """

    def __init__(
        self,
        edge: Edge,
        routes: Callable[[str], tuple[NodeId, ...]],
        room: Callable[[NodeId], int],
        send: Callable[[Edge, NodeId, Batch, list[Token]], None],
        enough: int,
    ) -> None:
        assert edge.key is not None
        self.edge = edge
        self._key = edge.key
        self._routes = routes
        self._room = room
        self._send = send
        self._enough = enough
        self._owners: Owners | None = None
        self._parts: dict[NodeId, list[tuple[Batch, Token]]] = {}
        self._counts: dict[NodeId, int] = {}

    @property
    def records(self) -> int:
        """How many records wait."""
        return sum(self._counts.values())

    @property
    def owners(self) -> Owners:
        """Who owns which key now; the same object while nobody comes or goes."""
        routes = self._routes(self.edge.target)
        if self._owners is None or self._owners.instances != routes:
            self._owners = Owners(routes)
        return self._owners

    def add(self, batch: Batch, token: Token, parts: dict[NodeId, Batch] | None = None) -> None:
        """Take records, split already by the present owners or not; hold the token."""
        if parts is None:
            parts = split(batch, self._key, self.owners)
        for name, part in parts.items():
            self._parts.setdefault(name, []).append((part, token.hold()))
            self._counts[name] = self._counts.get(name, 0) + len(part)
            if self._counts[name] >= self._enough:
                self.flush(name)

    def flush(self, name: NodeId) -> None:
        """Send what waits for an instance, as far as there is room."""
        parts = self._parts.get(name)
        if name not in self._routes(self.edge.target):
            return
        while parts and (room := self._room(name)) > 0:
            taken = [parts.pop(0)]
            records = len(taken[0][0])
            while parts and records + len(parts[0][0]) <= room:
                taken.append(parts.pop(0))
                records += len(taken[-1][0])
            batch = put_together([part for part, _ in taken])
            tokens = [token for _, token in taken]
            if len(batch) > room:
                rest = batch.part(room, len(batch))
                parts.insert(0, (rest, _holding(tokens)))
                batch, records = batch.part(0, room), room
            self._counts[name] -= records
            self._send(self.edge, name, batch, tokens)

    def flush_all(self) -> None:
        """Send everything, as far as there is room."""
        for name in list(self._parts):
            self.flush(name)

    def view_changed(self) -> None:
        """Instances came or went: what waits is split anew."""
        routes = self._routes(self.edge.target)
        # Without anybody left, what waits belongs to nobody until somebody comes.
        if self._owners is None or not routes or self._owners.instances == routes:
            return
        parts, self._parts, self._counts = self._parts, {}, {}
        for waiting in parts.values():
            for part, token in waiting:
                self.add(part, token)
                token.release()


def _holding(tokens: list[Token]) -> Token:
    """Hold several tokens as one."""
    held = [token.hold() for token in tokens]

    def release() -> None:
        for token in held:
            token.release()

    return Token(release)
