"""Pipelines of minimal instances in a world: each instance a host, over a simulated network.

A fleet creates the hosts, feeds records to the first operator, collects them at the last one, and
plays the engine's part in suspicion: some time after an instance died, everybody who lives or is
born later is told. Hints of the transport are not used for that, as in the engine.
"""

import asyncio
from collections.abc import Hashable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from dsp.config import TransportConfig
from dsp.core.driver import MachineDriver
from dsp.core.envelope import Custom, Envelope, decode_envelope, encode_envelope
from dsp.core.machine import PeerAppeared, PeerLost, SendFailed
from dsp.core.types import Lane, NodeId, Peer
from dsp.errors import ClosedError, CodecError
from dsp.scaling.events import (
    Deserted,
    LeaveRequested,
    Member,
    ScaleOutRequested,
    Spawned,
    Terminate,
)
from dsp.scaling.machine import ScaleMachine
from dsp.scaling.place import Place
from dsp.scaling.status import Status
from dsp.scaling.wire import ScaleCodec
from dsp.testing import Host, World
from dsp.transport.registry import create_transport
from dsp.transport.session import create_session
from tests.scaling.graphs import Graph
from tests.scaling.instances import (
    Confirm,
    Create,
    Enter,
    Forward,
    Instance,
    Out,
    Record,
    Stopped,
)

__all__ = ["Fleet"]


@dataclass(frozen=True, slots=True)
class Dead:
    """The engine holds a peer for dead."""

    peer: NodeId


class WorldInstance(Instance):
    """Takes the engine's word for who is dead, not the transport's hints."""

    def handle(self, event: object, now: float) -> Sequence[object]:
        if isinstance(event, PeerLost | PeerAppeared | SendFailed):
            return []
        return super().handle(PeerLost(event.peer) if isinstance(event, Dead) else event, now)


class Book(MutableMapping[NodeId, str]):
    """Addresses, kept in the driver."""

    def __init__(self, home: Peer) -> None:
        self._peers = {home.id: home}
        self.driver: MachineDriver[object, object] | None = None

    def __getitem__(self, name: NodeId) -> str:
        return self._peers[name].address

    def __setitem__(self, name: NodeId, address: str) -> None:
        peer = self._peers[name] = Peer(name, address)
        if self.driver is not None:
            self.driver.add_peer(peer)

    def __delitem__(self, name: NodeId) -> None:
        del self._peers[name]

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._peers)

    def __len__(self) -> int:
        return len(self._peers)


class InstanceCodec:
    """Messages of the scale protocol, and records as an application's messages."""

    def __init__(self, book: Book) -> None:
        self._scaling = ScaleCodec(book)

    def encode(self, message: object) -> bytes:
        match message:
            case Record(number):
                return encode_envelope(Envelope(custom=Custom(type="r", payload=b"%d" % number)))
            case Confirm(count):
                return encode_envelope(Envelope(custom=Custom(type="c", payload=b"%d" % count)))
            case _:
                return self._scaling.encode(message)  # type: ignore[arg-type]

    def decode(self, data: bytes) -> Hashable:
        custom = decode_envelope(data).custom
        match custom.type:
            case "r":
                return Record(int(custom.payload))
            case "c":
                return Confirm(int(custom.payload))
            case "":
                return self._scaling.decode(data)
        raise CodecError("neither record nor scaling")


@dataclass(slots=True)
class Running:
    """An instance that lives."""

    instance: WorldInstance
    driver: "MachineDriver[object, object]"

    @property
    def scaler(self) -> ScaleMachine:
        scaler = self.instance.scaler
        assert isinstance(scaler, ScaleMachine)
        return scaler


class Fleet:
    """All instances of a graph in one world.

    Args:
        world: where they live.
        graph: the operators.
        sizes: first instances of each operator.
        suspicion: seconds until the death of an instance is known, at most.
        sessions: put sessions over the links, which may then lose, double and reorder.
    """

    def __init__(
        self,
        world: World,
        graph: Graph,
        sizes: Sequence[int],
        suspicion: float = 1.0,
        *,
        sessions: bool = False,
    ) -> None:
        self.world = world
        self.graph = graph
        self.running: dict[NodeId, Running] = {}
        self.out: list[int] = []
        self.taken: list[int] = []
        self.entered = 0
        self.dead: list[NodeId] = []
        self.random = world.random("fleet")
        self._suspicion = suspicion
        self._endpoint = create_session if sessions else create_transport
        self._born = dict(zip(graph.operators, sizes, strict=True))
        self._members = graph.members(sizes)
        for member in self._members:
            self._create(graph.place(member), graph.around(member, self._members))
        world.run_until(lambda: len(self.running) == len(self._members))

    # -- what happens ---------------------------------------------------------------------

    def scale(self, name: NodeId, event: ScaleOutRequested | LeaveRequested) -> bool:
        """Have an instance begin an operation, if it may."""
        one = self.running.get(name)
        if one is None or not one.scaler.may_scale:
            return False
        if isinstance(event, LeaveRequested) and one.scaler.keeper:
            return False
        one.driver.submit(event)
        return True

    def active(self, operator: str) -> list[NodeId]:
        """Names of the active instances of an operator."""
        return [
            name
            for name, one in self.running.items()
            if one.scaler.place.member.operator == operator and one.scaler.status is Status.ACTIVE
        ]

    def enter(self) -> None:
        """Let a record enter at an active instance of the first operator."""
        name = self.random.choice(self.active(self.graph.operators[0]))
        self.running[name].driver.submit(Enter(self.entered))
        self.entered += 1

    def crash(self, name: NodeId) -> None:
        """Kill an instance, and let the others know of it, each in its own time."""
        one = self.running[name]
        self.taken += one.instance.queue
        self.world.crash(name, silent=True)
        self._bury(name)

    # -- what must hold -------------------------------------------------------------------

    def settled(self) -> bool:
        """Whether every operation has ended and no record is on its way or waits."""
        return all(
            one.scaler.may_scale and not one.instance.queue and one.scaler._flush.clear
            for one in self.running.values()
        )

    def check_views(self) -> None:
        """Everybody knows exactly who is there, and each operator has one keeper."""
        for name, one in self.running.items():
            near = (*one.scaler.place.upstream, *one.scaler.place.downstream)
            truth = sorted(other for other in self.running if other[0] in near)
            known = sorted(one.scaler.neighbours.members)
            assert known == truth, f"{name} knows {known}, there is {truth}"
        for operator in self.graph.operators:
            keepers = [n for n in self.active(operator) if self.running[n].scaler.keeper]
            assert len(keepers) == 1, f"keepers of {operator}: {keepers}"

    # -- inside ---------------------------------------------------------------------------

    def _create(self, place: Place, neighbours: Sequence[Member] | None) -> None:
        async def main(host: Host) -> None:
            await self._live(host, place, neighbours)

        self.world.add_host(place.member.id, main)

    async def _live(self, host: Host, place: Place, neighbours: Sequence[Member] | None) -> None:
        name = place.member.id
        book = Book(host.peer)
        instance = WorldInstance(ScaleMachine(place, neighbours))
        over = asyncio.Event()
        peers = [self.world.hosts[m.id].peer for m in neighbours or ()]
        for peer in peers:
            book[peer.id] = peer.address

        async def perform(effect: object) -> None:
            match effect:
                case Create(parent, count):
                    group.create_task(self._spawn(parent, count, book, driver))
                case Out(number):
                    self.out.append(number)
                case Terminate():
                    del self.running[name]
                    over.set()
                case Stopped():
                    self.taken.extend(instance.queue)
                    self._bury(name)
                    over.set()
                case Deserted():
                    pass
                case _:
                    raise AssertionError(f"nobody performs {effect}")

        config = TransportConfig(url=host.url)
        async with (
            self._endpoint(config, host.name) as transport,
            MachineDriver(
                instance,
                transport,
                InstanceCodec(book),
                peers=peers,
                perform=perform,
                lanes=tuple(Lane),
                check=True,
            ) as driver,
            asyncio.TaskGroup() as group,
        ):
            book.driver = driver
            self.running[name] = Running(instance, driver)
            for dead in self.dead:
                self._tell(name, dead)
            body = group.create_task(self._process(instance, driver, host.random))
            await over.wait()
            body.cancel()
        assert driver.rejected == 0

    async def _spawn(
        self, parent: Place, count: int, book: Book, driver: "MachineDriver[object, object]"
    ) -> None:
        operator = parent.member.operator
        names = []
        for _ in range(count):
            number = self._born[operator]
            self._born[operator] += 1
            name = NodeId(f"{operator}{number}")
            self._create(parent.newcomer(name), None)
            await self.world.until(lambda name=name: name in self.running)  # type: ignore[misc]
            book[name] = self.world.hosts[name].peer.address
            names.append(name)
        driver.submit(Spawned(tuple(names)))

    async def _process(
        self, instance: WorldInstance, driver: "MachineDriver[object, object]", random: Random
    ) -> None:
        """The body: takes its time for each record, then sends it to anyone."""
        while True:
            await asyncio.sleep(random.uniform(0.01, 0.05))
            if instance.can_forward():
                driver.submit(Forward(random.randrange(len(instance.ways()))))

    def _bury(self, name: NodeId) -> None:
        self.running.pop(name, None)
        self.dead.append(name)
        for other in list(self.running):
            self._tell(other, name)

    def _tell(self, name: NodeId, dead: NodeId) -> None:
        def tell() -> None:
            if name in self.running:
                with suppress(ClosedError):  # the world ends
                    self.running[name].driver.submit(Dead(dead))

        delay = self.random.uniform(0, self._suspicion)
        asyncio.get_running_loop().call_later(delay, tell)
