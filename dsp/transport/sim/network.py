"""The network behind ``sim://``: links with conditions, partitions, holds, rules and a trace.

Frames move by events on the loop's clock: in virtual time inside a world, in real time elsewhere.
All randomness comes from the network's seed, one stream per directed link and lane, so what
happens on one link never changes what happens on another.

A frame leaves its sender's queue when the receiver has promised room for it (so a slow reader
fills the sender's queue and then makes ``send`` wait), crosses the link or is lost on it, and ends
in the receiver's inbox. Frames for an endpoint that is not there wait in the sender's queue; frames
on the way to an endpoint that goes away are lost.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import ClassVar, Protocol

from dsp.core.randomness import derive_random
from dsp.core.types import Lane, NodeId
from dsp.errors import ConnectError
from dsp.transport.sim.agenda import Agenda
from dsp.transport.sim.conditions import DROP, Deliver, LinkConditions, Packet, Rule, Verdict
from dsp.transport.sim.trace import Trace

__all__ = ["SimNetwork", "Endpoint"]


class Endpoint(Protocol):
    """What the network needs of an endpoint that is attached to it."""

    def reserve(self, lane: Lane, size: int) -> bool:
        """Promise room for a frame; False if there is none, and then ``kick`` when there is."""
        ...

    def release(self, lane: Lane, size: int) -> None:
        """Take a promise back: the frame was lost on the way."""
        ...

    def deliver(self, wire: bytes) -> None:
        """A frame arrived."""
        ...

    def peer_gone(self, node: NodeId, reason: str) -> None:
        """A peer's endpoint went away."""
        ...

    def peer_came(self, node: NodeId) -> None:
        """An endpoint that we send to is there."""
        ...

    def abort(self) -> None:
        """Go away at once."""
        ...


@dataclass(slots=True)
class _Track:
    """State of one directed link and lane."""

    random: Random
    free_at: float = 0.0
    last_arrival: float = 0.0


@dataclass(slots=True)
class _Route:
    """State of one directed link."""

    conditions: LinkConditions
    cut: bool = False
    held: bool = False
    waiting: deque[Callable[[], None]] = field(default_factory=deque)


@dataclass(frozen=True, slots=True)
class _Flight:
    """A frame on its way; ``copy`` is 0 for the original, which holds the promise of room."""

    route: _Route
    destination: NodeId
    endpoint: Endpoint
    lane: Lane
    wire: bytes
    size: int
    copy: int
    label: str


class SimNetwork:
    """A network of simulated links between named endpoints.

    Args:
        seed: decides every loss, delay and duplicate.
        conditions: of each link that has none of its own.
        name: the network's name in URLs, ``sim://NAME/endpoint``.
    """

    # Weak keys would be of no use: a network knows its loop. Those of closed loops are forgotten
    # when another loop gets one.
    _of_loop: ClassVar["dict[asyncio.AbstractEventLoop, dict[str, SimNetwork]]"] = {}

    def __init__(
        self, seed: int = 0, conditions: LinkConditions | None = None, name: str = "world"
    ) -> None:
        self.seed = seed
        self.name = name
        self.conditions = conditions or LinkConditions()
        self.trace = Trace()
        self._endpoints: dict[NodeId, Endpoint] = {}
        self._attached = 0
        self._routes: dict[tuple[NodeId, NodeId], _Route] = {}
        self._tracks: dict[tuple[NodeId, NodeId, Lane], _Track] = {}
        self._rules: list[Rule] = []
        self._agenda = Agenda()
        self._crash_is_silent: bool | None = None
        self._lines: dict[tuple[NodeId, Lane], dict[NodeId, Callable[[], None]]] = {}
        self._served: tuple[tuple[NodeId, Lane], NodeId] | None = None

    @classmethod
    def of_running_loop(cls, name: str) -> "SimNetwork":
        """Give the network of this name on the running loop; the first call makes it."""
        networks = cls._networks(asyncio.get_running_loop())
        if name not in networks:
            networks[name] = cls(name=name)
        return networks[name]

    def serve(self, loop: asyncio.AbstractEventLoop) -> None:
        """Be the network of this name for URLs that are opened on this loop."""
        self._networks(loop)[self.name] = self

    @classmethod
    def _networks(cls, loop: asyncio.AbstractEventLoop) -> "dict[str, SimNetwork]":
        if loop not in cls._of_loop:
            for closed in [each for each in cls._of_loop if each.is_closed()]:
                del cls._of_loop[closed]
        return cls._of_loop.setdefault(loop, {})

    @property
    def now(self) -> float:
        """The time on the loop's clock; 0 before anything ran."""
        return self._agenda.now

    # -- what a test or a world does to the network ---------------------------------------

    def set_conditions(
        self, source: str, destination: str, conditions: LinkConditions, *, oneway: bool = False
    ) -> None:
        """Give a link conditions of its own, in both directions unless ``oneway``."""
        for route in self._both(source, destination, oneway):
            route.conditions = conditions
        self.note("conditions", f"{source} {'->' if oneway else '<->'} {destination} {conditions}")

    def partition(self, source: str, destination: str, *, oneway: bool = False) -> None:
        """Lose every frame between two endpoints, both ways unless ``oneway``."""
        for route in self._both(source, destination, oneway):
            route.cut = True
        self.note("partition", f"{source} {'->' if oneway else '<->'} {destination}")

    def repair(self, source: str, destination: str, *, oneway: bool = False) -> None:
        """Undo ``partition``."""
        for route in self._both(source, destination, oneway):
            route.cut = False
        self.note("repair", f"{source} {'->' if oneway else '<->'} {destination}")

    def hold(self, source: str, destination: str, *, oneway: bool = False) -> None:
        """Stop frames on their way, in order, until ``release``; nothing is lost."""
        for route in self._both(source, destination, oneway):
            route.held = True
        self.note("hold", f"{source} {'->' if oneway else '<->'} {destination}")

    def release(self, source: str, destination: str, *, oneway: bool = False) -> None:
        """Let go what ``hold`` stopped."""
        self.note("release", f"{source} {'->' if oneway else '<->'} {destination}")
        for route in self._both(source, destination, oneway):
            route.held = False
            while route.waiting and not route.held:
                route.waiting.popleft()()

    @contextmanager
    def rule(self, rule: Rule) -> Iterator[None]:
        """Let a function decide about every frame while the context lasts."""
        self._rules.append(rule)
        try:
            yield
        finally:
            self._rules.remove(rule)

    def inject(self, destination: str, wire: bytes) -> None:
        """Hand raw bytes to an endpoint, as a stranger would."""
        self.note("inject", f"-> {destination} {_digest(wire)}")
        self._endpoints[NodeId(destination)].deliver(wire)

    def crash(self, node: NodeId, *, silent: bool = False) -> None:
        """Take an endpoint off, if it is there, as when its process dies.

        Args:
            silent: peers hear nothing of it, as when power fails.
        """
        endpoint = self._endpoints.get(node)
        if endpoint is not None:
            self._crash_is_silent = silent
            try:
                endpoint.abort()
            finally:
                self._crash_is_silent = None

    def note(self, kind: str, detail: str) -> None:
        """Add a line to the trace."""
        self.trace.add(self.now, kind, detail)

    # -- what endpoints do ----------------------------------------------------------------

    def attach(self, node: NodeId, endpoint: Endpoint) -> int:
        """Put an endpoint onto the network and let waiting senders know; give its epoch.

        Raises:
            ConnectError: the name is taken.
        """
        if node in self._endpoints:
            raise ConnectError(f"sim://{self.name}/{node} is in use by another endpoint")
        self._agenda.use_running_loop()
        self._endpoints[node] = endpoint
        self.note("up", node)
        for lane in Lane:
            self.kick(node, lane)
        self._attached += 1
        return self._attached

    def detach(self, node: NodeId, known_by: list[NodeId], reason: str) -> None:
        """Take an endpoint off; the peers that know it hear of it, if their link is not cut."""
        del self._endpoints[node]
        if self._crash_is_silent is not None:
            reason = "crashed"
        self.note("down", f"{node} ({reason})")
        if self._crash_is_silent:
            return
        for peer in known_by:
            route = self._route(node, peer)
            if not route.cut:
                self._agenda.after(
                    route.conditions.latency, partial(self._tell, peer, node, reason)
                )

    def transmit(
        self,
        source: NodeId,
        destination: NodeId,
        lane: Lane,
        wire: bytes,
        payload: bytes,
        again: Callable[[], None],
    ) -> bool:
        """Put a frame onto a link; False if it must wait, and then ``again`` is called.

        Args:
            wire: the frame as it travels.
            payload: its part that rules see.
            again: called when it is this sender's turn to try again.
        """
        track = self._track(source, destination, lane)
        if track.free_at > self.now:
            self._agenda.at(track.free_at, again)
            return False
        endpoint = self._admit(source, destination, lane, len(payload), again)
        if endpoint is None:
            return False
        route = self._route(source, destination)
        conditions = route.conditions
        if conditions.bandwidth is not None:
            track.free_at = self.now + len(wire) / conditions.bandwidth
        label = f"{source} -> {destination} {lane.value} {_digest(payload)}"
        verdict = self._judge(source, destination, lane, payload)
        if verdict is DROP or route.cut or track.random.random() < conditions.loss:
            self.note("rule" if verdict is DROP else "cut" if route.cut else "lost", label)
            endpoint.release(lane, len(payload))
            return True
        self._endpoints[source].peer_came(destination)
        copies = 1 + (track.random.random() < conditions.duplicate)
        for copy in range(copies):
            flight = _Flight(route, destination, endpoint, lane, wire, len(payload), copy, label)
            self._agenda.at(
                self._arrival(conditions, track, verdict), partial(self._arrive, flight)
            )
        return True

    def _admit(
        self,
        source: NodeId,
        destination: NodeId,
        lane: Lane,
        size: int,
        again: Callable[[], None],
    ) -> Endpoint | None:
        """Get a promise of room from the receiver, in turn with the others that wait for it."""
        key = (destination, lane)
        line = self._lines.setdefault(key, {})
        served = self._served == (key, source)
        self._served = None
        endpoint = self._endpoints.get(destination)
        if endpoint is not None and (served or not line) and endpoint.reserve(lane, size):
            line.pop(source, None)
            return endpoint
        line[source] = again
        return None

    def kick(self, node: NodeId, lane: Lane) -> None:
        """There is room at an endpoint: let those who wait for it try again, in turn."""
        if self._lines.get((node, lane)):
            self._agenda.at(self.now, partial(self._serve, (node, lane)))

    # -- inside ---------------------------------------------------------------------------

    def _serve(self, key: tuple[NodeId, Lane]) -> None:
        # One frame for each in turn: who has more goes to the end of the line, so that a busy
        # sender cannot keep a slow reader to itself.
        line = self._lines.get(key)
        while line:
            source, again = next(iter(line.items()))
            self._served = (key, source)
            again()
            if self._took_no_turn():
                line.pop(source, None)
            elif next(iter(line), None) == source:
                return  # still first: there was no room

    def _took_no_turn(self) -> bool:
        """Tell whether the sender that was just served had nothing to send any more."""
        untouched, self._served = self._served is not None, None
        return untouched

    def _arrival(
        self, conditions: LinkConditions, track: _Track, verdict: Verdict | Deliver
    ) -> float:
        if isinstance(verdict, Deliver):
            return self.now + verdict.delay
        start = max(self.now, track.free_at)
        delay = conditions.latency + track.random.random() * conditions.jitter
        if track.random.random() < conditions.reorder:
            return start + delay + track.random.random() * conditions.reorder_delay
        track.last_arrival = max(track.last_arrival, start + delay)
        return track.last_arrival

    def _arrive(self, flight: "_Flight") -> None:
        if flight.route.held:
            flight.route.waiting.append(partial(self._arrive, flight))
            return
        if flight.copy == 0:
            flight.endpoint.release(flight.lane, flight.size)
        if self._endpoints.get(flight.destination) is not flight.endpoint:
            self.note("gone", flight.label)
        elif flight.route.cut:
            self.note("cut", flight.label)
        else:
            self.note("duplicate" if flight.copy else "deliver", flight.label)
            flight.endpoint.deliver(flight.wire)

    def _tell(self, peer: NodeId, node: NodeId, reason: str) -> None:
        endpoint = self._endpoints.get(peer)
        if endpoint is not None:
            endpoint.peer_gone(node, reason)

    def _judge(
        self, source: NodeId, destination: NodeId, lane: Lane, payload: bytes
    ) -> Verdict | Deliver:
        if self._rules:
            packet = Packet(self.now, source, destination, lane, payload)
            for rule in self._rules:
                verdict = rule(packet)
                if verdict is not Verdict.PASS:
                    return verdict
        return Verdict.PASS

    def _route(self, source: NodeId, destination: NodeId) -> _Route:
        key = (source, destination)
        if key not in self._routes:
            self._routes[key] = _Route(self.conditions)
        return self._routes[key]

    def _both(self, source: str, destination: str, oneway: bool) -> list[_Route]:
        there = self._route(NodeId(source), NodeId(destination))
        return [there] if oneway else [there, self._route(NodeId(destination), NodeId(source))]

    def _track(self, source: NodeId, destination: NodeId, lane: Lane) -> _Track:
        key = (source, destination, lane)
        if key not in self._tracks:
            self._tracks[key] = _Track(
                derive_random(self.seed, "link", source, destination, lane.value)
            )
        return self._tracks[key]


def _digest(payload: bytes) -> str:
    return f"{len(payload)}B {hashlib.blake2b(payload, digest_size=4).hexdigest()}"
