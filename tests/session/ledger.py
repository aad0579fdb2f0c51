"""What ten nodes sent each other, what became of it, and whether that is right."""

import struct
from collections import defaultdict
from dataclasses import dataclass

from dsp.core.types import Lane, NodeId

__all__ = ["Flow", "Ledger", "Life"]

HEAD = struct.Struct("!8sHBI8s")
LANES = tuple(Lane)

Life = tuple[NodeId, int]
"""A node and which of its incarnations."""


@dataclass(frozen=True, slots=True, order=True)
class Flow:
    """Everything that one incarnation of a node sends to another node on a lane."""

    sender: Life
    receiver: NodeId
    lane: str


class Ledger:
    """Counts frames in and out, and objects at once to what must never be."""

    def __init__(self) -> None:
        self.accepted: defaultdict[Flow, list[int]] = defaultdict(list)
        self.arrived: defaultdict[Flow, list[int]] = defaultdict(list)
        self.named: defaultdict[Flow, list[int]] = defaultdict(list)
        self.waiting: defaultdict[tuple[Life, Lane], list[bytes]] = defaultdict(list)
        self.dead: set[Life] = set()
        self.troubled: set[frozenset[NodeId]] = set()
        self.numbers = 0

    # -- what happens ---------------------------------------------------------------------

    def offer(self, sender: Life, receiver: NodeId, lane: Lane, size: int) -> bytes:
        """Make the next payload; it counts as accepted, which a sender that dies never learns."""
        self.numbers += 1
        name, incarnation = sender
        self.accepted[Flow(sender, receiver, lane.value)].append(self.numbers)
        place = LANES.index(lane)
        head = HEAD.pack(name.encode(), incarnation, place, self.numbers, receiver.encode())
        return head + bytes(size)

    def read(self, payload: bytes) -> tuple[Flow, int]:
        """Read whose payload it is, and its number."""
        name, incarnation, place, number, receiver = HEAD.unpack_from(payload)
        sender = (NodeId(name.rstrip(b"\0").decode()), incarnation)
        return Flow(sender, NodeId(receiver.rstrip(b"\0").decode()), LANES[place].value), number

    def arrive(self, at: Life, lane: Lane, payloads: tuple[bytes, ...]) -> None:
        """A session put frames into the inbox of its application."""
        for payload in payloads:
            flow, number = self.read(payload)
            assert (flow.receiver, flow.lane) == (at[0], lane.value), f"{flow} ended at {at}"
            assert number in self.accepted[flow], f"{flow}: {number} was never sent"
            before = self.arrived[flow]
            assert not before or before[-1] < number, f"{flow}: {number} came after {before[-1]}"
            before.append(number)
            self.waiting[at, lane].append(payload)

    def take(self, at: Life, lane: Lane, payload: bytes) -> None:
        """An application received a frame."""
        expected = self.waiting[at, lane].pop(0)
        assert payload == expected, f"{at} took {self.read(payload)}, {self.read(expected)} is next"

    def name(self, sender: Life, lane: Lane, receiver: NodeId, payloads: tuple[bytes, ...]) -> None:
        """An application learned that frames were not delivered."""
        read = [self.read(payload) for payload in payloads]
        flow = Flow(sender, receiver, lane.value)
        assert {each for each, _ in read} == {flow}, f"{sender} is told of the frames of others"
        numbers = [number for _, number in read]
        accepted, before = self.accepted[flow], self.named[flow]
        start = accepted.index(numbers[0])
        assert accepted[start : start + len(numbers)] == numbers, f"{flow}: {numbers} has gaps"
        assert not before or before[-1] < numbers[0], f"{flow}: {numbers} is named again"
        missing = {*accepted[:start]} - {*self.arrived[flow]} - {*before}
        assert not missing, f"{flow}: {missing} not named with {numbers}"
        before.extend(numbers)

    def die(self, life: Life) -> None:
        """An incarnation ended without a word: nobody can ask it what became of its frames."""
        self.dead.add(life)

    def trouble(self, one: NodeId, other: NodeId) -> None:
        """These two had a reason to give up a session: a death, a close, or a long cut."""
        self.troubled.add(frozenset((one, other)))

    # -- what must hold -------------------------------------------------------------------

    def unsettled(self) -> dict[Flow, set[int]]:
        """Give the frames of the living that neither arrived nor were named."""
        left = {
            flow: {*numbers} - {*self.arrived[flow]} - {*self.named[flow]}
            for flow, numbers in self.accepted.items()
            if flow.sender not in self.dead
        }
        return {flow: numbers for flow, numbers in left.items() if numbers}

    def check(self) -> None:
        """Check the end of a run."""
        assert not self.unsettled(), f"lost: {self.unsettled()}"
        for flow, numbers in self.named.items():
            pair = frozenset((flow.sender[0], flow.receiver))
            assert not numbers or pair in self.troubled, f"{flow}: {numbers} for no reason"
