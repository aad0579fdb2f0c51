"""The protocol of the exchange: who has sent everything, who has counted it, and what came out.

A node that has sent its last batch says so (``Finished``, with the number of batches), asks every
peer for its totals (``Ask``), and gets them (``Answer``) once that peer has counted all that was
promised to it. DATA and CONTROL keep no order between them, so ``Finished`` may come before the
batches that it speaks of: a number is what makes that safe.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dsp import NodeId
from dsp.core.machine import (
    Cancelled,
    CommonEffect,
    CommonEvent,
    Fail,
    Received,
    Reject,
    Resolve,
    Send,
    SendFailed,
)
from dsp.errors import InvariantError, LocalProtocolError

__all__ = [
    "Rows",
    "Totals",
    "Finished",
    "Ask",
    "Answer",
    "Message",
    "Event",
    "Arrived",
    "AllSent",
    "BatchesLost",
    "TotalsRequested",
    "CountingMachine",
]

Rows = tuple[tuple[str, str, int], ...]
"""What one node counted: sender, word, how often. Sorted."""

Totals = tuple[tuple[str, str, str, int], ...]
"""What all nodes counted: receiver, sender, word, how often. Sorted."""


# -- messages, on the CONTROL lane ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finished:
    """I have sent you so many batches, and no more will come."""

    batches: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Tell me what you counted, once you have everything."""


@dataclass(frozen=True, slots=True)
class Answer:
    """I have everything, and this is what I counted."""

    rows: Rows


Message = Finished | Ask | Answer


# -- what the application tells the machine ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Arrived:
    """A batch came on the DATA lane. Batches are numbered from 0."""

    sender: NodeId
    number: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllSent:
    """The last of so many batches was sent, to each of the peers."""

    batches: int


@dataclass(frozen=True, slots=True)
class BatchesLost:
    """The transport gave up batches for a peer."""

    to: NodeId


@dataclass(frozen=True, slots=True)
class TotalsRequested:
    """Ask for everybody's totals; resolves when nobody needs this node any more."""

    token: Hashable


Event = CommonEvent | Arrived | AllSent | BatchesLost | TotalsRequested


@dataclass(frozen=True, slots=True)
class _Peer:
    """What is known of a peer."""

    batches: int = 0
    promised: int | None = None
    asked: bool = False
    rows: Rows | None = None
    lost: bool = False


class CountingMachine:
    """Counts what comes in, and knows when all of it is there. Pure: see ``dsp.core.machine``.

    Args:
        node: who we are.
        peers: the others.
    """

    def __init__(self, node: NodeId, peers: Sequence[NodeId]) -> None:
        self._node = node
        self._peers = {peer: _Peer() for peer in peers}
        self._tally: Counter[tuple[str, str]] = Counter()
        self._sent: int | None = None
        self._token: Hashable = None

    # -- the contract ---------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> Sequence[CommonEffect]:
        """Take one event; time plays no part."""
        match event:
            case Arrived(sender, number, words):
                return self._arrived(sender, number, words)
            case AllSent(batches):
                if self._sent is not None:
                    raise LocalProtocolError("all was sent before")
                self._sent = batches
                return [Send(peer, Finished(batches)) for peer in self._peers]
            case TotalsRequested(token):
                if self._token is not None:
                    raise LocalProtocolError("the totals were asked for before")
                self._token = token
                return [*(Send(peer, Ask()) for peer in self._peers), *self._conclude()]
            case Received(sender, message):
                return self._received(sender, cast("Message", message))
            case SendFailed(peer) | BatchesLost(peer):
                self._update(peer, lost=True)
                return self._conclude()
            case Cancelled(token) if token == self._token:
                self._token = None
        return []  # that a peer comes or goes is a hint; what is lost with it comes as SendFailed

    def next_deadline(self) -> float | None:
        """Never: sessions repeat what is lost, and how long to wait is for the caller to say."""
        return None

    def check_invariants(self) -> None:
        """Nobody sent more than was promised, and every word is counted under a peer."""
        for name, peer in self._peers.items():
            if peer.promised is not None and peer.batches > peer.promised:
                raise InvariantError(f"{peer.batches} of {peer.promised} batches of {name}")
        if strangers := {sender for sender, _ in self._tally} - self._peers.keys():
            raise InvariantError(f"words of {sorted(strangers)} were counted")

    def state(self) -> Hashable:
        """Everything that changes."""
        return (
            tuple(self._peers.items()),
            tuple(sorted(self._tally.items())),
            self._sent,
            self._token,
        )

    def restore(self, state: Hashable) -> None:
        """Return to a state."""
        peers, tally, self._sent, self._token = cast("tuple[Rows, Rows, int | None, str]", state)
        self._peers = dict(cast("tuple[tuple[NodeId, _Peer], ...]", peers))
        self._tally = Counter(dict(cast("tuple[tuple[tuple[str, str], int], ...]", tally)))

    def describe(self) -> Mapping[str, object]:
        """What is there of each peer, and what is not."""
        return {name: self._progress(peer) for name, peer in self._peers.items()}

    # -- inside ---------------------------------------------------------------------------

    @property
    def _complete(self) -> bool:
        return all(peer.batches == peer.promised for peer in self._peers.values())

    @property
    def _rows(self) -> Rows:
        return tuple(sorted((*key, count) for key, count in self._tally.items()))

    def _update(self, name: NodeId, **changes: object) -> None:
        self._peers[name] = replace(self._peers[name], **changes)  # type: ignore[arg-type]

    def _arrived(
        self, sender: NodeId, number: int, words: tuple[str, ...]
    ) -> Sequence[CommonEffect]:
        peer = self._peers.get(sender)
        if peer is None:
            return [Reject(sender, "a batch of a stranger")]
        if number != peer.batches or peer.batches == peer.promised:
            return [Reject(sender, f"batch {number} after {peer.batches} of {peer.promised}")]
        self._update(sender, batches=number + 1)
        self._tally.update((sender, word) for word in words)
        return self._answers()

    def _received(self, sender: NodeId, message: Message) -> Sequence[CommonEffect]:
        peer = self._peers.get(sender)
        match message:
            case _ if peer is None:
                return [Reject(sender, "a message of a stranger")]
            case Finished(batches) if peer.promised is None and batches >= peer.batches:
                self._update(sender, promised=batches)
                return self._answers()
            case Ask() if not peer.asked:
                self._update(sender, asked=True)
                answer = [Send(sender, Answer(self._rows))] if self._complete else []
                return [*answer, *self._conclude()]
            case Answer(rows) if peer.rows is None and self._sent is not None:
                self._update(sender, rows=rows)
                return self._conclude()
        return [Reject(sender, f"{message} in the wrong place")]

    def _answers(self) -> Sequence[CommonEffect]:
        """Answer those who asked, if this was the last that was missing."""
        if not self._complete:
            return []
        asked = [name for name, peer in self._peers.items() if peer.asked]
        return [*(Send(name, Answer(self._rows)) for name in asked), *self._conclude()]

    def _conclude(self) -> Sequence[CommonEffect]:
        """End the wait for totals: all is there and everybody has ours, or something is lost."""
        if self._token is None:
            return []
        if lost := [name for name, peer in self._peers.items() if peer.lost]:
            token, self._token = self._token, None
            return [Fail(token, f"what was sent to {', '.join(lost)} did not arrive")]
        told = [(name, peer.rows) for name, peer in self._peers.items() if peer.rows is not None]
        served = all(peer.asked for peer in self._peers.values())
        if not (self._complete and served and len(told) == len(self._peers)):
            return []
        everybody = [*told, (self._node, self._rows)]
        totals = sorted((name, *row) for name, rows in everybody for row in rows)
        token, self._token = self._token, None
        return [Resolve(token, tuple(totals))]

    @staticmethod
    def _progress(peer: _Peer) -> str:
        promised = "?" if peer.promised is None else peer.promised
        answered = "answered" if peer.rows is not None else "did not answer"
        return f"{peer.batches} of {promised} batches, {answered}"
