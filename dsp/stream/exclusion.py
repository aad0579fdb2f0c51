"""``coordination = "2fgme"``: of two neighbouring operators only one scales at a time.

The core group of an operator are the instances that the application starts it with: they are told
each other before they start, and take part in the mutual exclusion for themselves. Instances that
came later ask the keeper of their operator, which is a core member and never leaves; predecessors
tell who it is, with the load. When it is lost, the instance that neighbours name in its place joins
the core, and whoever waits asks there.

Only operators that scale exclude each other. Whether a step may begin decides nothing about
records: the scale protocol below is safe without exclusion, and so is a step whose entry was lost
with a core member.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from dsp._pb.engine_pb2 import EngineCore, EngineEnter, EngineEntered, EngineExit
from dsp._pb.scaling_pb2 import ScaleMember
from dsp.core.envelope import Envelope
from dsp.core.types import NodeId
from dsp.errors import CodecError
from dsp.mutex.edges import Edge, edges_of
from dsp.mutex.events import Carried
from dsp.mutex.member import Member as CoreSeat
from dsp.mutex.seat import Seat
from dsp.mutex.wire import from_envelope, to_envelope
from dsp.scaling.events import Evict, Member, ScaleMessage
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.status import Status
from dsp.stream.coordination import Coordinator, Wish
from dsp.stream.core_member import CoreMember, Ticket
from dsp.stream.graph import Graph

__all__ = ["Exclusion", "core_message", "excluding_edges"]


class Surroundings(Protocol):
    """What exclusion needs of the process that the instance is in."""

    def post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None: ...

    def post_scale(self, source: NodeId, to: NodeId, message: ScaleMessage) -> None: ...

    def address(self, name: NodeId) -> str: ...

    def introduce(self, name: NodeId, address: str) -> None: ...


def excluding_edges(operator: str, graph: Graph) -> list[Edge]:
    """The edges at an operator whose ends both scale, in the order in which to take them."""
    elastic = {name for name, each in graph.operators.items() if each.elastic}
    edges = [Edge(*ends) for ends in graph.edges if elastic.issuperset(ends)]
    return edges_of(operator, edges)


def core_message(
    operator: str,
    edges: Iterable[Edge],
    members: Iterable[Member],
    address: Callable[[NodeId], str],
) -> Envelope:
    """What the application tells a first instance before it starts: who its core groups are."""
    concerned = {operator, *(end for edge in edges for end in (edge.before, edge.after))}
    told = [
        ScaleMember(id=m.id, address=address(m.id), operator=m.operator, generation=m.generation)
        for m in members
        if m.operator in concerned
    ]
    return Envelope(engine_core=EngineCore(members=told))


class Exclusion(Coordinator):
    """The part that one instance takes.

    Args:
        machine: its scale machine, which is asked and never changed here.
        edges: what it takes, in order; at least one.
        home: its process.
        begin: begins a step; False if it cannot begin any more.
        patience: seconds for which a new core member waits for answers to its greetings.
    """

    def __init__(
        self,
        machine: ScaleMachine,
        edges: list[Edge],
        home: Surroundings,
        begin: Callable[[Wish], bool],
        patience: float,
    ) -> None:
        super().__init__(begin)
        self.name = machine.me
        self.core: CoreMember | None = None
        self._machine = machine
        self._edges = edges
        self._home = home
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._wish: Wish | None = None
        self._is_inside = False
        # Our wish, or our stay, under a number that is never used again.
        self._ticket = 0
        # Where we asked last; None if our own core member was asked.
        self._asked: NodeId | None = None
        self._keeper: Member | None = None
        self._dead: set[NodeId] = set()
        # What came before this instance was a core member.
        self._early: list[tuple[NodeId, str, Envelope]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    # -- for the instance -----------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        return self._wish is not None

    def ask(self, wish: Wish) -> None:
        self.withdraw()
        self._wish = wish
        self._seek()

    def withdraw(self) -> None:
        if self._wish is not None:
            self._wish = None
            self._give_back()

    def over(self) -> None:
        if self._is_inside:
            self._is_inside = False
            self._give_back()

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self.withdraw()
        self.over()
        if self._timer is not None:
            self._timer.cancel()
        if self.core is not None:
            self.core.close()

    # -- asking ---------------------------------------------------------------------------

    def _seek(self) -> None:
        """Ask whoever can let us in, if that is known."""
        self._ticket += 1
        self._asked = None
        if self.core is not None:
            self.core.want((self.name, self._ticket))
        elif self._keeper is not None and self._keeper.id not in self._dead:
            self._asked = self._keeper.id
            self._post(self._asked, Envelope(engine_enter=EngineEnter(ticket=self._ticket)))

    def _give_back(self) -> None:
        if self._asked is not None:
            self._post(self._asked, Envelope(engine_exit=EngineExit(ticket=self._ticket)))
        elif self.core is not None:
            self.core.done((self.name, self._ticket))

    def _entered(self, ticket: int) -> None:
        wish = self._wish
        if ticket != self._ticket or wish is None:
            return  # given back before it came
        self._wish = None
        self._is_inside = True
        if not wish.stands() or not self._begin(wish):
            self.refused += 1
            self.over()

    # -- what comes -----------------------------------------------------------------------

    def keeper_is(self, keeper: Member) -> None:
        known = self._keeper
        if keeper.id in self._dead or self.core is not None:
            return
        # A keeper is followed by one that is junior to it. Who names a senior one is behind.
        if known is None or known.id in self._dead or keeper > known:
            self._keeper = keeper
            if self._wish is not None:
                self._give_back()
                self._seek()

    def hear(self, sender: NodeId, kind: str, envelope: Envelope) -> None:
        match kind:
            case "engine_core":
                self._found(envelope.engine_core)
            case "engine_entered":
                if sender == self._asked:
                    self._entered(envelope.engine_entered.ticket)
            case _ if self.core is None:
                self._early.append((sender, kind, envelope))
            case "engine_enter" | "mutex" if sender in self._dead and _enters(kind, envelope):
                # It would wait for ever, or worse, be inside for ever: nobody would tell us again.
                self._home.post_scale(self.name, sender, Evict())
            case "engine_enter":
                self.core.want((sender, envelope.engine_enter.ticket))
            case "engine_exit":
                self.core.done((sender, envelope.engine_exit.ticket))
            case "mutex":
                message = from_envelope(envelope, self._home.introduce)
                if not isinstance(message, Carried):
                    raise CodecError(f"no message between members of a core: {message!r}")
                self.core.receive(sender, message)
                # Others may know of the dead what we knew before we took part.
                for name in self.core.silent & self._dead:
                    self.core.lose(name)

    def lose(self, name: NodeId) -> None:
        self._dead.add(name)
        if self.core is not None:
            self.core.lose(name)
        if self._asked == name:
            self._asked = None  # nobody is left to give anything back to

    def look(self) -> None:
        if self.core is None and self._machine.keeper and self._machine.status is Status.ACTIVE:
            self._join()

    # -- the core -------------------------------------------------------------------------

    def _found(self, told: EngineCore) -> None:
        """The application starts, with these core groups."""
        groups: dict[str, list[NodeId]] = {}
        for member in told.members:
            groups.setdefault(member.operator, []).append(NodeId(member.id))
            if member.id != self.name:
                self._home.introduce(NodeId(member.id), member.address)
        seats = [self._seat(edge, groups, founder=True) for edge in self._edges]
        self._take_part(CoreMember(self.name, seats, self._send, self._admit, self._loop.time))

    def _join(self) -> None:
        """This instance is the keeper now, and was none of the first."""
        groups: dict[str, list[NodeId]] = {self._machine.place.member.operator: [self.name]}
        neighbours = self._machine.neighbours
        for edge in self._edges:
            for operator in (edge.before, edge.after):
                if self._machine.place.adjoins(operator):
                    eldest = neighbours.eldest(operator)
                    groups[operator] = [
                        member.id
                        for member in neighbours.side((operator,))
                        if member.generation == 0 or member == eldest
                    ]
        seats = [self._seat(edge, groups, founder=False) for edge in self._edges]
        core = CoreMember(self.name, seats, self._send, self._admit, self._loop.time)
        self._timer = self._loop.call_later(self._patience, core.forget_silent)
        core.join()
        self._take_part(core)

    def _seat(self, edge: Edge, groups: dict[str, list[NodeId]], *, founder: bool) -> CoreSeat:
        before, after = (tuple(sorted(groups.get(end, ()))) for end in (edge.before, edge.after))
        return CoreSeat(Seat(self.name, (before, after)), founder=founder, edge=edge.name)

    def _take_part(self, core: CoreMember) -> None:
        self.core = core
        early, self._early = self._early, []
        for sender, kind, envelope in early:
            self.hear(sender, kind, envelope)
        if self._wish is not None:
            self._give_back()
            self._seek()

    def _send(self, to: NodeId, message: Carried) -> None:
        self._post(to, to_envelope(message, self._home.address))

    def _admit(self, ticket: Ticket, number: int) -> None:
        name, count = ticket
        if name == self.name:
            self._entered(count)
        else:
            entered = EngineEntered(ticket=count, number=number)
            self._post(name, Envelope(engine_entered=entered))

    def _post(self, to: NodeId, envelope: Envelope) -> None:
        self.messages += 1
        self._home.post(self.name, to, envelope)


def _enters(kind: str, envelope: Envelope) -> bool:
    """Whether a message is about getting in, and not about joining anew."""
    return kind == "engine_enter" or envelope.mutex.WhichOneof("body") in ("request", "ack")
