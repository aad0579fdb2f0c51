"""The scale machine: one instance of an operator that duplicates itself or leaves.

Theory of operation (papers 000 chapter 3 and 001, with the corrections D1-D8 that are argued in
docs/design/scaling.md). An instance knows the instances of the neighbouring operators, no siblings.

* To duplicate, it has siblings spawned, tells all neighbours (``Duplication``), waits for their
  acknowledgements and starts the newcomers with exactly those neighbours that know them: each
  acknowledgement says whether its sender is ``linked``. Algorithms 4 to 7.
* To leave, it tells its predecessors (``Deletion``), waits until none of them has a record on its
  way here, drains, and only then tells its successors in the same way. Algorithms 8 to 10, in two
  phases (D3).
* A newcomer is idle until its ``Start``: it keeps records and news that reach it for later (D5).
* One operation at a time, and only while active (D2); the keeper never leaves.
* ``PeerLost`` is final for whoever takes it: the peer is removed from every set, and what waited
  for it goes on. A newcomer whose initiator is lost before its ``Start`` stops. Who is held for
  dead and speaks is told to stop (``Evict``).

========== ================================================= ====================================
status     meaning                                           left by
========== ================================================= ====================================
IDLE       spawned, keeps records for later                  Start; loss of its initiator
ACTIVE     processes and forwards                            LeaveRequested
LEAVING    predecessors are told; still works (T1)           the last DeletionAck
DRAINING   no record comes any more; still works             QueueEmptied, all records confirmed
FAREWELL   successors are told (T2)                          the last DeletionAck
GONE       nothing is heard any more                         never
========== ================================================= ====================================

From every status ``Evict`` leads to GONE. ``dsp.scaling.status`` has the table as a value.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from dsp.core.machine import Fail, PeerLost, Received, Reject, Resolve, Send
from dsp.core.types import NodeId
from dsp.errors import InvariantError, LocalProtocolError
from dsp.scaling.events import (
    Activate,
    Assigned,
    Deletion,
    DeletionAck,
    Delivered,
    Drain,
    Duplication,
    DuplicationAck,
    Evict,
    Keep,
    LeaveRequested,
    Member,
    QueueEmptied,
    ScaleEffect,
    ScaleEvent,
    ScaleOutRequested,
    Spawn,
    Spawned,
    SpawnFailed,
    Start,
    Stop,
    Terminate,
)
from dsp.scaling.flush import Flush
from dsp.scaling.neighbours import Neighbours
from dsp.scaling.place import Place
from dsp.scaling.progress import Operation, Progress
from dsp.scaling.status import TRANSITIONS, WORKING, Status

__all__ = ["ScaleMachine"]


class ScaleMachine:
    """One instance's part of the scale protocol.

    Args:
        place: where it is in the graph.
        neighbours: the members of neighbouring operators, for an instance that the application
            starts with; None for a newcomer, which is idle until its ``Start``.
    """

    def __init__(self, place: Place, neighbours: Iterable[Member] | None = None) -> None:
        self.place = place
        self.me = place.member.id
        self.status = Status.IDLE if neighbours is None else Status.ACTIVE
        self.neighbours = Neighbours((*place.upstream, *place.downstream), neighbours)
        self._progress = Progress()
        self._flush = Flush()
        # Every peer that was ever lost: news of it from others may come late.
        self._lost: set[NodeId] = set()
        # Neighbours that take this instance for the keeper, now that the first one is lost.
        self._voters: set[NodeId] = set()

    # -- questions ------------------------------------------------------------------------

    @property
    def keeper(self) -> bool:
        """Whether this instance is the keeper of its operator, as far as it was told."""
        return self.place.keeper or bool(self._voters)

    @property
    def operation(self) -> Operation:
        """What this instance is busy with."""
        return self._progress.operation

    @property
    def may_scale(self) -> bool:
        """Whether an operation may begin."""
        return self.status is Status.ACTIVE and self.operation is Operation.NONE

    @property
    def works(self) -> bool:
        """Whether records may be processed and assigned."""
        return self.status in WORKING

    def routes(self, operator: str) -> tuple[NodeId, ...]:
        """The instances of a successor operator that records may be assigned to."""
        return self.neighbours.of(operator)

    # -- the machine contract -------------------------------------------------------------

    def handle(self, event: ScaleEvent, now: float) -> Sequence[ScaleEffect]:
        """Take one event and return what has to be done."""
        if self.status is Status.GONE:
            return []
        if isinstance(event, Received):
            return self._on_message(event.sender, event.message)
        match event:
            case Assigned(to, count):
                return self._on_assigned(to, count)
            case Delivered(by, count):
                return self._on_delivered(by, count)
            case QueueEmptied():
                return self._on_emptied()
            case ScaleOutRequested(count, token):
                return self._on_scale_out(count, token)
            case Spawned(newcomers):
                return self._on_spawned(newcomers)
            case SpawnFailed(reason):
                self._require(self.operation is Operation.SPAWNING, "SpawnFailed")
                return self._fail(reason)
            case LeaveRequested(token):
                return self._on_leave(token)
            case PeerLost(peer):
                return self._on_lost(peer)
            case _:
                return []

    def next_deadline(self) -> float | None:
        """There are no time-outs: suspicion is the engine's."""
        return None

    def check_invariants(self) -> None:
        """Raise if this is a state that must never be."""
        leaving = self.status in (Status.LEAVING, Status.DRAINING, Status.FAREWELL)
        told = self.status in (Status.LEAVING, Status.FAREWELL)
        waiting = self._progress.waiting
        for holds, text in (
            (leaving == (self.operation is Operation.LEAVING), "only a leaver leaves"),
            (
                bool(waiting) == (told or self.operation is Operation.DUPLICATING),
                "waits if and only if there is something to wait for",
            ),
            (self.status is not Status.IDLE or not self.neighbours.members, "idle, with a view"),
            (not self._lost & self.neighbours.members.keys(), "knows the dead"),
            (not waiting & self._lost, "waits for the dead"),
            (self.status is not Status.FAREWELL or self._flush.clear, "left records behind"),
        ):
            if not holds:
                raise InvariantError(f"{self.me}: {text}: {dict(self.describe())}")

    def state(self) -> Hashable:
        """Everything that changes, as an immutable value."""
        return (
            self.status,
            self.neighbours.state(),
            self._progress.state(),
            self._flush.state(),
            tuple(sorted(self._lost)),
            tuple(sorted(self._voters)),
        )

    def restore(self, state: Hashable) -> None:
        """Return to a state that ``state`` gave."""
        parts: Any = state
        self.status, neighbours, progress, flush, lost, voters = parts
        self.neighbours.restore(neighbours)
        self._progress.restore(progress)
        self._flush.restore(flush)
        self._lost, self._voters = set(lost), set(voters)

    def describe(self) -> Mapping[str, object]:
        """A small summary for logs."""
        return {
            "status": self.status.name,
            "operation": self.operation.name,
            "neighbours": len(self.neighbours.members),
            "waiting for": sorted(self._progress.waiting),
            "keeper": self.keeper,
        }

    # -- duplicating ----------------------------------------------------------------------

    def _on_scale_out(self, count: int, token: Hashable) -> list[ScaleEffect]:
        self._require_idle_hands("duplicate")
        if count < 1:
            raise LocalProtocolError(f"{self.me} cannot duplicate {count} times")
        self._progress.begin(Operation.SPAWNING, token)
        return [Spawn(count)]

    def _on_spawned(self, newcomers: tuple[NodeId, ...]) -> list[ScaleEffect]:
        progress = self._progress
        self._require(progress.operation is Operation.SPAWNING, "Spawned")
        progress.operation = Operation.DUPLICATING
        progress.newcomers = tuple(name for name in newcomers if name not in self._lost)
        member = self.place.member
        message = Duplication(member.operator, member.generation + 1, progress.newcomers)
        told = progress.tell(self.neighbours.members.values(), message)
        return [*told] or self._duplicated()

    def _on_duplication(self, sender: NodeId, message: Duplication) -> list[ScaleEffect]:
        operator = message.operator
        names = [name for name in message.newcomers if name not in self._lost]
        linked = True
        effects: list[ScaleEffect] = []
        told = operator in self.place.upstream or self.status is Status.FAREWELL
        if self.operation is Operation.LEAVING and told:
            # That side was told of our leaving: the newcomers were too, or they never meet us.
            # They may have been, if we were started with them among our neighbours (D4).
            linked = all(name in self._progress.linked for name in names)
        else:
            members = [Member(operator, message.generation, name) for name in names]
            effects += self.neighbours.add(members)
            self._progress.link(members)
        effects.append(Send(sender, DuplicationAck(linked)))
        return effects

    def _on_duplication_ack(self, sender: NodeId, message: DuplicationAck) -> list[ScaleEffect]:
        progress = self._progress
        if not progress.is_busy_with(Operation.DUPLICATING, sender):
            return [Reject(sender, "acknowledges a duplication that it was not told of")]
        progress.waiting.discard(sender)
        if not message.linked:
            progress.linked.pop(sender, None)
        return [] if progress.waiting else self._duplicated()

    def _duplicated(self) -> list[ScaleEffect]:
        """All neighbours know the newcomers: start them."""
        progress = self._progress
        newcomers, token = progress.newcomers, progress.token
        if not newcomers:
            return self._fail("every newcomer was lost before its start")
        neighbours = tuple(sorted(progress.linked.values()))
        start = Start(neighbours, tuple(sorted(self.neighbours.bereaved)))
        progress.end()
        return [*(Send(name, start) for name in newcomers), Resolve(token, newcomers)]

    def _on_start(self, sender: NodeId, message: Start) -> list[ScaleEffect]:
        if self.status is not Status.IDLE:
            return [Reject(sender, "starts an instance that is not idle")]
        self._move(Status.ACTIVE)
        votes = self.neighbours.start(message.neighbours, message.bereaved, self._lost)
        return [Activate(), *votes]

    # -- leaving --------------------------------------------------------------------------

    def _on_leave(self, token: Hashable) -> list[ScaleEffect]:
        self._require_idle_hands("leave")
        if self.keeper:
            raise LocalProtocolError(f"{self.me} is the keeper of its operator and never leaves")
        self._progress.begin(Operation.LEAVING, token)
        self._move(Status.LEAVING)
        return [*self._take_leave_of(self.place.upstream)] or self._silent()

    def _take_leave_of(self, operators: tuple[str, ...]) -> list[Send]:
        members = self.neighbours.side(operators)
        return self._progress.tell(members, Deletion(self.place.member.operator))

    def _on_deletion(self, sender: NodeId) -> list[ScaleEffect]:
        effects: list[ScaleEffect] = [*self.neighbours.remove(sender)]
        self._voters.discard(sender)
        if not self._flush.owe(sender):
            effects.append(Send(sender, DeletionAck()))
        return effects

    def _on_deletion_ack(self, sender: NodeId) -> list[ScaleEffect]:
        progress = self._progress
        if not progress.is_busy_with(Operation.LEAVING, sender):
            return [Reject(sender, "acknowledges a deletion that it was not told of")]
        progress.waiting.discard(sender)
        return [] if progress.waiting else self._told()

    def _told(self) -> list[ScaleEffect]:
        return self._silent() if self.status is Status.LEAVING else self._gone()

    def _silent(self) -> list[ScaleEffect]:
        """No predecessor sends any more: drain."""
        self._move(Status.DRAINING)
        return [Drain()]

    def _try_farewell(self) -> list[ScaleEffect]:
        drained = self._progress.emptied and self._flush.clear
        if self.status is not Status.DRAINING or not drained:
            return []
        self._move(Status.FAREWELL)
        return [*self._take_leave_of(self.place.downstream)] or self._gone()

    def _gone(self) -> list[ScaleEffect]:
        self._move(Status.GONE)
        token = self._progress.token
        self._progress.end()
        return [Resolve(token), Terminate()]

    # -- the data plane -------------------------------------------------------------------

    def _on_assigned(self, to: NodeId, count: int) -> list[ScaleEffect]:
        member = self.neighbours.members.get(to)
        if not self.works or member is None or member.operator not in self.place.downstream:
            self._require(False, f"records for {to}")  # its text costs as much as all the rest
        self._flush.assign(to, count)
        return []

    def _on_delivered(self, by: NodeId, count: int) -> list[ScaleEffect]:
        if by in self._lost:
            return []
        due = self._flush.confirm(by, count)
        acks: list[ScaleEffect] = [Send(by, DeletionAck())] if due else []
        return acks + self._try_farewell()

    def _on_emptied(self) -> list[ScaleEffect]:
        self._require(self.status is Status.DRAINING, "QueueEmptied")
        self._progress.emptied = True
        return self._try_farewell()

    # -- loss -----------------------------------------------------------------------------

    def _on_lost(self, peer: NodeId) -> list[ScaleEffect]:
        if peer in self._lost:
            return []
        self._lost.add(peer)
        self._voters.discard(peer)
        if self.status is Status.IDLE:
            # Who knows of us is known to the initiator alone, so nobody else can start us.
            return self._stop("its initiator is lost") if peer == self.place.parent else []
        effects: list[ScaleEffect] = [*self.neighbours.remove(peer)]
        self._flush.forget(peer)
        if self._progress.lose(peer):
            duplicating = self.operation is Operation.DUPLICATING
            return effects + (self._duplicated() if duplicating else self._told())
        return effects + self._try_farewell()

    def _stop(self, reason: str) -> list[ScaleEffect]:
        busy = self.operation is not Operation.NONE
        failed = self._fail(reason) if busy else []
        self._move(Status.GONE)
        return [*failed, Stop(reason)]

    # -- inside ---------------------------------------------------------------------------

    def _on_message(self, sender: NodeId, message: Hashable) -> list[ScaleEffect]:
        if sender in self._lost:
            return [] if isinstance(message, Evict) else [Send(sender, Evict())]
        match message:
            case Duplication(operator) | Deletion(operator) if not self.place.adjoins(operator):
                return [Reject(sender, f"{operator!r} is no neighbour of this operator")]
            case Duplication():
                return self._on_duplication(sender, message)
            case DuplicationAck():
                return self._on_duplication_ack(sender, message)
            case Deletion():
                return self._on_deletion(sender)
            case DeletionAck():
                return self._on_deletion_ack(sender)
            case Start():
                return self._on_start(sender, message)
            case Keep(you):
                (self._voters.add if you else self._voters.discard)(sender)
                return []
            case Evict():
                return self._stop(f"{sender} holds it for dead")
            case _:
                return [Reject(sender, f"no message of the scale protocol: {message!r}")]

    def _fail(self, reason: str) -> list[ScaleEffect]:
        token = self._progress.token
        self._progress.end()
        return [Fail(token, reason)]

    def _move(self, status: Status) -> None:
        if status not in TRANSITIONS[self.status]:
            raise InvariantError(f"{self.me} goes from {self.status.name} to {status.name}")
        self.status = status

    def _require_idle_hands(self, what: str) -> None:
        if not self.may_scale:
            doing = f"{self.status.name}, {self.operation.name}"
            raise LocalProtocolError(f"{self.me} cannot {what} now: {doing}")

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            doing = f"{self.status.name}, {self.operation.name}"
            raise LocalProtocolError(f"{self.me} does not expect {what}: {doing}")
