"""Members in virtual time: the machines themselves, and a network of delays."""

import heapq
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import count

from dsp.core.machine import Machine, Received, Send
from dsp.core.randomness import derive_random
from dsp.core.types import NodeId
from dsp.lab.mutex.setting import Setting, algorithm, groups_of
from dsp.mutex.events import Admit, EnterRequested, ExitRequested, MutexEffect, MutexEvent
from dsp.mutex.seat import Seat

__all__ = ["Trace", "simulate"]


@dataclass(slots=True)
class Trace:
    """What happened in one run.

    Attributes:
        messages: sent in all.
        waits: seconds from asking to getting in, by node, in order.
        round_trips: for each request, the slowest of parallel round trips to the other group.
        timeline: time, then for each group how many want to be inside or are, and how many are.
        overlaps: how often somebody got in while the other group was inside.
        stuck: nodes that never got in as often as they wanted.
    """

    messages: int = 0
    waits: dict[NodeId, list[float]] = field(default_factory=dict)
    round_trips: list[float] = field(default_factory=list)
    timeline: list[tuple[float, tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    overlaps: int = 0
    stuck: int = 0

    @property
    def occupancy(self) -> float:
        """Mean number inside while anybody is."""
        weight = total = 0.0
        for (begin, _, inside), (end, _, _) in zip(self.timeline, self.timeline[1:], strict=False):
            if any(inside):
                weight += end - begin
                total += (end - begin) * sum(inside)
        return total / weight if weight else 0.0


class _Node:
    """A member and its user."""

    def __init__(
        self, name: NodeId, group: int, machine: Machine[MutexEvent, MutexEffect], entries: int
    ) -> None:
        self.name = name
        self.group = group
        self.machine = machine
        self.left = entries
        self.asked = 0.0
        self.inside = False


def simulate(setting: Setting, name: str, seed: int) -> Trace:
    """Run one experiment.

    Raises:
        ConfigError: there is no such algorithm.
    """
    return _Simulation(setting, name, seed).run()


class _Simulation:
    def __init__(self, setting: Setting, name: str, seed: int) -> None:
        self._setting = setting
        self._random = derive_random(seed, "mutex", name)
        self._first = derive_random(seed, "mutex", "first")  # the same for every algorithm
        self._probes = derive_random(seed, "mutex", name, "probes")
        groups = groups_of(setting.nodes)
        make = algorithm(name)
        self._nodes = {
            member: _Node(member, group, make(Seat(member, groups)), setting.entries)
            for group, members in enumerate(groups)
            for member in members
        }
        self._rivals = [len(groups[1]), len(groups[0])]
        self._wants, self._inside = [0, 0], [0, 0]
        self._agenda: list[tuple[float, int, NodeId, MutexEvent]] = []
        self._order = count()
        self._arrivals: dict[tuple[NodeId, NodeId], float] = {}
        self._trace = Trace(waits={member: [] for member in self._nodes})

    def run(self) -> Trace:
        for member in self._nodes:
            self._at(self._first.uniform(0, self._setting.first), member, EnterRequested())
        while self._agenda:
            now, _, member, event = heapq.heappop(self._agenda)
            self._step(now, self._nodes[member], event)
        self._trace.stuck = sum(node.left > 0 for node in self._nodes.values())
        return self._trace

    def _at(self, time: float, member: NodeId, event: MutexEvent) -> None:
        heapq.heappush(self._agenda, (time, next(self._order), member, event))

    def _step(self, now: float, node: _Node, event: MutexEvent) -> None:
        match event:
            case EnterRequested():
                if node.inside:
                    return  # the published algorithm lets members in that did not ask
                node.asked = now
                self._wants[node.group] += 1
                self._note(now)
                self._trace.round_trips.append(self._slowest(self._rivals[node.group]))
            case ExitRequested():
                node.inside = False
                node.left -= 1
                self._inside[node.group] -= 1
                self._wants[node.group] -= 1
                self._note(now)
                if node.left > 0:
                    self._at(now + self._setting.pause, node.name, EnterRequested())
        for effect in node.machine.handle(event, now):
            match effect:
                case Send(to, message):
                    self._send(now, node.name, to, message)
                case Admit():
                    self._admit(now, node)
                case _:
                    raise AssertionError(f"{node.name} gives {effect}")

    def _send(self, now: float, sender: NodeId, to: NodeId, message: Hashable) -> None:
        self._trace.messages += 1
        arrival = now + self._random.uniform(*self._setting.hop)
        arrival = max(arrival, self._arrivals.get((sender, to), 0.0))
        self._arrivals[sender, to] = arrival
        self._at(arrival, to, Received(sender, message))

    def _admit(self, now: float, node: _Node) -> None:
        if node.inside:
            return  # the published algorithm again
        node.inside = True
        self._trace.waits[node.name].append(now - node.asked)
        self._trace.overlaps += self._inside[1 - node.group] > 0
        self._inside[node.group] += 1
        if self._inside[node.group] > self._wants[node.group]:
            self._wants[node.group] += 1
        self._note(now)
        self._at(now + self._setting.stay, node.name, ExitRequested())

    def _note(self, now: float) -> None:
        wants, inside = (self._wants[0], self._wants[1]), (self._inside[0], self._inside[1])
        self._trace.timeline.append((now, wants, inside))

    def _slowest(self, peers: int) -> float:
        """The slowest of so many parallel round trips over the same network."""
        low, high = self._setting.hop
        uniform = self._probes.uniform
        return max((uniform(low, high) + uniform(low, high) for _ in range(peers)), default=0.0)
