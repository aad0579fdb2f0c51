"""Instances that exclude each other, with real machines, and a post that is slow at random."""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from dsp.core.envelope import Envelope
from dsp.core.machine import PeerLost, Received, Send
from dsp.core.types import NodeId
from dsp.mutex.edges import Edge, edges_of
from dsp.scaling.events import Evict, Member, ScaleMessage, ScaleOutRequested
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.stream.coordination import Wish
from dsp.stream.exclusion import Exclusion, core_message

__all__ = ["Desk", "Office"]

Letter = tuple[str, Envelope | ScaleMessage]


class Desk:
    """One instance: its scale machine, its part of the exclusion, and what it has done."""

    def __init__(self, office: "Office", place: Place, around: list[Member], asks: int) -> None:
        self.name = place.member.id
        self.operator = place.member.operator
        self.machine = ScaleMachine(place, around)
        self.asks = asks
        self.inside = False
        self.entries = 0
        self._office = office
        edges = edges_of(self.operator, office.edges)
        self.exclusion = (
            Exclusion(self.machine, edges, office, self._begin, 10.0) if edges else None
        )

    def ask(self) -> None:
        assert self.exclusion is not None
        self.asks -= 1
        self.exclusion.ask(Wish(ScaleOutRequested(), 0.0))

    def _begin(self, wish: Wish) -> bool:
        self._office.check_alone(self)
        self.inside = True
        self.entries += 1
        return True

    def finish(self) -> None:
        assert self.exclusion is not None
        self.inside = False
        self.exclusion.over()


class Office:
    """A pipeline, and the letters on their way: in order between two, in any order among all.

    Args:
        edges: between operators that scale; the first one also has a source before it.
        core: first instances of each operator.
        later: instances of each that came later.
        asks: of each instance.
        random: decides.
    """

    def __init__(
        self, edges: tuple[Edge, ...], random: Random, *, core: int, later: int, asks: int
    ) -> None:
        self.edges = edges
        self.random = random
        self.letters: dict[tuple[NodeId, NodeId], deque[Letter]] = {}
        self.desks: dict[NodeId, Desk] = {}
        self.dead: set[NodeId] = set()
        self.strict = True
        # How likely it is that a step lets somebody change its mind.
        self.withdrawals = 0.0
        # Who has yet to notice that someone is dead.
        self.unaware: list[tuple[NodeId, NodeId]] = []
        operators = sorted({end for edge in edges for end in (edge.before, edge.after)})
        starts = [name for name in operators if all(edge.after != name for edge in edges)]
        pairs = [(edge.before, edge.after) for edge in edges] + [("source", n) for n in starts]
        members = [Member("source", 0, NodeId("source.0"))]
        for operator in operators:
            members += [Member(operator, 0, NodeId(f"{operator}.{n}")) for n in range(core)]
            members += [Member(operator, 1, NodeId(f"{operator}.new{n}")) for n in range(later)]
        for member in members:
            before = tuple(a for a, b in pairs if b == member.operator)
            after = tuple(b for a, b in pairs if a == member.operator)
            keeper = member == min(each for each in members if each.operator == member.operator)
            place = Place(member, before, after, keeper)
            around = [each for each in members if each.operator in (*before, *after)]
            count = 0 if member.operator == "source" else asks
            self.desks[member.id] = Desk(self, place, around, count)
        first = [member for member in members if member.generation == 0]
        for member in first:
            if mine := edges_of(member.operator, edges):
                told = core_message(member.operator, mine, first, lambda name: f"{name}@there")
                self.post(NodeId("app"), member.id, told)

    # -- what an instance needs of its process --------------------------------------------

    def post(self, source: NodeId, to: NodeId, envelope: Envelope) -> None:
        kind = envelope.WhichOneof("body")
        assert kind is not None
        self._put(source, to, (kind, envelope))

    def post_scale(self, source: NodeId, to: NodeId, message: ScaleMessage) -> None:
        self._put(source, to, ("scale", message))

    def address(self, name: NodeId) -> str:
        return f"{name}@there"

    def introduce(self, name: NodeId, address: str) -> None:
        assert address == f"{name}@there"

    def _put(self, source: NodeId, to: NodeId, letter: Letter) -> None:
        if source not in self.dead and to not in self.dead:
            self.letters.setdefault((source, to), deque()).append(letter)

    # -- what happens ---------------------------------------------------------------------

    def check_alone(self, desk: Desk) -> None:
        for edge in self.edges if self.strict else ():
            if desk.operator in (edge.before, edge.after):
                other = edge.after if desk.operator == edge.before else edge.before
                there = [d.name for d in self.living() if d.operator == other and d.inside]
                assert not there, f"{desk.name} begins while {there} are inside"

    def living(self) -> Iterator[Desk]:
        return (desk for name, desk in self.desks.items() if name not in self.dead)

    def kill(self, name: NodeId) -> None:
        """A process dies; everybody will notice, in time."""
        self.dead.add(name)
        self.desks[name].inside = False
        for ends in [ends for ends in self.letters if name in ends]:
            del self.letters[ends]
        self.unaware += [(desk.name, name) for desk in self.living()]

    def notice(self, who: NodeId, dead: NodeId) -> None:
        self.unaware.remove((who, dead))
        if who in self.dead:
            return
        desk = self.desks[who]
        if desk.exclusion is not None:
            desk.exclusion.lose(dead)
        self._perform(desk, PeerLost(dead))

    def deliver(self, ends: tuple[NodeId, NodeId]) -> None:
        kind, letter = self.letters[ends].popleft()
        if not self.letters[ends]:
            del self.letters[ends]
        sender, to = ends
        desk = self.desks[to]
        if isinstance(letter, Envelope):
            assert desk.exclusion is not None
            desk.exclusion.hear(sender, kind, letter)
            return
        assert not isinstance(letter, Evict), f"{to} is evicted by {sender}"
        self._perform(desk, Received(sender, letter))
        if desk.exclusion is not None:
            desk.exclusion.look()

    def tell_keeper(self, teller: Desk, to: Desk) -> None:
        """What comes with the load, several times a second."""
        eldest = teller.machine.neighbours.eldest(to.operator)
        if eldest is not None and to.exclusion is not None:
            to.exclusion.keeper_is(eldest)

    def _perform(self, desk: Desk, event: PeerLost | Received) -> None:
        for effect in desk.machine.handle(event, 0.0):
            if isinstance(effect, Send):
                self.post_scale(desk.name, effect.to, effect.message)  # type: ignore[arg-type]

    def step(self) -> bool:
        """Let one thing happen; False if nothing can any more."""
        able = [(desk, desk.exclusion) for desk in self.living() if desk.exclusion is not None]
        choices: list[Callable[[], None]] = [partial(self.deliver, ends) for ends in self.letters]
        choices += [partial(self.notice, *pair) for pair in self.unaware]
        choices += [desk.finish for desk, _ in able if desk.inside]
        for desk, exclusion in able:
            if exclusion.waiting:
                choices += [
                    partial(self.tell_keeper, teller, desk)
                    for teller in self.living()
                    if teller.operator in desk.machine.place.upstream
                ]
                if self.random.random() < self.withdrawals:
                    choices.append(exclusion.withdraw)
            elif desk.asks and not desk.inside:
                choices.append(desk.ask)
        if choices:
            self.random.choice(choices)()
        return bool(choices)
